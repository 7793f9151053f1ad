// The one block that a launch hands to compiled kernel code: where its context, loop, trees and arguments
// are.
//
// Device-clean: read by the host, by kernel bitcode on the CPU and by PTX. The layout is versioned: bump
// kLaunchBlockVersion with every change, since compiled kernels outlive a program in the on-disk cache.
//
//     offset  bytes
//       0       4   version, flags (kThreadItems, kRecorded, kCommitsTopology, kNeedsRoom, kItemRuns)
//       4       4   pieces             loop items for each of `count`
//       8       8   DeviceContext*     status, seed, messages
//      16       8   count              u64*, entries of the loop's list, read on the device; null: item_count
//      24       8   elements           loop list (LoopElement*), null for a range loop
//      32       8   neighbours         u32[count][3^D] cell numbers around each element, or null
//      40       8   loop begin         i64, first item of a range loop; of a part of a loop's list, the entries before it
//      48       8   item_count         number of loop items where the host knows it; pieces do not count
//      56       8   number             of this launch among the stream's, for random numbers; the runtime's own do not count.
//                                      With kRecorded: from DeviceContext::replayed_from on; in a recording
//                                      the runtime's own have that of the launch they belong to
//      64      64   trees[8]           run-time state of every tree the kernel touches
//     128     384   arguments          plain arguments, packed in order
#pragma once
#include <stddef.h>  // not <cstddef>: the NVPTX compile has no C++ library
#include <stdint.h>

namespace coppice {

struct MessageArea;

inline constexpr uint32_t kLaunchBlockVersion = 8;
inline constexpr int kMaxTreesPerKernel = 8;
inline constexpr int kLaunchArgumentBytes = 384;
// With this flag every thread of a GPU has items of its own. Without it an item is shared by the threads
// of a block.
inline constexpr uint32_t kThreadItems = 1;
// These flags are set on what is in a recording (gpu/in_stream.h), and on launches that are given before the
// status of those before them is known (gpu/stream_order.h). Such a one looks at the status by itself, and is
// skipped where a launch before its own left one; in a recording, what settles the topology after a launch is
// skipped also where that launch ran out of cells: it is repeated.
inline constexpr uint32_t kRecorded = 2;
inline constexpr uint32_t kCommitsTopology = 4;
// This flag is set on a launch for which room was to be made by the same kernel before it: in a recording
// it is skipped where that ran out of cells.
inline constexpr uint32_t kNeedsRoom = 8;
// With this flag an item reads what lies beside the one before it: a GPU's thread block takes several in a
// row.
inline constexpr uint32_t kItemRuns = 16;
// A block has this many threads on an NVIDIA GPU, where one shares an item of a loop over cells: 1 to 4
// cells for each thread of common leaves. PTX promises it to the assembler as the most that will come.
inline constexpr uint32_t kGpuThreadsPerBlock = 128;
inline constexpr int kSinkBytes = 1024;  // a refused access of a larger value or item goes to the first one
inline constexpr int kMaxMessageBytes = 1024;  // of a record of print() (gpu/message_record.h)
inline constexpr int kMaxAssertionBytes =
    1536;  // of an assertion's, which holds its condition and file besides

// Says what went wrong on the device; the first status in a launch sticks (DeviceContext::status). Those
// marked (checks) are found only with COPPICE_DEBUG=checks.
enum class DeviceStatus : uint32_t {
  kOk = 0,
  kOutOfCells = 1,  // an allocator has no free cell: status_detail is the allocator
  kOutsideDomain =
      2,  // a Grow or Accumulate at a coordinate no cell can ever have; a Read or deactivation (checks)
  kInactiveCell = 3,     // an Accumulate into a cell that is not active
  kStop = 4,             // the kernel asked that later launches be skipped
  kOutOfReach = 5,       // (checks) a Read further from its cell than it declares: coordinate and offset
  kBlockOutOfReach = 6,  // (checks) neighbour_data() of a block that is not a neighbour: origin and offset
  kOutOfValues = 7,      // (checks) an index past a block's values: {index, values}
  kOutOfView = 8,  // (checks) an index past a View's items: {index, items}; status_detail is the argument
  kNotBeside = 9,  // data() of a field that is neither on the node looped over nor beside it
  kNoNeighbourTable = 10,  // neighbour_data() on a node that is not right below a pointer node
  kNotContiguous = 11,     // data() of values that do not lie side by side
  kListFull = 12,          // an append to, or a write past the end of, a dynamic node: {index, extent}
  kOutOfList = 13,         // (checks) a read of a dynamic node's element that is not there: {index, length}
  kAssertion = 14,         // (checks) an assertion failed: its text is a message
  kReadOfChanged = 15,     // a read of another cell of a field whose cells the same launch writes
  kNoRoom = 16,            // as kOutOfCells, of a run that only finds out how much room its launch needs
  // The specializer refuses these before anything runs (gpu/jit/misuse.cc); they are statuses where only
  // the run knows the handle, and there of reads only with the checks.
  kWrongAxes = 17,   // a coordinate of another number of axes than the field's tree has: {given}
  kOtherCells = 18,  // the own cell's value of a field that has no such cell
  kNoLists = 19,     // a list's length or element on a node that is not dynamic
  // (checks) A handle does what the launch's uses do not say; the status tells which handle, and in the
  // offset the effects.
  kOutOfUses = 20,
  kOutOfMemoryUses = 21,  // (checks) so does a pointer: {address, bytes}; `assertion` has the place
  // A launch has changed a topology, which the host is to commit before anything goes on
  // (Launch::tell_changes).
  kTopologyChanged = 22,
  // (checks) A temporary is read in a cell where nothing was written to it: coordinate, and in the offset the
  // marks of the fields that have values there.
  kNotWritten = 23,
  kAlwaysActive = 24,  // (checks) a deactivation of a dense node's cell
};

// All launches on a device share this; kernels add to it, the host reads it between launches.
struct DeviceContext {
  uint32_t status;  // status_word(), first writer wins
  uint32_t
      status_tree;  // tree slot in the launch that failed; of kOutOfMemoryUses, what it does (gpu/effects.h)
  uint32_t status_detail;    // binding number, unless the status says otherwise; of a place, its length
  int32_t status_offset[3];  // (x, y, z) from the coordinate
  int64_t status_coord[3];   // coordinate (x, y, z), or {index, extent}
  uint64_t random_seed;
  uint64_t missed_writes;  // writes that found no cell
  uint64_t replayed_from;  // number of the first launch of the recording that was replayed last
  alignas(64) unsigned char sink[kSinkBytes];  // where a refused access reads zeros, or writes

