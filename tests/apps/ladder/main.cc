// coppice-gpu-ladder (see ladder.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "gpu/kernel_store.h"
#include "ladder.kernels.h"
#include "tests/apps/ladder/ladder.h"

namespace coppice::ladder {
namespace {

constexpr bool kTakesWrong = true;
constexpr Rung kRungs[] = {
    {"driver", "", run_driver},
    {"memory", "driver", run_memory},
    {"copy", "memory", run_copy},
    {"kernel", "copy", run_kernel, kTakesWrong},
    {"barrier", "kernel", run_barrier, kTakesWrong},
    {"shared", "barrier", run_shared, kTakesWrong},
    {"atomics", "kernel", run_atomics, kTakesWrong},
    {"litmus", "atomics", run_litmus},
    {"activation", "atomics", run_activation},
    {"list", "activation", run_list},
    {"collection", "activation", run_collection},
    {"recording", "atomics", run_recording, kTakesWrong},
    {"mpm", "shared list collection recording", run_mpm},
};

// Each kernel as the rungs launch it: over trees of the same layout, since that is part of its code.
std::string compile_all(Bench& bench) {
  Program& program = bench.program();
  LineTree line(bench.device());
  ListTree list(bench.device());
  uint32_t* const words = nullptr;
  program.compile(write_squares, range(1), words, 0u);
  program.compile(add_rounds, range(1), words, words, 0, 0u);
  program.compile(write_coordinates, over(line.leaf), line.x);
  program.compile(reverse_by_shared, over(line.leaf), line.x, line.y, 0);
  program.compile(add_up, range(1), static_cast<Totals*>(nullptr), words, 0u);
  program.compile(count_by_lock, range(1), static_cast<Locked*>(nullptr));
  program.compile(litmus, range(1), LitmusRoom{}, 0, 0);
  program.compile(grow_cells, range(1), line.x, 0, 0);
  program.compile(smooth_cells, over(line.leaf), line.x, line.y);
  program.compile(sum_up, over(line.leaf), line.y, static_cast<uint64_t*>(nullptr));
  program.compile(append_items, range(1), list.items, 0);
  program.compile(mark_items, over(list.lists), list.items, 0, words);
  program.compile(drop_blocks, range(1), line.block.topology(), 0);
  compile_mpm(bench);
  bench.device()->kernels().wait_compiled();
  return "the rungs' kernels are compiled";
}

// Prints what a rung found, or why it found nothing, in one line; its result is how the process ends.
int run(std::string_view name, std::string (*rung)(Bench&), const std::string& device, bool takes_wrong) {
  std::string words;
  int code = kPassed;
  try {
    Bench bench(device, name);
    if (bench.wrong() != 0 && !takes_wrong)
      throw Error(ErrorCode::kUsage, fmt::format("rung {} has no place for a wrong result", name));
    words = rung(bench);
    bench.close();
  } catch (const WrongResult& wrong) {
    words = fmt::format("wrong result: {}", wrong.what()), code = kWrong;
  } catch (const NotRun& reason) {
    words = fmt::format("not run: {}", reason.what()), code = kNotRun;
  } catch (const Error& error) {
    words = fmt::format("error: {}", error.what());
    code = error.code() == ErrorCode::kUsage ? kUsage : kError;
  } catch (const std::exception& error) {
    words = fmt::format("error: {}", error.what()), code = kError;
  }
  std::replace(words.begin(), words.end(), '\n', ' ');
  fmt::print("{}: {}\n", name, words);
  std::fflush(stdout);
  return code;
}

}  // namespace

std::span<const Rung> rungs() { return kRungs; }

}  // namespace coppice::ladder

int main(int count, char** words) {
  using namespace coppice::ladder;
  const std::string name = count > 1 ? words[1] : "", device = count > 2 ? words[2] : "cuda";
  if (name == "--list") {
    for (const Rung& rung : rungs())
      fmt::print("{}{}{}\n", rung.name, rung.needs.empty() ? "" : " ", rung.needs);
    return kPassed;
  }
  if (name == "compile") return run(name, compile_all, device, false);
  for (const Rung& rung : rungs()) {
    if (rung.name == name) return run(name, rung.run, device, rung.takes_wrong);
  }
  fmt::print(stderr, "usage: coppice-gpu-ladder --list | RUNG [cuda|simt|fake] | compile [cuda|simt|fake]\n");
  return kUsage;
}
