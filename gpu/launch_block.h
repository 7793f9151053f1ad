// The one block that a launch hands to compiled kernel code: where its context, loop, trees and arguments are.
//
// Device-clean: read by the host, by kernel bitcode on the CPU and by PTX. The layout is versioned: bump
// kLaunchBlockVersion with every change, since compiled kernels outlive a program in the on-disk cache.
//
//     offset  bytes
//       0       8   version, bytes in use
//       8       8   DeviceContext*     status, seed, messages
//      16       8   count              u64*, number of loop items, read on the device; null: item_count
//      24       8   elements           loop list (Element*), null for a range loop
//      32       8   neighbours         u32[count][3^D] cell numbers around each element, or null
//      40       8   loop begin         i64, first item of a range loop
//      48       8   item_count         number of loop items where the host knows it
//      56       8   reserved
//      64      64   trees[8]           run-time state of every tree the kernel touches
//     128     384   arguments          plain arguments, packed in order
#pragma once
#include <cstddef>
#include <cstdint>

namespace coppice {

inline constexpr uint32_t kLaunchBlockVersion = 3;
inline constexpr int kMaxTreesPerKernel = 8;
inline constexpr int kLaunchArgumentBytes = 384;

// What went wrong on the device; the first one in a launch sticks (DeviceContext::status).
enum class DeviceStatus : uint32_t {
  kOk = 0,
  kOutOfCells = 1,     // an allocator has no free cell: detail = allocator, argument = tree slot
  kOutsideDomain = 2,  // a Grow or Accumulate at a coordinate no cell can ever have
  kInactiveCell = 3,   // an Accumulate into a cell that is not active
  kStop = 4,           // the kernel asked that later launches be skipped
};

// Shared by all launches on a device; kernels add to it, the host reads it between launches.
struct DeviceContext {
  uint32_t status;         // DeviceStatus, first writer wins
  uint32_t status_tree;    // tree slot in the launch that failed
  uint32_t status_detail;  // allocator or binding number
  uint32_t reserved0;
  int64_t status_coord[4];  // cell coordinate that failed
  uint64_t random_seed;
  uint64_t missed_writes;  // writes that found no cell
};
static_assert(sizeof(DeviceContext) == 64);

struct LaunchBlock {
  uint32_t version;
  uint32_t size_bytes;
  DeviceContext* context;
  const uint64_t* count;
  const void* elements;
  const uint32_t* neighbours;
  int64_t loop_begin;
  uint64_t item_count;
  uint64_t reserved;
  void* trees[kMaxTreesPerKernel];
  alignas(16) unsigned char arguments[kLaunchArgumentBytes];
};
static_assert(offsetof(LaunchBlock, context) == 8 && offsetof(LaunchBlock, trees) == 64);
static_assert(offsetof(LaunchBlock, arguments) == 128 && sizeof(LaunchBlock) == 512);

// Every kernel's entry point: runs items [begin, end) of the launch's loop.
using KernelEntry = void (*)(const LaunchBlock* block, uint64_t begin, uint64_t end);

}  // namespace coppice
