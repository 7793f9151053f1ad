// The emulated GPU finds what a GPU faults on or takes for something else, and names kernel and line; and
// compiled kernels see memory as weak as PTX lets it be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/host_access.h"
#include "gpu/simt/machine.h"
#include "simt.kernels.h"
#include "sparse/program.h"
#include "tests/sparse/staging.h"

namespace coppice {
namespace {

using testing::MatchesRegex;

constexpr int kThreads = 64;

// Launches a kernel on device memory and gives its error, or "".
class SimtFaults : public testing::Test {
 protected:
  template <class K, class... A>
  std::string error_of(const K& kernel, const A&... arguments) {
    Launch launch = program_.make_launch(kernel, range(kThreads), arguments...);
    launch.shared_bytes = kThreads * 4;
    const auto done = device_->default_stream().launch(std::move(launch));
    wait(done);
    return done.is_error() ? done.error().what() : "";
  }
  uint32_t* memory(size_t words) {
    buffers_.push_back(wait_device_copy(*device_, std::vector<uint32_t>(words)));
    return buffers_.back()->as<uint32_t>();
  }
  std::vector<uint32_t> values(size_t words) {
    std::vector<uint32_t> all(words);
    device_->wait_copy(all.data(), buffers_.back()->data(), words * 4);
    return all;
  }

  const IntrusivePtr<Device> device_ = Device::simt({.seed = 5});
  Program program_{device_};
  std::vector<IntrusivePtr<Buffer>> buffers_;
};

const std::string kStart = "simt\\.";
const std::string kThread = ": emulated GPU, seed 5, launch [0-9]+: block 0 warp [01] lane [0-9]+ ";
std::string at(const std::string& kernel) { return " at " + kernel + " at .*simt\\.kernels\\.cc:[0-9]+"; }

TEST_F(SimtFaults, AMisalignedAddressIsNamed) {
  const auto* const bytes = reinterpret_cast<unsigned char*>(memory(4));
  uint32_t* const out = memory(kThreads);
  EXPECT_THAT(
      error_of(read_misaligned, bytes, out),
      MatchesRegex(kStart + "read_misaligned" + kThread + "uses a misaligned address: a load of 4 bytes" +
                   at("read_misaligned") + ", which needs a multiple of 4 and gets one of 1"));
}
TEST_F(SimtFaults, WhatIsPackedIsNoFault) {
  const auto* const bytes = reinterpret_cast<unsigned char*>(memory(4));
  EXPECT_EQ(error_of(read_packed, bytes, memory(kThreads)), "");
}

TEST_F(SimtFaults, AnAddressOutsideOfEveryBufferIsNamed) {
  uint32_t* const values = memory(10);
  uint32_t* const out = memory(kThreads);
  EXPECT_EQ(error_of(read_at, values, int64_t{9}, out), "");
  EXPECT_THAT(error_of(read_at, values, int64_t{10}, out),
              MatchesRegex(kStart + "read_at" + kThread + "touches memory of no buffer: a load of 4 bytes" +
                           at("read_at") + ", at byte 40 from a buffer of 40 bytes on"));
  device_->default_stream().clear_error();
  EXPECT_THAT(error_of(write_at, values, int64_t{12}),
              MatchesRegex(kStart + "write_at" + kThread + "touches memory of no buffer: a store of 4 bytes" +
                           at("write_at") + ", at byte 48 from a buffer of 40 bytes on"));
  device_->default_stream().clear_error();
  EXPECT_THAT(
      error_of(add_at_index, values, int64_t{11}),
      MatchesRegex(kStart + "add_at_index" + kThread + "touches memory of no buffer: an atomic of 4 bytes" +
                   at("add_at_index") + ", at byte 44 from a buffer of 40 bytes on"));
}
TEST_F(SimtFaults, ABufferThatIsGoneIsNone) {
  uint32_t* const out = memory(kThreads);
  const uint32_t* const gone = wait_device_copy(*device_, std::vector<uint32_t>(8))->as<uint32_t>();
  EXPECT_THAT(error_of(read_at, gone, int64_t{0}, out), testing::HasSubstr("touches memory of no buffer"));
}

TEST_F(SimtFaults, AReadOfSharedMemoryThatNobodyWroteIsNamed) {
  EXPECT_THAT(error_of(read_fresh_memory, memory(kThreads)),
              MatchesRegex(kStart + "read_fresh_memory" + kThread +
                           "reads shared memory that nobody wrote: a load of 4 bytes" +
                           at("read_fresh_memory") + ", from byte [0-9]+ on"));
}

TEST_F(SimtFaults, ARaceInSharedMemoryIsNamedWithBothPlaces) {
  EXPECT_THAT(error_of(pass_on_at_once, memory(kThreads)),
              MatchesRegex(kStart + "pass_on_at_once" + kThread +
                           "(races in shared memory: a (load|store) of 4 bytes" + at("pass_on_at_once") +
                           ", from byte [0-9]+ on, with a (load|store) of warp [01] lane [0-9]+" +
                           at("pass_on_at_once") +
                           " and no barrier between them|reads shared memory that nobody wrote: .*)"));
}
TEST_F(SimtFaults, WhatIsOrderedIsNoRace) {
  EXPECT_EQ(error_of(pass_on, memory(kThreads)), "");
  EXPECT_EQ(error_of(pass_on_in_warp, memory(kThreads)), "");
  EXPECT_EQ(error_of(pass_on_by_flag, memory(kThreads), memory(kThreads)), "");
  EXPECT_EQ(error_of(count_in_shared, memory(kThreads)), "");
  EXPECT_EQ(values(kThreads), std::vector<uint32_t>(kThreads, kThreads));
}

// ---- litmus programs through the compiler

constexpr int kLaunches = 160;  // of 64 executions: 10,240

// Executions in which all of `outs` words per execution are 1.
template <class K>
int count_seen(const K& kernel, int outs) {
  constexpr int kExecutions = 64;
  const IntrusivePtr<Device> device = Device::simt();
  Program program(device);
  int seen = 0;
  for (int launch = 0; launch < kLaunches; ++launch) {
    std::vector<uint32_t> words(32 * kExecutions), out(static_cast<size_t>(outs) * kExecutions);
    run_on(program, kernel, range(2 * kExecutions), words, out);
    for (int i = 0; i < kExecutions; ++i) {
      bool all = true;
      for (int k = 0; k < outs; ++k) all = all && out[static_cast<size_t>(outs * i + k)] == 1;
      seen += all;
    }
  }
  return seen;
}

// Each was seen to fail with the loads or stores of its kernel done at once.
TEST(SimtCompiledLitmus, ShowsWhatPtxAllows) {
  EXPECT_GT(count_seen(pass_relaxed_message, 1), 0);
  EXPECT_GT(count_seen(buffer_stores, 2), 0);
  EXPECT_GT(count_seen(buffer_loads, 2), 0);
}
TEST(SimtCompiledLitmus, NeverShowsWhatPtxForbids) {
  EXPECT_EQ(count_seen(buffer_stores_with_fences, 2), 0);
  EXPECT_EQ(count_seen(buffer_dependent_loads, 2), 0);
}

}  // namespace
}  // namespace coppice
