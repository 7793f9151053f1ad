// The rung of litmus programs: what two threads of different thread blocks may see of each other's stores
// (see ladder.h).
//
// Forbidden by PTX's memory model, and by what our device intrinsics promise: message passing with release
// and acquire, by fences, and by read-modify-writes; two reads of one place in the wrong order. One case of
// it fails the rung. Allowed, and counted: message passing with nothing but relaxed accesses, store buffering
// with release and acquire, load buffering.
#include <fmt/format.h>

#include <vector>

#include "ladder.kernels.h"
#include "tests/apps/ladder/ladder.h"
#include "tests/sparse/staging.h"

namespace coppice::ladder {
namespace {

struct LitmusProgram {
  const char* name;
  bool is_forbidden;
  uint32_t first, second;  // what must not be seen, or is counted
};
constexpr LitmusProgram kPrograms[] = {
    {"MP release acquire", true, 1, 0},   {"MP fences", true, 1, 0},
    {"MP read-modify-write", true, 1, 0}, {"CoRR", true, 1, 0},
    {"MP relaxed", false, 1, 0},          {"SB release acquire", false, 0, 0},
    {"LB relaxed", false, 1, 1},
};
constexpr uint32_t kUnseen = 9;

struct Count {
  uint64_t instances = 0, outcomes = 0, unwritten = 0;
};

// Places of one instance in one line of 64 bytes, or in two that lie a while apart.
Count count_outcomes(Bench& bench, int program, bool in_one_line) {
  const int lanes = 32, pairs = bench.scaled(512, 4), rounds = bench.scaled(40, 2);
  const auto instances = static_cast<size_t>(lanes * pairs);
  const uint32_t stride = in_one_line ? 16 : 32, apart = in_one_line ? 1 : 16;
  Count count;
  for (int round = 0; round < rounds; ++round) {
    const auto device = bench.device();
    const auto zeros = [&](size_t n) { return wait_device_copy(*device, std::vector<uint32_t>(n)); };
    // In one array, where they shall lie in one line; else in two.
    const IntrusivePtr<Buffer> x = zeros(instances * stride), meet = zeros(instances);
    const IntrusivePtr<Buffer> y = in_one_line ? x : zeros(instances * stride);
    std::vector<uint32_t> seen(2 * instances, kUnseen);
    const IntrusivePtr<Buffer> seen_there = wait_device_copy(*device, seen);
    const LitmusRoom room{x->as<uint32_t>(),
                          y->as<uint32_t>(),
                          meet->as<uint32_t>(),
                          seen_there->as<uint32_t>(),
                          stride,
                          apart};
    finish(bench.program().launch(litmus, range(2 * pairs), room, program, lanes));
    device->wait_copy(seen.data(), seen_there->data(), 4 * seen.size());
    for (size_t k = 0; k < instances; ++k) {
      ++count.instances;
      if (seen[2 * k] == kUnseen || seen[2 * k + 1] == kUnseen) ++count.unwritten;
      if (seen[2 * k] == kPrograms[program].first && seen[2 * k + 1] == kPrograms[program].second)
        ++count.outcomes;
    }
  }
  return count;
}

}  // namespace

std::string run_litmus(Bench& bench) {
  std::string allowed;
  uint64_t forbidden_tries = 0;
  for (int program = 0; program < static_cast<int>(std::size(kPrograms)); ++program) {
    const LitmusProgram& of = kPrograms[program];
    for (const bool in_one_line : {true, false}) {
      const Count count = count_outcomes(bench, program, in_one_line);
      const char* const where = in_one_line ? "one line" : "two lines";
      // A device whose thread blocks have one thread runs one instance of 32.
      expect(count.unwritten <= count.instances / 32 * 31,
             fmt::format("{} in {}: {} of {} instances wrote nothing", of.name, where, count.unwritten,
                         count.instances));
      const uint64_t ran = count.instances - count.unwritten;
      if (of.is_forbidden) {
        forbidden_tries += ran;
        expect(count.outcomes == 0, fmt::format("{} in {}: seen {} times of {} although it is forbidden",
                                                of.name, where, count.outcomes, ran));
      } else {
        allowed += fmt::format("; {} in {} {} of {}", of.name, where, count.outcomes, ran);
      }
    }
  }
  return fmt::format("forbidden 0 of {}{}", forbidden_tries, allowed);
}

}  // namespace coppice::ladder
