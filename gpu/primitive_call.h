// One call of a parallel primitive on device memory, as data: what a stream's back end is asked to do (its
// callers use gpu/stream_primitives.h). All pointers are addresses of the device.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coppice {

struct PrimitiveCall {
  enum class Kind : uint8_t {
    kSortByKey,        // first: keys, u32 or u64, and second: u32 values, both sorted in place
    kExclusiveScan,    // in -> first; result: u64
    kSum,              // in -> result: f64 of floats, u64 of integers
    kMax,              // in -> result: a T
    kSegmentedSum,     // in, starts[count + 1] -> first: as of kSum, [count]
    kSelectIfFlag,     // in: flags -> first: u32 indices; result: u64
    kRunLengthEncode,  // in -> first: unique, second: u32 counts; result: u64
    kHistogram,        // in -> first: u32[count]
    kBinStarts,        // in, sorted -> first: u32[count + 1]
  };
  enum class Type : uint8_t { kU32, kU64, kF32, kF64 };  // of the keys or values

  Kind kind;
  Type type = Type::kU32;
  const void* in = nullptr;
  size_t n = 0;
  const uint32_t* starts = nullptr;
  size_t count = 0;  // of segments or bins
  void* first = nullptr;
  void* second = nullptr;
  void* result = nullptr;
};

}  // namespace coppice
