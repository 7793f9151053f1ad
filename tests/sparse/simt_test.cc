// Kernels on the emulated GPU: they give what they give on the CPU, accesses of every kind go through its views, and
// faults that only a GPU would show are found, named and replayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "core/error.h"
#include "gpu/device.h"
#include "gpu/simt/machine.h"
#include "heat.kernels.h"
#include "jit.kernels.h"
#include "simt.kernels.h"
#include "sparse/device/random.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "topology_model.kernels.h"

namespace coppice {
namespace {

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}
std::string error_of(const AsyncValueRef<Chain>& done) {
  wait(done);
  return done.is_error() ? done.error().what() : "";
}

// ---- the same as on the cpu device

TEST(Simt, ABlocksKernelIsRunOnceForEachBlock) {
  const IntrusivePtr<Device> device = Device::simt();
  Program program(device);
  Tree tree(device), totals(device);
  Node leaf = tree.root().pointer({8, 8}).dense({4, 4});
  Field<int> x = leaf.place<int>("x"), sum = totals.root().dense({1, 1}).place<int>("sum");
  std::vector<std::array<int32_t, 3>> coords;
  for (int i = 0; i < 20; ++i) coords.push_back({4 * (i % 7), 4 * (i / 7), 0});
  finish(leaf.activate(coords));
  finish(program.launch(count_block2, over(leaf), x, sum, 16));
  finish(program.launch(count_block2, over(leaf), x, sum, 16));
  EXPECT_EQ(wait_read(sum, {0, 0}), 40);
  const std::vector<int> values = wait_read(x, {0, 0}, {32, 32});
  EXPECT_EQ(std::count(values.begin(), values.end(), 2), 20 * 16);
  EXPECT_EQ(std::count(values.begin(), values.end(), 0), 32 * 32 - 20 * 16);
}

// A shell of leaves, some steps of heat on it, and what is found by lookups and sums.
std::vector<float> heat_on(const IntrusivePtr<Device>& device) {
  constexpr int n = 12;
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({4, 4, 4}).dense({4, 4, 4});
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
  program.launch(grow_shell, range(n * n * n), now, Shell{{6, 6, 6}, 4, 1}, n);
  for (int step = 0; step < 2; ++step) {
    program.launch(diffuse, over(leaf), Heat{now, next}, 0.1f);
    program.launch(diffuse, over(leaf), Heat{next, now}, 0.1f);
  }
  program.wait();
  std::vector<float> values = wait_read(now, {0, 0, 0}, {16, 16, 16});
  double sum = 0;
  uint64_t count = 0;
  finish(program.launch(sum_cells, over(leaf), now, &sum, &count));
  values.push_back(static_cast<float>(count));
  values.push_back(static_cast<float>(leaf.wait_num_active_blocks()));
  return values;
}

TEST(Simt, AStencilOverAGrownTreeGivesTheBitsItGivesOnTheCpu) {
  const std::vector<float> expected = heat_on(Device::cpu(2));
  ASSERT_GT(std::set<float>(expected.begin(), expected.end()).size(), 100u) << "the scene is too dull";
  for (const uint64_t seed : {1u, 2u}) {
    const std::vector<float> values = heat_on(Device::simt({.seed = seed}));
    ASSERT_EQ(values.size(), expected.size());
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), 4 * values.size()), 0) << "seed " << seed;
  }
}

// Random activation, lookups, deactivation and collection: values and the blocks of the list, in its order.
std::vector<int> topology_on(const IntrusivePtr<Device>& device) {
  constexpr int kCount = 100;
  Program program(device);
  Tree tree(device);
  Node block = tree.root().pointer({4, 4});
  Node leaf = block.pointer({4, 4}).bitmasked({2, 2});
  Field<int> x = leaf.place<int>("x");
  std::mt19937 random(3);
  std::vector<int> found;
  for (int round = 0; round < 3; ++round) {
    std::vector<int> coords, out(kCount), active(kCount), ones(kCount, round + 1);
    for (int i = 0; i < kCount; ++i)
      coords.insert(coords.end(), {static_cast<int>(random() % 32), static_cast<int>(random() % 32)});
    finish(program.launch(set_coords2, range(kCount), x, coords.data(), ones.data()));
    finish(program.launch(deactivate_coords2, range(kCount / 4), leaf.topology(), coords.data()));
    finish(program.launch(look_up2, range(kCount), x, leaf.topology(), coords.data(), out.data(),
                          active.data()));
    found.insert(found.end(), out.begin(), out.end());
    found.insert(found.end(), active.begin(), active.end());
    std::vector<int> origins(2 * leaf.wait_num_active_blocks());
    finish(program.launch(list_origins2, over(leaf), origins.data()));
    found.insert(found.end(), origins.begin(), origins.end());
    std::vector<int> visits(32 * 32);
    finish(program.launch(count_visits2, over(leaf), visits.data(), 0, 0, 32));
    found.insert(found.end(), visits.begin(), visits.end());
  }
  return found;
}

