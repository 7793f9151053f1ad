// The parallel primitives (gpu/primitives.h) on device memory, in a stream's own order: from an enqueued function, prepare
// or finish. All pointers are addresses of the stream's device; results and errors are as there.
#pragma once
#include "core/error.h"
#include "gpu/primitives.h"
#include "gpu/stream.h"

namespace coppice::primitives {
namespace detail {

template <class T>
T* on_host(Stream& stream, T* address) {
  void* const here = stream.host_address(address);
  if (here == nullptr && address != nullptr)
    throw Error(
        ErrorCode::kUnavailable,
        "device cuda: sorting, scanning and selecting on a GPU are not there yet, and loops over nodes need "
        "them; use --device cpu");
  return static_cast<T*>(here);
}

}  // namespace detail

template <class Key>
void sort_by_key(Stream& stream, Key* keys, uint32_t* values, size_t n) {
  sort_by_key(detail::on_host(stream, keys), detail::on_host(stream, values), n);
}
inline uint64_t exclusive_scan(Stream& stream, const uint32_t* in, uint32_t* out, size_t n) {
  return exclusive_scan(detail::on_host(stream, in), detail::on_host(stream, out), n);
}
template <class T>
auto sum(Stream& stream, const T* in, size_t n) {
  return sum(detail::on_host(stream, in), n);
}
template <class T>
T max(Stream& stream, const T* in, size_t n) {
  return max(detail::on_host(stream, in), n);
}
inline size_t select_if_flag(Stream& stream, const uint32_t* flags, uint32_t* out_indices, size_t n) {
  return select_if_flag(detail::on_host(stream, flags), detail::on_host(stream, out_indices), n);
}
inline size_t run_length_encode(Stream& stream, const uint32_t* keys, uint32_t* unique, uint32_t* counts,
                                size_t n) {
  return run_length_encode(detail::on_host(stream, keys), detail::on_host(stream, unique),
                           detail::on_host(stream, counts), n);
}
inline void bin_starts(Stream& stream, const uint32_t* sorted_keys, size_t n, uint32_t* starts,
                       size_t n_bins) {
  bin_starts(detail::on_host(stream, sorted_keys), n, detail::on_host(stream, starts), n_bins);
}

}  // namespace coppice::primitives