  MessageArea* messages;  // what kernels print (gpu/message_record.h)
  // This is the record of the launch that set the status kAssertion; for kOutOfMemoryUses, the place in
  // the kernel file.
  alignas(64) unsigned char assertion[kMaxAssertionBytes];
};
static_assert(offsetof(DeviceContext, status_coord) == 24 && offsetof(DeviceContext, sink) == 128);
static_assert(offsetof(DeviceContext, messages) == 128 + kSinkBytes);
static_assert(offsetof(DeviceContext, assertion) == 192 + kSinkBytes);
static_assert(sizeof(DeviceContext) == 192 + kSinkBytes + kMaxAssertionBytes);

struct LaunchBlock {
  uint16_t version;
  uint16_t flags;
  uint32_t pieces = 1;
  DeviceContext* context;
  const uint64_t* count;
  const void* elements;
  const uint32_t* neighbours;
  int64_t loop_begin;
  uint64_t item_count;
  uint64_t number;
  void* trees[kMaxTreesPerKernel];
  alignas(16) unsigned char arguments[kLaunchArgumentBytes];
};
static_assert(offsetof(LaunchBlock, context) == 8 && offsetof(LaunchBlock, trees) == 64);
static_assert(offsetof(LaunchBlock, arguments) == 128 && sizeof(LaunchBlock) == 512);

// Returns the number of items of a launch whose list has so many entries.
inline uint64_t loop_items(const LaunchBlock& block, uint64_t entries) { return entries * block.pieces; }
inline uint64_t launch_number(const LaunchBlock& block) {
  return block.number + ((block.flags & kRecorded) != 0 ? block.context->replayed_from : 0);
}
// Returns what DeviceContext::status holds: what went wrong, and the number of the launch, modulo 2^24.
constexpr uint32_t status_word(DeviceStatus status, uint64_t number) {
  return static_cast<uint32_t>(status) | static_cast<uint32_t>(number) << 8;
}
constexpr DeviceStatus status_of(uint32_t word) { return static_cast<DeviceStatus>(word & 0xff); }
constexpr bool is_shortage(DeviceStatus status) {
  return status == DeviceStatus::kOutOfCells || status == DeviceStatus::kNoRoom;
}
// Returns whether it is of the launch itself, and not one that the host resolves.
constexpr bool is_final_status(uint32_t word) {
  return word != 0 && !is_shortage(status_of(word)) && status_of(word) != DeviceStatus::kTopologyChanged;
}
constexpr uint32_t status_launch(uint32_t word) { return word >> 8; }
// Returns whether a recorded launch is skipped where the status is `word`.
inline bool is_skipped(const LaunchBlock& block, uint32_t word, uint64_t replayed_from) {
  if (word == 0) return false;
  if (status_launch(word) != ((block.number + replayed_from) & 0xffffff)) return true;
  const bool skips_at_shortage = (block.flags & kCommitsTopology) != 0 && is_shortage(status_of(word));
  return skips_at_shortage || ((block.flags & kNeedsRoom) != 0 && status_of(word) == DeviceStatus::kNoRoom);
}

// This is every kernel's entry point: it runs items [begin, end) of the launch's loop.
using KernelEntry = void (*)(const LaunchBlock* block, uint64_t begin, uint64_t end);

}  // namespace coppice
