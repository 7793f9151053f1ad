// The parallel primitives of the cpu device by Thrust, but for sorting (see primitives.h).
//
// Compiles with Debian's Thrust 1.17 and the CUDA toolkit's CCCL 3, whichever the compiler finds first; needs
// -O1 at least (-O0 is 150 times slower).
#ifndef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP  // the default would be CUDA
#endif
#include "gpu/primitives.h"

#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/system/cpp/execution_policy.h>

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "gpu/pair_sort.h"

namespace coppice::primitives {
namespace {

template <class Key>
void sort_with_own_scratch(Key* keys, uint32_t* values, size_t n) {
  PrimitiveScratch scratch;
  sort_pairs(keys, values, n, scratch.reserve(pair_sort_scratch_bytes<Key>(n)));
}

template <class Sum, class T>
Sum sum_in_order(const T* in, size_t n) {
  return n == 0 ? Sum{0} : thrust::reduce(thrust::cpp::par, in, in + n, Sum{0});
}

struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <class T>
T largest(const T* in, size_t n) {
  constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::lowest();
  return n == 0 ? kLowest : thrust::reduce(thrust::cpp::par, in, in + n, kLowest, Larger());
}

struct IsSet {
  bool operator()(uint32_t flag) const { return flag != 0; }
};

template <class Sum, class T>
void sum_segments(const T* in, const uint32_t* starts, size_t segments, Sum* out) {
  for (size_t s = 0; s < segments; ++s) out[s] = sum_in_order<Sum>(in + starts[s], starts[s + 1] - starts[s]);
}

constexpr size_t kIndexLimit = size_t{1} << 32;

}  // namespace

void* PrimitiveScratch::reserve(size_t bytes) {
  if (bytes > bytes_) {
    memory_.reset(), bytes_ = 0;  // never both at once
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    bytes_ = bytes;
  }
  return memory_.get();
}

void sort_by_key(uint32_t* keys, uint32_t* values, size_t n) { sort_with_own_scratch(keys, values, n); }
void sort_by_key(uint64_t* keys, uint32_t* values, size_t n) { sort_with_own_scratch(keys, values, n); }

uint64_t exclusive_scan(const uint32_t* in, uint32_t* out, size_t n) {
  if (n == 0) return 0;
  const uint64_t total = sum(in, n);  // first, since `out` may be `in`
  thrust::exclusive_scan(thrust::cpp::par, in, in + n, out, uint32_t{0});
  return total;
}

double sum(const float* in, size_t n) { return sum_in_order<double>(in, n); }
double sum(const double* in, size_t n) { return sum_in_order<double>(in, n); }
uint64_t sum(const uint32_t* in, size_t n) { return sum_in_order<uint64_t>(in, n); }
uint64_t sum(const uint64_t* in, size_t n) { return sum_in_order<uint64_t>(in, n); }

float max(const float* in, size_t n) { return largest(in, n); }
double max(const double* in, size_t n) { return largest(in, n); }
uint32_t max(const uint32_t* in, size_t n) { return largest(in, n); }
uint64_t max(const uint64_t* in, size_t n) { return largest(in, n); }

void segmented_sum(const float* in, const uint32_t* starts, size_t segments, double* out) {
  sum_segments(in, starts, segments, out);
}
void segmented_sum(const double* in, const uint32_t* starts, size_t segments, double* out) {
  sum_segments(in, starts, segments, out);
}
void segmented_sum(const uint32_t* in, const uint32_t* starts, size_t segments, uint64_t* out) {
  sum_segments(in, starts, segments, out);
}
void segmented_sum(const uint64_t* in, const uint32_t* starts, size_t segments, uint64_t* out) {
  sum_segments(in, starts, segments, out);
}

size_t select_if_flag(const uint32_t* flags, uint32_t* out_indices, size_t n) {
  COPPICE_CHECK(n < kIndexLimit, "indices have 32 bits");
  if (n == 0) return 0;
  const thrust::counting_iterator<uint32_t> first(0);
  const uint32_t* end = thrust::copy_if(thrust::cpp::par, first, first + n, flags, out_indices, IsSet());
  return static_cast<size_t>(end - out_indices);
}

size_t run_length_encode(const uint32_t* keys, uint32_t* unique, uint32_t* counts, size_t n) {
  COPPICE_CHECK(n < kIndexLimit, "a run's length may exceed 32 bits");
  if (n == 0) return 0;
  const auto ends = thrust::reduce_by_key(thrust::cpp::par, keys, keys + n,
                                          thrust::constant_iterator<uint32_t>(1), unique, counts);
  return static_cast<size_t>(ends.first - unique);
}

void histogram(const uint32_t* keys, size_t n, uint32_t* counts, size_t n_bins) {
  COPPICE_CHECK(n < kIndexLimit, "a count may exceed 32 bits");
  std::fill_n(counts, n_bins, 0u);
  for (size_t i = 0; i < n; ++i) {
    if (keys[i] < n_bins) ++counts[keys[i]];
  }
}

void bin_starts(const uint32_t* sorted_keys, size_t n, uint32_t* starts, size_t n_bins) {
  COPPICE_CHECK(n < kIndexLimit, "positions may exceed 32 bits");
  COPPICE_CHECK(n_bins < kIndexLimit, "keys have 32 bits");
  const thrust::counting_iterator<uint64_t> bins(0);
  thrust::lower_bound(thrust::cpp::par, sorted_keys, sorted_keys + n, bins, bins + n_bins + 1, starts);
}

}  // namespace coppice::primitives
