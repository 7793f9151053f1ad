// gpu/simt/machine.h: wrong uses of warps, barriers and spin loops are found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "gpu/simt/machine.h"
#include "gpu/simt/symbols.h"

namespace coppice::simt {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

alignas(64) uint32_t word = 0;

void well_behaved(const LaunchBlock*, uint64_t, uint64_t) { coppice_simt_block_barrier(); }

// The error of running `kernel` as `blocks` blocks; afterwards the machine must work as before. Nothing is
// printed: seen to fail with AddressSanitizer not told of switches, which then warns of unknown stacks.
std::string error_of(KernelEntry kernel, uint64_t blocks = 1) {
  Machine machine(
      Options{.seed = 7, .multiprocessors = 1, .blocks_per_multiprocessor = 1, .max_idle_steps = 20'000});
  LaunchBlock block{};
  word = 0;
  std::string message;
  testing::internal::CaptureStderr();
  try {
    machine.run("test.kernel", block, kernel, blocks, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    message = error.message();
  }
  machine.run("test.well_behaved", block, well_behaved, 3, 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  EXPECT_THAT(message, StartsWith("test.kernel: emulated GPU, seed 7, launch 1: "));
  return message;
}

void lacks_caller(const LaunchBlock*, uint64_t, uint64_t) {
  if (coppice_simt_lane() == 3) coppice_simt_warp_barrier(0xf0);
  coppice_simt_pause();
}
TEST(SimtMisuse, NamesAMaskThatLacksItsCaller) {
  EXPECT_THAT(error_of(lacks_caller), AllOf(HasSubstr("block 0 warp 0 lane 3: warp barrier at entry"),
                                            HasSubstr("its mask 0x000000f0 lacks its caller")));
}

void reads_outside(const LaunchBlock*, uint64_t, uint64_t) {
  const uint32_t lane = coppice_simt_lane();
  if (lane < 34 && lane >= 32) coppice_simt_shuffle_u32(3, lane, lane - 32 + 1);
  coppice_simt_pause();
}
TEST(SimtMisuse, NamesAShuffleFromALaneOutsideOfItsMask) {
  EXPECT_THAT(error_of(reads_outside),
              AllOf(HasSubstr("block 0 warp 1 lane 1: shuffle at entry"),
                    HasSubstr("it reads from lane 2, which its mask 0x00000003 lacks")));
}

void lane_leaves(const LaunchBlock*, uint64_t, uint64_t) {
  if (coppice_simt_lane() == 5) return;
  if (coppice_simt_lane() < 32) coppice_simt_ballot(~0u, true);
  coppice_simt_pause();
}
TEST(SimtMisuse, NamesALaneOfAMaskThatHasEnded) {
  const std::string error = error_of(lane_leaves);
  EXPECT_THAT(error,
              ContainsRegex("its mask 0xffffffff names lane 5, ended before|"
                            "block 0 warp 0 lane 5 ends, but block 0 warp 0 lane .* waits for it at ballot"));
}

void different_kinds(const LaunchBlock*, uint64_t, uint64_t) {
  const uint32_t lane = coppice_simt_lane();
  if (lane == 0) coppice_simt_ballot(3, true);
  if (lane == 1) coppice_simt_match_any_u64(3, 1);
  coppice_simt_pause();
}
TEST(SimtMisuse, NamesLanesThatWaitForEachOtherInDifferentOperations) {
  EXPECT_THAT(error_of(different_kinds), AllOf(HasSubstr("with mask 0x00000003 it waits for lane "),
                                               HasSubstr("ballot"), HasSubstr("match any")));
}

void different_masks(const LaunchBlock*, uint64_t, uint64_t) {
  const uint32_t lane = coppice_simt_lane();
  if (lane < 2) coppice_simt_warp_barrier(lane == 0 ? 3 : 7);
  coppice_simt_pause();
}
TEST(SimtMisuse, NamesLanesThatWaitForEachOtherWithDifferentMasks) {
  EXPECT_THAT(error_of(different_masks),
              AllOf(HasSubstr("it waits for lane "), HasSubstr("0x00000003"), HasSubstr("0x00000007")));
}

void barrier_without_all(const LaunchBlock*, uint64_t, uint64_t) {
  if (coppice_simt_lane() != 40) coppice_simt_block_barrier();
  word = 1;
}
TEST(SimtMisuse, NamesAThreadThatEndsWhileOthersWaitAtTheBlockBarrier) {
  EXPECT_THAT(
      error_of(barrier_without_all),
      ContainsRegex("block 0 warp 1 lane 8 ends, but block 0 warp . lane .* waits for it at block barrier|"
                    "block barrier at entry.*: 1 of the block's 64 threads ended before"));
}

void two_barriers(const LaunchBlock*, uint64_t, uint64_t) {
  if (coppice_simt_lane() < 7) {
    coppice_simt_block_barrier();
    word = 1;
  } else {
    coppice_simt_block_barrier();
    word = 2;
  }
}
TEST(SimtMisuse, NamesBlockBarriersInDifferentPlaces) {
  EXPECT_THAT(error_of(two_barriers),
              ContainsRegex("block barrier at entry.*: other threads of the block wait at "
                            "block barrier \\(entry.0x"));
}

// Lanes 0, 1 and 2 each wait for the next one.
void ring(const LaunchBlock*, uint64_t, uint64_t) {
  const uint32_t lane = coppice_simt_lane();
  if (lane < 3) coppice_simt_warp_barrier(1u << lane | 1u << (lane + 1) % 3);
  coppice_simt_block_barrier();
}
TEST(SimtMisuse, NamesEveryoneInADeadlock) {
  EXPECT_THAT(error_of(ring),
              AllOf(HasSubstr("deadlock: nobody can run: "),
                    HasSubstr("block 0 warp 0 lane 0 at warp barrier (mask 0x00000003, entry"),
                    HasSubstr("block 0 warp 0 lane 2 at warp barrier (mask 0x00000005, entry"),
                    HasSubstr("block 0 warp 0 lanes 3-31 at block barrier (entry"),
                    HasSubstr("block 0 warp 1 lanes 0-31 at block barrier (entry")));
}

template <bool kPauses>
void waits_for_another_block(const LaunchBlock*, uint64_t begin, uint64_t) {
  if (begin != 0) coppice_simt_store_release_u32(&word, 1);
  while (coppice_simt_load_acquire_u32(&word) == 0) {
    if (kPauses) coppice_simt_pause();
  }
}
TEST(SimtMisuse, GivesUpWhenResidentBlocksWaitForOneThatCannotStart) {
  EXPECT_THAT(
      error_of(waits_for_another_block<true>, 2),
      AllOf(HasSubstr("no progress in 20000 steps, 1 of 2 blocks not started: block 0 warp 0, block 0 warp 1 "
                      "lanes 0-31 runs or spins")));
  EXPECT_THAT(error_of(waits_for_another_block<false>, 2), HasSubstr("1 of 2 blocks not started"));
}

TEST(SimtMisuse, RefusesABlockThatIsNoWholeNumberOfWarps) {
  try {
    Machine machine(Options{.threads_per_block = 48});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.message(), "emulated GPU: threads_per_block is 48, expected a multiple of 32 up to 1024");
  }
}

}  // namespace
}  // namespace coppice::simt
