// The cpu device's deterministic mode: the same bits from run to run where a result
// depends on the order of the items.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "deterministic.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"

namespace coppice {
namespace {

constexpr int kCells = 7, kRuns = 20;
constexpr int64_t kItems = 50'000;

struct Results {
  std::vector<float> sums, many;
  std::vector<int> integers, last;
  std::vector<unsigned char> found;
  bool operator<(const Results& other) const {
    return std::tie(sums, many, integers, last, found) <
           std::tie(other.sums, other.many, other.integers, other.last, other.found);
  }
};

Results run(const CpuOptions& options) {
  const auto device = Device::cpu(options);
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({8}).dense({1}), noted = tree.root().pointer({8});
  Field<float> sum = leaf.place<float>("sum"), many = leaf.place<float>("many");
  Field<int> integers = leaf.place<int>("integers"), last = leaf.place<int>("last");
  noted.place<int>("unused");
  Results r;
  r.found.resize(kItems);
  program.launch(set_last, range(kItems), last, kCells);
  program.launch(add_fractions, range(kItems), sum, kCells);
  program.launch(add_many_fractions, range(kItems / 10), many, kCells);
  program.launch(add_integers, range(kItems), integers, kCells);
  program.launch(note_first, range(kItems), noted.topology(), kCells, r.found.data());
  program.wait();
  r.sums = wait_read(sum, {0}, {kCells});
  r.many = wait_read(many, {0}, {kCells});
  r.integers = wait_read(integers, {0}, {kCells});
  r.last = wait_read(last, {0}, {kCells});
  return r;
}

// Without the mode the results differ from run to run, which is printed, and is nobody's promise.
TEST(Deterministic, RunsGiveTheSameBitsWithAnyNumberOfThreads) {
  std::set<Results> results, others;
  for (int i = 0; i < kRuns; ++i) {
    results.insert(run({.threads = i % 4 == 0 ? 1 + i / 4 : 4, .deterministic = true}));
    others.insert(run({.threads = 4}));
  }
  EXPECT_EQ(results.size(), 1u);
  fmt::print("{} runs without the mode gave {} results\n", kRuns, others.size());
  const Results& r = *results.begin();
  for (int cell = 0; cell < kCells; ++cell) {
    EXPECT_EQ(r.last[cell], (kItems - 1 - cell) / kCells * kCells + cell) << "not the last writer";
    float in_order = 0;
    for (int64_t i = cell; i < kItems; i += kCells) in_order += 1.0f / static_cast<float>(1 + i % 1013);
    EXPECT_EQ(r.sums[cell], in_order) << cell;
  }
  EXPECT_EQ(std::accumulate(r.found.begin(), r.found.end(), int64_t{0}), kItems - kCells);
  for (const Results& other : others) EXPECT_EQ(other.integers, r.integers);
}

TEST(Deterministic, LaunchesSayWhetherTheirOrderMatters) {
  const auto device = Device::cpu({.threads = 4, .deterministic = true});
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({8}).dense({1});
  Field<float> sum = leaf.place<float>("sum");
  Field<int> x = leaf.place<int>("x");
  EXPECT_TRUE(program.make_launch(add_fractions, range(9), sum, kCells).is_ordered());
  EXPECT_TRUE(program.make_launch(set_last, range(9), x, kCells).is_ordered());
  EXPECT_FALSE(program.make_launch(add_integers, range(9), x, kCells).is_ordered())
      << "integers may be added in any order";
  EXPECT_EQ(device->description().substr(device->description().rfind(", ")), ", deterministic");
}

TEST(Deterministic, AnOrderedLaunchRunsInOrderOnOneThread) {
  const auto device = Device::cpu({.threads = 4, .deterministic = true});
  Program program(device);
  uint64_t turn = 0;
  std::vector<uint64_t> turns(kItems), expected(kItems);
  std::iota(expected.begin(), expected.end(), uint64_t{0});
  Launch launch = program.make_launch(take_turns, range(kItems), &turn, turns.data());
  EXPECT_TRUE(launch.is_ordered()) << "each item draws a number";
  wait(device->default_stream().launch(std::move(launch)));
  EXPECT_EQ(turns, expected);
}

}  // namespace
}  // namespace coppice
