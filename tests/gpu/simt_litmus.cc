#include "tests/gpu/simt_litmus.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/simt/machine.h"
#include "gpu/simt/symbols.h"

namespace coppice::simt {
namespace {

uint32_t plain(const uint32_t* at) {
  uint32_t v;
  coppice_simt_load(at, &v, 4);
  return v;
}
void plain(uint32_t* at, uint32_t v) { coppice_simt_store(at, &v, 4); }
uint32_t relaxed(const uint32_t* at) {
  uint32_t v;
  coppice_simt_load_relaxed(at, &v, 4);
  return v;
}
void relaxed(uint32_t* at, uint32_t v) { coppice_simt_store_relaxed(at, &v, 4); }
uint32_t acquire(const uint32_t* at) { return coppice_simt_load_acquire_u32(at); }
void release(uint32_t* at, uint32_t v) { coppice_simt_store_release_u32(at, v); }
void add(uint32_t* at, uint32_t v) {
  __atomic_fetch_add(static_cast<uint32_t*>(coppice_simt_atomic(at, 4)), v, __ATOMIC_RELAXED);
}
void fence() { coppice_simt_fence(); }
void fence_sc() { coppice_simt_fence_sequentially(); }

using W = const LitmusWords&;
using R = const LitmusResult&;

// Two threads: `first` and `second` are given what they share.
#define COPPICE_TWO(first, second)                       \
  2, [](uint32_t t, W w, [[maybe_unused]] uint32_t* r) { \
    if (t == 0) {                                        \
      first;                                             \
    } else {                                             \
      second;                                            \
    }                                                    \
  }
#define COPPICE_THREE(first, second, third)              \
  3, [](uint32_t t, W w, [[maybe_unused]] uint32_t* r) { \
    if (t == 0) {                                        \
      first;                                             \
    } else if (t == 1) {                                 \
      second;                                            \
    } else {                                             \
      third;                                             \
    }                                                    \
  }
#define COPPICE_FOUR(first, second, third, fourth)       \
  4, [](uint32_t t, W w, [[maybe_unused]] uint32_t* r) { \
    if (t == 0) {                                        \
      first;                                             \
    } else if (t == 1) {                                 \
      second;                                            \
    } else if (t == 2) {                                 \
      third;                                             \
    } else {                                             \
      fourth;                                            \
    }                                                    \
  }

bool got_flag_only(R o) { return o.r[0] == 1 && o.r[1] == 0; }
bool both_zero(R o) { return o.r[0] == 0 && o.r[1] == 0; }
bool both_one(R o) { return o.r[0] == 1 && o.r[1] == 1; }
bool readers_disagree(R o) { return o.r[0] == 1 && o.r[1] == 0 && o.r[2] == 1 && o.r[3] == 0; }
bool end_of_chain_is_old(R o) { return o.r[0] == 1 && o.r[1] == 1 && o.r[2] == 0; }

const LitmusProgram kPrograms[] = {
    {"MP.plain", "x=1; y=1 | r0=y; r1=x (plain)", true,
     COPPICE_TWO((plain(w.x, 1), plain(w.y, 1)), (r[0] = plain(w.y), r[1] = plain(w.x))), got_flag_only},
    {"MP.relaxed", "x=1; y=1 | r0=y; r1=x", true,
     COPPICE_TWO((relaxed(w.x, 1), relaxed(w.y, 1)), (r[0] = relaxed(w.y), r[1] = relaxed(w.x))),
     got_flag_only},
    {"MP.no_acquire", "x=1; y=1 release | r0=y; r1=x", true,
     COPPICE_TWO((relaxed(w.x, 1), release(w.y, 1)), (r[0] = relaxed(w.y), r[1] = relaxed(w.x))),
     got_flag_only},
    {"MP.no_release", "x=1; y=1 | r0=y acquire; r1=x", true,
     COPPICE_TWO((relaxed(w.x, 1), relaxed(w.y, 1)), (r[0] = acquire(w.y), r[1] = relaxed(w.x))),
     got_flag_only},
    {"MP.release_acquire", "x=1; y=1 release | r0=y acquire; r1=x (x plain)", false,
     COPPICE_TWO((plain(w.x, 1), release(w.y, 1)), (r[0] = acquire(w.y), r[1] = plain(w.x))), got_flag_only},
    {"MP.fences", "x=1; fence; y=1 | r0=y; fence; r1=x (x plain)", false,
     COPPICE_TWO((plain(w.x, 1), fence(), relaxed(w.y, 1)),
                 (r[0] = relaxed(w.y), fence(), r[1] = plain(w.x))),
     got_flag_only},
    {"MP.one_fence", "x=1; fence; y=1 | r0=y; r1=x", true,
     COPPICE_TWO((relaxed(w.x, 1), fence(), relaxed(w.y, 1)), (r[0] = relaxed(w.y), r[1] = relaxed(w.x))),
     got_flag_only},
    {"MP.exchange", "x=1; exchange(y, 1) | r0=exchange(y, 0); r1=x (x plain)", false,
     COPPICE_TWO((plain(w.x, 1), coppice_simt_exchange_u32(w.y, 1)),
                 (r[0] = coppice_simt_exchange_u32(w.y, 0), r[1] = plain(w.x))),
     got_flag_only},
    {"MP.update_between", "x=1; y=1 release | add(y, 1) | r0=y acquire; r1=x: r0=2", false,
     COPPICE_THREE((plain(w.x, 1), release(w.y, 1)), add(w.y, 1), (r[0] = acquire(w.y), r[1] = plain(w.x))),
     [](R o) { return o.r[0] == 2 && o.r[1] == 0; }},
    {"MP.relaxed_behind_release", "x=1; y=1 release; y=2 | r0=y acquire; r1=x: r0=2", false,
     COPPICE_TWO((plain(w.x, 1), release(w.y, 1), relaxed(w.y, 2)), (r[0] = acquire(w.y), r[1] = plain(w.x))),
     [](R o) { return o.r[0] == 2 && o.r[1] == 0; }},
    {"MP.acquire_of_what_was_read", "x=1; y=1 release | y=2 | r0=y; r1=y acquire; r2=x: r0=1, r1=2", false,
     COPPICE_THREE((plain(w.x, 1), release(w.y, 1)), relaxed(w.y, 2),
                   (r[0] = relaxed(w.y), r[1] = acquire(w.y), r[2] = plain(w.x))),
     [](R o) { return o.r[0] == 1 && o.r[1] == 2 && o.r[2] == 0; }},
    {"MP.block_barrier", "x=1; barrier | barrier; r1=x (plain)", false,
     COPPICE_TWO((plain(w.x, 1), coppice_simt_numbered_barrier(1)),
                 (coppice_simt_numbered_barrier(1), r[0] = 1, r[1] = plain(w.x))),
     got_flag_only, true},
    {"SB.relaxed", "x=1; r0=y | y=1; r1=x", true,
     COPPICE_TWO((relaxed(w.x, 1), r[0] = relaxed(w.y)), (relaxed(w.y, 1), r[1] = relaxed(w.x))), both_zero},
    {"SB.release_acquire", "x=1 release; r0=y acquire | y=1 release; r1=x acquire", true,
     COPPICE_TWO((release(w.x, 1), r[0] = acquire(w.y)), (release(w.y, 1), r[1] = acquire(w.x))), both_zero},
    {"SB.fences", "x=1; fence; r0=y | y=1; fence; r1=x", true,
     COPPICE_TWO((relaxed(w.x, 1), fence(), r[0] = relaxed(w.y)),
                 (relaxed(w.y, 1), fence(), r[1] = relaxed(w.x))),
     both_zero},
    {"SB.fences_sc", "x=1; fence.sc; r0=y | y=1; fence.sc; r1=x", false,
     COPPICE_TWO((relaxed(w.x, 1), fence_sc(), r[0] = relaxed(w.y)),
                 (relaxed(w.y, 1), fence_sc(), r[1] = relaxed(w.x))),
     both_zero},
    {"IRIW.relaxed", "x=1 | y=1 | r0=x; r1=y | r2=y; r3=x", true,
     COPPICE_FOUR(relaxed(w.x, 1), relaxed(w.y, 1), (r[0] = relaxed(w.x), r[1] = relaxed(w.y)),
                  (r[2] = relaxed(w.y), r[3] = relaxed(w.x))),
     readers_disagree},
    {"IRIW.release_acquire", "x=1 release | y=1 release | r0=x; r1=y acquire | r2=y; r3=x acquire", true,
     COPPICE_FOUR(release(w.x, 1), release(w.y, 1), (r[0] = acquire(w.x), r[1] = acquire(w.y)),
                  (r[2] = acquire(w.y), r[3] = acquire(w.x))),
     readers_disagree},
    {"IRIW.fences_sc", "x=1 | y=1 | r0=x; fence.sc; r1=y | r2=y; fence.sc; r3=x", false,
     COPPICE_FOUR(relaxed(w.x, 1), relaxed(w.y, 1), (r[0] = relaxed(w.x), fence_sc(), r[1] = relaxed(w.y)),
                  (r[2] = relaxed(w.y), fence_sc(), r[3] = relaxed(w.x))),
     readers_disagree},
    {"LB.relaxed", "r0=x; y=1 | r1=y; x=1", true,
     COPPICE_TWO((coppice_simt_load_later(w.x, &r[0], 4, true), relaxed(w.y, 1), coppice_simt_await(&r[0])),
                 (coppice_simt_load_later(w.y, &r[1], 4, true), relaxed(w.x, 1), coppice_simt_await(&r[1]))),
     both_one},
    {"LB.release_acquire", "r0=x acquire; y=1 release | r1=y acquire; x=1 release", false,
     COPPICE_TWO((r[0] = acquire(w.x), release(w.y, 1)), (r[1] = acquire(w.y), release(w.x, 1))), both_one},
    {"LB.dependent", "r0=x; y=r0 | r1=y; x=r1: 1 from nowhere", false,
     COPPICE_TWO(
         (coppice_simt_load_later(w.x, &r[0], 4, true), coppice_simt_await(&r[0]), relaxed(w.y, r[0])),
         (coppice_simt_load_later(w.y, &r[1], 4, true), coppice_simt_await(&r[1]), relaxed(w.x, r[1]))),
     both_one},
    {"2+2W.relaxed", "x=1; y=2 | y=1; x=2: x=1 and y=1 at the end", true,
     COPPICE_TWO((relaxed(w.x, 1), relaxed(w.y, 2)), (relaxed(w.y, 1), relaxed(w.x, 2))),
     [](R o) { return o.x == 1 && o.y == 1; }},
    {"S.release_acquire", "x=2; y=1 release | r0=y acquire; x=1: x=2 at the end", false,
     COPPICE_TWO((relaxed(w.x, 2), release(w.y, 1)), (r[0] = acquire(w.y), relaxed(w.x, 1))),
     [](R o) { return o.r[0] == 1 && o.x == 2; }},
    {"WRC.relaxed", "x=1 | r0=x; y=1 | r1=y; r2=x", true,
     COPPICE_THREE(relaxed(w.x, 1), (r[0] = relaxed(w.x), relaxed(w.y, 1)),
                   (r[1] = relaxed(w.y), r[2] = relaxed(w.x))),
     end_of_chain_is_old},
    {"WRC.release_acquire", "x=1 | r0=x; y=1 release | r1=y acquire; r2=x", false,
     COPPICE_THREE(relaxed(w.x, 1), (r[0] = relaxed(w.x), release(w.y, 1)),
                   (r[1] = acquire(w.y), r[2] = relaxed(w.x))),
     end_of_chain_is_old},
    {"ISA2.release_acquire", "x=1; y=1 release | r0=y acquire; z=1 release | r1=z acquire; r2=x (x plain)",
     false,
     COPPICE_THREE((plain(w.x, 1), release(w.y, 1)), (r[0] = acquire(w.y), release(w.z, 1)),
                   (r[1] = acquire(w.z), r[2] = plain(w.x))),
     end_of_chain_is_old},
    {"ISA2.relaxed", "x=1; y=1 | r0=y; z=1 | r1=z acquire; r2=x", true,
     COPPICE_THREE((plain(w.x, 1), relaxed(w.y, 1)), (r[0] = relaxed(w.y), relaxed(w.z, 1)),
                   (r[1] = acquire(w.z), r[2] = plain(w.x))),
     end_of_chain_is_old},
    {"CoRR", "x=1; x=2 | r0=x; r1=x: r0=2, r1=1 or 0; or r0=1, r1=0", false,
     COPPICE_TWO((relaxed(w.x, 1), relaxed(w.x, 2)), (r[0] = relaxed(w.x), r[1] = relaxed(w.x))),
     [](R o) { return o.r[0] > o.r[1]; }},
    {"CoRR.two_readers", "x=1 | x=2 | r0=x; r1=x | r2=x; r3=x: 1, 2 and 2, 1", false,
     COPPICE_FOUR(relaxed(w.x, 1), relaxed(w.x, 2), (r[0] = relaxed(w.x), r[1] = relaxed(w.x)),
                  (r[2] = relaxed(w.x), r[3] = relaxed(w.x))),
     [](R o) { return o.r[0] == 1 && o.r[1] == 2 && o.r[2] == 2 && o.r[3] == 1; }},
    {"CoRW", "r0=x; x=1 | x=2: r0=2 and x=2 at the end, or r0=1", false,
     COPPICE_TWO((coppice_simt_load_later(w.x, &r[0], 4, true), relaxed(w.x, 1), coppice_simt_await(&r[0])),
                 relaxed(w.x, 2)),
     [](R o) { return o.r[0] == 1 || (o.r[0] == 2 && o.x == 2); }},
    {"CoWR", "x=1; r0=x | x=2: r0=0, or r0=2 and x=1 at the end", false,
     COPPICE_TWO((relaxed(w.x, 1), r[0] = relaxed(w.x)), relaxed(w.x, 2)),
     [](R o) { return o.r[0] == 0 || (o.r[0] == 2 && o.x == 1); }},
};

constexpr uint32_t kLanes = 32, kWords = 48;  // a line each for x, y and z

struct Executions {
  alignas(64) uint32_t words[kLanes][kWords];
  LitmusResult results[kLanes];
  const LitmusCase* litmus;
};

LitmusWords words_of(Executions& all, uint32_t i) {
  const uint32_t step = all.litmus->words == LitmusWordsLie::kInOneLine ? 1 : 16;
  uint32_t* const first = all.words[i];
  return {first, first + step, first + 2 * step};
}

void run_executions(const LaunchBlock* block, uint64_t begin, uint64_t) {
  auto& all = *static_cast<Executions*>(block->trees[0]);
  const LitmusProgram& program = *all.litmus->program;
  const uint32_t lane = coppice_simt_lane();
  uint32_t thread = static_cast<uint32_t>(begin), execution = lane;
  if (all.litmus->place == LitmusPlace::kWarps) thread = lane / 32, execution = lane % 32;
  if (all.litmus->place == LitmusPlace::kLanes) thread = lane % 4, execution = lane / 4;
  if (thread < program.threads)
    program.run(thread, words_of(all, execution), all.results[execution].r);
  else if (program.in_one_block_only)
    coppice_simt_numbered_barrier(1);
}

Options options_for(const LitmusCase& c, uint64_t seed) {
  Options options{.seed = seed, .threads_per_block = 32, .blocks_per_multiprocessor = 2};
  if (c.place == LitmusPlace::kWarps) options.threads_per_block = 32 * static_cast<int>(c.program->threads);
  return options;
}

}  // namespace

const std::vector<LitmusProgram>& litmus_programs() {
  static const std::vector<LitmusProgram> all(std::begin(kPrograms), std::end(kPrograms));
  return all;
}

std::vector<LitmusCase> litmus_cases(const LitmusProgram& program) {
  std::vector<LitmusCase> all;
  for (const auto words : {LitmusWordsLie::kInOneLine, LitmusWordsLie::kInTwoLines}) {
    if (!program.in_one_block_only) all.push_back({&program, LitmusPlace::kBlocks, words});
    all.push_back({&program, LitmusPlace::kWarps, words});
    all.push_back({&program, LitmusPlace::kLanes, words});
  }
  return all;
}

std::string name_of(const LitmusCase& c) {
  constexpr const char* kPlaces[] = {"blocks", "warps", "lanes"};
  return fmt::format("{} {} {}", c.program->name, kPlaces[static_cast<int>(c.place)],
                     c.words == LitmusWordsLie::kInOneLine ? "one_line" : "two_lines");
}

LitmusCount run_litmus(const LitmusCase& c, uint64_t executions, uint64_t seed, bool until_seen) {
  // Blocks and warps of one block would else run in the same order.
  Machine machine(options_for(c, 3 * seed + static_cast<uint64_t>(c.place)));
  const uint32_t at_a_time = c.place == LitmusPlace::kLanes ? 8 : kLanes;
  const uint64_t blocks = c.place == LitmusPlace::kBlocks ? c.program->threads : 1;
  LitmusCount count;
  while (count.executions < executions && !(until_seen && count.seen != 0)) {
    Executions all{};
    all.litmus = &c;
    LaunchBlock block{};
    block.trees[0] = &all;
    machine.run(c.program->name, block, run_executions, blocks, 0);
    for (uint32_t i = 0; i < at_a_time; ++i) {
      const LitmusWords at = words_of(all, i);
      all.results[i].x = *at.x, all.results[i].y = *at.y;
      count.seen += c.program->is_seen(all.results[i]);
    }
    count.executions += at_a_time;
  }
  return count;
}

}  // namespace coppice::simt