TEST(Simt, TopologyIsWhatItIsOnTheCpu) {
  const std::vector<int> expected = topology_on(Device::cpu(2));
  for (const uint64_t seed : {1u, 2u, 3u})
    EXPECT_EQ(topology_on(Device::simt({.seed = seed})), expected) << "seed " << seed;
}

// ---- every kind of access

struct Accesses {
  static constexpr int kItems = 130, kBytes = 9;
  std::vector<Odd> odd = std::vector<Odd>(kItems), odd_to = odd;
  std::vector<Wide> wide = std::vector<Wide>(kItems), wide_to = wide;
  std::unique_ptr<bool[]> flags{new bool[kItems]()}, flags_to{new bool[kItems]()};
  std::vector<float> floats = std::vector<float>(8 * kItems), floats_to = floats;
  std::vector<unsigned char> bytes = std::vector<unsigned char>(kBytes * kItems), bytes_to = bytes;

  explicit Accesses(const IntrusivePtr<Device>& device) {
    for (int i = 0; i < kItems; ++i) {
      odd[i] = {uint8_t(i), uint64_t(i) << 40, uint16_t(3 * i)};
      for (int k = 0; k < 40; ++k) wide[i].values[k] = static_cast<float>(100 * i + k);
      flags[i] = i % 3 == 0;
      for (int k = 0; k < 8; ++k) floats[8 * i + k] = static_cast<float>(i) + 0.125f * static_cast<float>(k);
      for (int k = 0; k < kBytes; ++k) bytes[kBytes * i + k] = static_cast<unsigned char>(5 * i + k);
    }
    Program program(device);
    finish(program.launch(copy_all, range(kItems), odd.data(), odd_to.data(), wide.data(), wide_to.data(),
                          flags.get(), flags_to.get(), floats.data(), floats_to.data(), bytes.data(),
                          bytes_to.data(), kBytes));
  }
};

TEST(Simt, AccessesOfEveryKindDoWhatTheyDoOnTheCpu) {
  const Accesses expected(Device::cpu(1)), got(Device::simt());
  EXPECT_EQ(expected.bytes_to[0], 7) << "memcmp() found a difference";
  for (int i = 0; i < Accesses::kItems; ++i) {
    EXPECT_EQ(got.odd_to[i].a, expected.odd_to[i].a);
    EXPECT_EQ(got.odd_to[i].b, expected.odd_to[i].b);
    EXPECT_EQ(got.odd_to[i].c, expected.odd_to[i].c);
    EXPECT_EQ(std::memcmp(&got.wide_to[i], &expected.wide_to[i], sizeof(Wide)), 0) << i;
    EXPECT_EQ(got.flags_to[i], expected.flags_to[i]);
  }
  EXPECT_EQ(got.floats_to, expected.floats_to);
  EXPECT_EQ(got.bytes_to, expected.bytes_to);
}

TEST(Simt, MathFunctionsAreTheHosts) {
  for (const auto& device : {Device::cpu(1), Device::simt()}) {
    std::vector<float> in(70), out(140);
    for (int i = 0; i < 70; ++i) in[i] = 0.1f * static_cast<float>(i);
    finish(Program(device).launch(sine_and_cosine, range(70), in.data(), out.data()));
    for (int i = 0; i < 70; ++i) {
      EXPECT_FLOAT_EQ(out[2 * i], sinf(in[i])) << device->name();
      EXPECT_FLOAT_EQ(out[2 * i + 1], cosf(in[i])) << device->name();
    }
  }
}

// ---- what a GPU has

TEST(Simt, ABlocksThreadsShareFastMemoryAndABarrier) {
  auto device = Device::simt({.threads_per_block = 96});
  Program program(device);
  std::vector<uint32_t> out(96 * 5);
  Launch launch = program.make_launch(pass_on, range(96 * 5), out.data());
  launch.shared_bytes = 96 * 4;
  finish(device->default_stream().launch(std::move(launch)));
  for (uint32_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i / 96 * 96 + (i % 96 + 1) % 96 + 1000) << i;
}

