// The parallel primitives (gpu/primitives.h) on device memory, inside a stream's order. All pointers are
// addresses of the stream's device. Sizes are the host's; results go to device memory, so that what follows
// can read them there, and none of these waits for the device; the wait_ forms bring them to the host.
//
// Scratch memory belongs to the stream: it grows to what the largest call needed. Errors: kOutOfMemory;
// kUnavailable on a GPU where the primitives were not built or its driver is too old for them.
#pragma once
#include <type_traits>

#include "gpu/host_access.h"
#include "gpu/in_stream.h"
#include "gpu/primitive_call.h"

namespace coppice::primitives {

// Values of type T are summed in this type.
template <class T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <class T>
constexpr PrimitiveCall::Type type_of() {
  using Type = PrimitiveCall::Type;
  if constexpr (std::is_same_v<T, uint32_t>) return Type::kU32;
  if constexpr (std::is_same_v<T, uint64_t>) return Type::kU64;
  if constexpr (std::is_same_v<T, float>) return Type::kF32;
  if constexpr (std::is_same_v<T, double>) return Type::kF64;
}

// Sorts ascending and stably, in place: values[i] moves with keys[i]. Keys are u32 or u64.
template <class Key>
void sort_by_key(InStream& s, Key* keys, uint32_t* values, size_t n) {
  static_assert(std::is_unsigned_v<Key>);
  s.run({.kind = PrimitiveCall::Kind::kSortByKey,
         .type = type_of<Key>(),
         .n = n,
         .first = keys,
         .second = values});
}
// Sets out[i] = in[0] + ... + in[i - 1], and `out` may be `in`; what lies behind in[n - 1] plays no part.
// `total`, where it is not null, gets the sum of all; from 2^32 on, out has wrapped.
inline void exclusive_scan(InStream& s, const uint32_t* in, uint32_t* out, size_t n, uint64_t* total) {
  s.run({.kind = PrimitiveCall::Kind::kExclusiveScan, .in = in, .n = n, .first = out, .result = total});
}
template <class T>
void sum(InStream& s, const T* in, size_t n, SumOf<T>* out) {
  s.run({.kind = PrimitiveCall::Kind::kSum, .type = type_of<T>(), .in = in, .n = n, .result = out});
}
template <class T>
void max(InStream& s, const T* in, size_t n, T* out) {
  s.run({.kind = PrimitiveCall::Kind::kMax, .type = type_of<T>(), .in = in, .n = n, .result = out});
}
// Sets out[s] = the sum of in[starts[s]] ... in[starts[s + 1] - 1]; starts ascend.
template <class T>
void segmented_sum(InStream& s, const T* in, const uint32_t* starts, size_t segments, SumOf<T>* out) {
  s.run({.kind = PrimitiveCall::Kind::kSegmentedSum,
         .type = type_of<T>(),
         .in = in,
         .starts = starts,
         .count = segments,
         .first = out});
}
inline void select_if_flag(InStream& s, const uint32_t* flags, uint32_t* out_indices, size_t n,
                           uint64_t* selected) {
  s.run({.kind = PrimitiveCall::Kind::kSelectIfFlag,
         .in = flags,
         .n = n,
         .first = out_indices,
         .result = selected});
}
inline void run_length_encode(InStream& s, const uint32_t* keys, uint32_t* unique, uint32_t* counts, size_t n,
                              uint64_t* runs) {
  s.run({.kind = PrimitiveCall::Kind::kRunLengthEncode,
         .in = keys,
         .n = n,
         .first = unique,
         .second = counts,
         .result = runs});
}
// Sets counts[b] = how many of the keys are b, for b < n_bins; keys from n_bins on are counted nowhere.
inline void histogram(InStream& s, const uint32_t* keys, size_t n, uint32_t* counts, size_t n_bins) {
  s.run({.kind = PrimitiveCall::Kind::kHistogram, .in = keys, .n = n, .count = n_bins, .first = counts});
}
inline void bin_starts(InStream& s, const uint32_t* sorted_keys, size_t n, uint32_t* starts, size_t n_bins) {
  s.run(
      {.kind = PrimitiveCall::Kind::kBinStarts, .in = sorted_keys, .n = n, .count = n_bins, .first = starts});
}

// ---- with the result on the host

template <class Result, class Call>
Result wait_result(InStream& s, Call&& call) {
  auto* const result = static_cast<Result*>(s.result());
  call(result);
  return wait_read(s, result);
}
template <class T>
SumOf<T> wait_sum(InStream& s, const T* in, size_t n) {
  return wait_result<SumOf<T>>(s, [&](auto* result) { sum(s, in, n, result); });
}
template <class T>
T wait_max(InStream& s, const T* in, size_t n) {
  return wait_result<T>(s, [&](auto* result) { max(s, in, n, result); });
}
inline uint64_t wait_exclusive_scan(InStream& s, const uint32_t* in, uint32_t* out, size_t n) {
  return wait_result<uint64_t>(s, [&](auto* total) { exclusive_scan(s, in, out, n, total); });
}
inline uint64_t wait_select_if_flag(InStream& s, const uint32_t* flags, uint32_t* out_indices, size_t n) {
  return wait_result<uint64_t>(s, [&](auto* count) { select_if_flag(s, flags, out_indices, n, count); });
}
inline uint64_t wait_run_length_encode(InStream& s, const uint32_t* keys, uint32_t* unique, uint32_t* counts,
                                       size_t n) {
  return wait_result<uint64_t>(s, [&](auto* runs) { run_length_encode(s, keys, unique, counts, n, runs); });
}

}  // namespace coppice::primitives
