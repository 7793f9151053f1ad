// Parallel primitives on memory of the cpu device: scan, reduce, select, run-length encode, by Thrust, and
// sort (pair_sort.h).
//
// These are for callers with raw pointers. A call is complete when it returns; it may use the threads of
// the caller's TBB arena. Outputs may not overlap inputs unless said, and must have room for what is
// stated. n may be 0, and then pointers may be null. Results do not depend on the number of threads:
// floating-point sums are taken in the order of the array.
//
// Sorting needs scratch as large as its input for the time of the call. A stream keeps it from call to call
// (PrimitiveScratch); sort_by_key() here takes it from the heap (std::bad_alloc when there is none). The
// other primitives need none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "gpu/primitive_call.h"

namespace coppice::primitives {

// Sorts ascending and stably, in place: values[i] moves with keys[i].
void sort_by_key(uint32_t* keys, uint32_t* values, size_t n);
void sort_by_key(uint64_t* keys, uint32_t* values, size_t n);

// Sets out[i] = in[0] + ... + in[i - 1]; returns the sum of all. `out` may be `in`. From a sum of 2^32 on,
// out has wrapped: the caller that cannot rule it out compares the returned sum.
uint64_t exclusive_scan(const uint32_t* in, uint32_t* out, size_t n);

// Sums of floats are taken in double. The sum is 0 for n = 0.
double sum(const float* in, size_t n);
double sum(const double* in, size_t n);
uint64_t sum(const uint32_t* in, size_t n);
uint64_t sum(const uint64_t* in, size_t n);  // modulo 2^64

// For n = 0 this returns the value below all others (-infinity, 0). NaNs may or may not be passed over.
float max(const float* in, size_t n);
double max(const double* in, size_t n);
uint32_t max(const uint32_t* in, size_t n);
uint64_t max(const uint64_t* in, size_t n);

// Sets out[s] = the sum of in[starts[s]] ... in[starts[s + 1] - 1], as sum() does; starts ascend.
void segmented_sum(const float* in, const uint32_t* starts, size_t segments, double* out);
void segmented_sum(const double* in, const uint32_t* starts, size_t segments, double* out);
void segmented_sum(const uint32_t* in, const uint32_t* starts, size_t segments, uint64_t* out);
void segmented_sum(const uint64_t* in, const uint32_t* starts, size_t segments, uint64_t* out);

// Writes the indices i with flags[i] != 0, ascending; returns how many. out_indices: room for n. n < 2^32.
size_t select_if_flag(const uint32_t* flags, uint32_t* out_indices, size_t n);

// Writes each run of equal adjacent keys as its key and length; returns the number of runs. unique,
// counts: room for n. Over sorted keys this is their histogram without empty bins. n < 2^32.
size_t run_length_encode(const uint32_t* keys, uint32_t* unique, uint32_t* counts, size_t n);

// Sets counts[b] = how many of the keys are b, for b < n_bins; keys from n_bins on are counted nowhere. n
// < 2^32.
void histogram(const uint32_t* keys, size_t n, uint32_t* counts, size_t n_bins);

// Finds where each bin begins in keys sorted ascending: starts[b] = number of keys < b, for b = 0 ...
// n_bins (room for n_bins + 1); n_bins < 2^32. So bin b holds starts[b + 1] - starts[b] keys. n < 2^32.
void bin_starts(const uint32_t* sorted_keys, size_t n, uint32_t* starts, size_t n_bins);

// Returns how many bytes of scratch a call needs.
size_t scratch_bytes(const PrimitiveCall& call);

// Scratch memory for one call at a time: it grows to what the largest needed. Its contents are lost from call
// to call.
class PrimitiveScratch {
 public:
  // Returns memory of at least so many bytes; null where none were wanted so far. Errors: std::bad_alloc,
  // after which there is none.
  void* reserve(size_t bytes);

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t bytes_ = 0;
};

// Runs a call given as data, which has scratch_bytes() bytes of scratch, aligned to 8; `host_address` says
// where its device addresses are in this process.
void run_on_host(const PrimitiveCall& call, const std::function<void*(const void*)>& host_address,
                 void* scratch);

}  // namespace coppice::primitives