// However the lanes of a warp are split, each group that meets has one leader, and no lane is in two groups.
TEST(Simt, LanesThatMeetElectOneOfThem) {
  std::set<uint32_t> leaders_seen;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(Device::simt({.seed = seed}));
    std::vector<uint32_t> out(256);
    uint32_t leaders = 0;
    finish(program.launch(elect, range(256), out.data(), &leaders));
    for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(out[i], hash_u32(5, i) % 3 == 0 ? 0u : 1u) << i;
    leaders_seen.insert(leaders);
  }
  EXPECT_GE(*leaders_seen.begin(), 8u * 4u) << "8 warps, nearly all of them with 5 groups";
  EXPECT_GT(leaders_seen.size(), 1u) << "every seed splits warps in the same way";
}

TEST(Simt, LaunchesAreNumberedWithoutTheRuntimesOwn) {
  for (const auto& device : {Device::cpu(2), Device::simt()}) {
    Program program(device);
    Tree tree(device);
    Node leaf = tree.root().pointer({16, 16}).dense({4, 4});
    Field<int> x = leaf.place<int>("x");
    std::vector<uint64_t> numbers(4, 99);
    std::vector<int> coords{5, 6, 7, 7};
    program.launch(note_number, range(1), numbers.data(), 0);
    program.launch(grow_coords2, range(2), x, coords.data(), 9);
    program.launch(note_number, range(1), numbers.data(), 1);
    finish(program.launch(set_cells2, over(leaf), x));  // which makes a list of its own
    const BoundLaunch bound = program.bind(note_number, range(1), numbers.data(), 2);
    finish(bound.launch());
    EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 2, 4, 99})) << device->name();
    finish(bound.launch());
    EXPECT_EQ(numbers[2], 5u) << device->name();
    Launch own = program.make_launch(note_number, range(1), numbers.data(), 3);
    finish(device->create_stream()->launch(std::move(own)));
    EXPECT_EQ(numbers[3], 0u) << "another stream counts for itself: " << device->name();
  }
}

// ---- faults

constexpr int kTakers = 192;
enum class OpenedBy { kPlainStore, kRelaxedStore, kRelease };  // as in simt.kernels.cc

// What was counted, or why the launch was given up: a lock that is never seen to be open again.
std::string counted(uint64_t seed, OpenedBy opened_by) {
  Program program(Device::simt({.seed = seed, .max_idle_steps = 20000}));
  Counter counter{};
  const std::string error =
      error_of(program.launch(count_under_lock, range(kTakers), &counter, static_cast<int>(opened_by)));
  EXPECT_LE(counter.value, kTakers);
  return error.empty() ? std::to_string(counter.value) : error;
}
const std::string kAll = std::to_string(kTakers);

// Seen to fail when a release store did not write back what was stored before it.
TEST(Simt, ALockThatReleasesCountsAll) {
  for (uint64_t seed = 1; seed <= 15; ++seed)
    ASSERT_EQ(counted(seed, OpenedBy::kRelease), kAll) << "seed " << seed;
}
// A relaxed store where a release is due is right on any x86. This and the next were seen to fail with weak_views = false,
// and when loads and stores of kernels were not instrumented.
TEST(Simt, AMissingReleaseLosesCountsWithSomeSeed) {
  int losses = 0;
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    const std::string count = counted(seed, OpenedBy::kRelaxedStore);
    EXPECT_EQ(count.find("simt.count"), std::string::npos) << count;
    if (count == kAll) continue;
    ++losses;
    EXPECT_EQ(counted(seed, OpenedBy::kRelaxedStore), count)
        << "seed " << seed << " gives another result the second time";
  }
  EXPECT_GE(losses, 1);
}
TEST(Simt, APlainStoreToALockFailsWithSomeSeed) {
  int failures = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) failures += counted(seed, OpenedBy::kPlainStore) != kAll;
  EXPECT_GE(failures, 1);
}

TEST(Simt, ABarrierInABranchIsAnErrorThatItsSeedReplays) {
  auto message = [](uint64_t seed) {
    auto device = Device::simt({.seed = seed});
    Program program(device);
    std::vector<uint32_t> out(100, 7);
    const std::string error = error_of(program.launch(wait_in_a_branch, range(100), out.data()));
    EXPECT_NE(error.find("simt.wait_in_a_branch"), std::string::npos) << error;
    EXPECT_NE(error.find(std::to_string(seed)), std::string::npos) << error;
    EXPECT_NE(error.find("barrier"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;

    // The device goes on.
    device->default_stream().clear_error();
    uint32_t leaders = 0;
    EXPECT_EQ(error_of(program.launch(elect, range(100), out.data(), &leaders)), "");
    for (uint32_t i = 0; i < 100; ++i) {
      if (hash_u32(5, i) % 3 != 0) {
        EXPECT_EQ(out[i], 1u) << i;
      }
    }
    EXPECT_GT(leaders, 0u);
    return error;
  };
  EXPECT_EQ(message(123456), message(123456));
}

}  // namespace
}  // namespace coppice
