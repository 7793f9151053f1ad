// A record of what a kernel prints: written by the device (sparse/device/messages.h), read
// by the host (gpu/messages.cc).
//
// Device-clean. Everything is copied into the record: on a GPU the address of a
// literal means nothing to the host.
//
//     offset  bytes
//       0       4   bytes           of the whole record, a multiple of 8; stored last (release), 0 until then
//       4       4   dims            of the place: 0 an item, else those of a cell's or block's coordinate
//       8       4   text_bytes      of the format text
//      12       4   num_arguments
//      16      24   place           {item index} or {x, y, z}
//      40       8   launch          launch_id() of its LaunchBlock
//      48           the text, padded to 8, then the arguments: each a tag (u64: kind, for strings their
//                   bytes << 8) and its value in 8 bytes, or a string's characters padded to 8; a vector's or
//                   matrix' tag has its rows (16 bits, from bit 8) and columns (from bit 24), and its numbers
//                   follow row by row, each with a tag
#pragma once
#include <cstddef>
#include <cstdint>

#include "gpu/launch_block.h"

namespace coppice {

// Kernels print to this, in memory that host and device both reach: records one behind the other, from 0
// to `used`, of which those that found no room are only counted.
struct MessageArea {
  static constexpr uint64_t kCapacity = (uint64_t{1} << 20) - 64;

  uint64_t used;  // may exceed the capacity
  uint64_t end;   // where the first record that found no room would have been; before that ~0
  uint64_t dropped;
  alignas(64) unsigned char records[kCapacity];  // zero where none is
};
static_assert(sizeof(MessageArea) == 1 << 20);

enum class MessageValue : uint32_t { kBool, kChar, kInt, kUnsigned, kFloat, kDouble, kString, kMatrix };

struct MessageHeader {
  uint32_t bytes;
  int32_t dims;
  uint32_t text_bytes;
  uint32_t num_arguments;
  int64_t place[3];
  uint64_t launch;
};
static_assert(sizeof(MessageHeader) == 48 && offsetof(MessageHeader, place) == 16);

// Tells launches apart that are under way at the same time: two streams' with the same number have
// different trees. (Not the block's address: on a GPU the block is a parameter of the kernel, and would be
// copied to every thread's stack.)
inline uint64_t launch_id(const LaunchBlock& block) {
  return launch_number(block) ^ reinterpret_cast<uint64_t>(block.trees[0]);
}

constexpr size_t padded_to_8(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace coppice
