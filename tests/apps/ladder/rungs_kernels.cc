// The rungs of kernels over ranges and of thread blocks: kernel, barrier, shared, atomics, recording (see
// ladder.h).
#include <fmt/format.h>

#include <vector>

#include "ladder.kernels.h"
#include "sparse/read_back.h"
#include "tests/apps/ladder/ladder.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/traced.h"

namespace coppice::ladder {

std::string run_kernel(Bench& bench) {
  for (const int n : {1, 31, 129, bench.scaled(10'000'000, 3000)}) {
    std::vector<uint32_t> out(static_cast<size_t>(n), ~0u);
    run_on(bench.program(), write_squares, range(n), out, bench.wrong());
    for (size_t i = 0; i < out.size(); ++i) {
      const auto square = static_cast<uint32_t>(i * i);
      expect(out[i] == square, fmt::format("item {} of {} gives {}, not {}", i, n, out[i], square));
    }
  }
  return "items of ranges, arguments and results";
}

std::string run_barrier(Bench& bench) {
  const int teams = bench.scaled(2000, 3), rounds = bench.scaled(200, 6);
  std::vector<uint32_t> room(static_cast<size_t>(teams) * 2048), sums(2 * static_cast<size_t>(teams));
  run_on(bench.program(), add_rounds, range(teams), room, sums, rounds, bench.wrong());
  for (size_t team = 0; team < static_cast<size_t>(teams); ++team) {
    const uint32_t lanes = sums[2 * team + 1];
    const auto expected = lanes * static_cast<uint32_t>(rounds * (rounds - 1) / 2);
    expect(lanes > 0 && sums[2 * team] == expected,
           fmt::format("thread block {} of {} threads sums up to {}, not {}: a barrier let a thread through",
                       team, lanes, sums[2 * team], expected));
  }
  return fmt::format("{} barriers of {} thread blocks of {} threads", 2 * rounds + 2, teams, sums[1]);
}

std::string run_shared(Bench& bench) {
  LineTree line(bench.device());
  std::vector<std::array<int32_t, 3>> coords;
  for (int block = 0; block < LineTree::kBlocks; ++block)
    coords.push_back({block * LineTree::kBlockCells, 0, 0});
  finish(line.leaf.activate(coords));
  finish(bench.program().launch(write_coordinates, over(line.leaf), line.x));
  finish(bench.program().launch(reverse_by_shared, over(line.leaf), line.x, line.y,
                                static_cast<int>(bench.wrong())));
  const std::vector<int> values = wait_read(line.y, {0}, {LineTree::kCells});
  for (int i = 0; i < LineTree::kCells; ++i) {
    const int first = i / LineTree::kBlockCells * LineTree::kBlockCells;
    const int expected = first + LineTree::kBlockCells - 1 - (i - first);
    expect(values[static_cast<size_t>(i)] == expected,
           fmt::format("cell {} has {} by way of shared memory, not {}", i, values[static_cast<size_t>(i)],
                       expected));
  }
  return fmt::format("{} thread blocks, 1 KiB each", int{LineTree::kBlocks});
}

std::string run_atomics(Bench& bench) {
  const int n = bench.scaled(1'000'000, 1000), locks = bench.scaled(4096, 130);
  Totals totals{.kept = ~uint64_t{0}};
  std::vector<uint32_t> taken(static_cast<size_t>(n));
  run_on(bench.program(), add_up, range(n), inout(totals), taken, bench.wrong());
  const auto count = static_cast<uint64_t>(n);
  const uint64_t sum = count * (count - 1) / 2;
  expect(totals.sum == sum, fmt::format("a sum of whole numbers is {}, not {}", totals.sum, sum));
  expect(totals.exact == static_cast<double>(sum),
         fmt::format("a sum of doubles is {}, not {}", totals.exact, sum));
  expect(totals.bits == (uint64_t{1} << 61) - 1, fmt::format("bits set together are {:x}", totals.bits));
  expect(totals.kept == ~((uint64_t{1} << 59) - 1),
         fmt::format("bits cleared together are {:x}", totals.kept));
  expect(totals.most == count - 1, fmt::format("the largest number is {}, not {}", totals.most, count - 1));
  for (size_t i = 0; i < taken.size(); ++i)
    expect(taken[i] == 1, fmt::format("ticket {} was given {} times", i, taken[i]));
  Locked locked{};
  run_on(bench.program(), count_by_lock, range(locks), inout(locked));
  expect(locked.value == static_cast<uint64_t>(locks),
         fmt::format("{} threads counted {} under a lock", locks, locked.value));
  return fmt::format("{} items in one place each of six kinds, {} under one lock", n, locks);
}

std::string run_recording(Bench& bench) {
  const int n = bench.scaled(100'000, 500), replays = bench.scaled(200, 5);
  const auto device = bench.device();
  Totals none{.kept = ~uint64_t{0}};
  const IntrusivePtr<Buffer> totals = wait_device_copy(*device, &none, 1);
  const IntrusivePtr<Buffer> taken = wait_device_copy(
      *device, std::vector<uint32_t>(static_cast<size_t>(n) * static_cast<size_t>(replays + 1)));
  Function function = traced(
      {bench.program().bind(add_up, range(n), totals->as<Totals>(), taken->as<uint32_t>(), bench.wrong())});
  finish(function.run(1));
  finish(function.run(replays));
  Totals got{};
  device->wait_copy(&got, totals->data(), sizeof got);
  const auto count = static_cast<uint64_t>(n);
  const uint64_t sum = count * (count - 1) / 2 * static_cast<uint64_t>(replays + 1);
  expect(got.sum == sum, fmt::format("{} replays sum up to {}, not {}", replays + 1, got.sum, sum));
  return fmt::format("{} replays of a recording", replays + 1);
}

}  // namespace coppice::ladder
