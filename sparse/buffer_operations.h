// Copies, fills and parallel primitives on buffers, in the order of a device's default stream: outside of a
// trace at once, and inside (sparse/function.h) as a part of the function.
//
// Numbers are known when the call is made, and buffers' sizes at its turn. Errors arrive with the value:
// kOutOfRange where a buffer is too small, kInvalidArgument for one of another device. Buffers are kept until
// then.
#pragma once
#include <cstdint>

#include "gpu/device.h"

namespace coppice {

using BufferRef = IntrusivePtr<Buffer>;

// Returns memory for the time of a traced function: where it lies is decided when the function has been
// traced, and shared with other temporaries that are needed at other times (sparse/function_memory.h). Its
// contents are not zero, and mean something from the first operation that writes to it up to the last that
// uses it; of one that a loop's body alone uses, within a round. Its address may be an argument of what is
// traced, by itself or in a struct; it must not be kept in memory. Outside of a trace it is a buffer of its
// own, which stays until what was given before its last handle goes is done. Errors: kOutOfMemory, in a trace
// when it ends; kInvalidArgument for another device than the function's.
BufferRef temporary(Device& device, size_t bytes);

AsyncValueRef<Chain> fill(Device& device, const BufferRef& buffer, int byte, int64_t offset, int64_t bytes);
AsyncValueRef<Chain> copy(Device& device, const BufferRef& to, int64_t to_offset, const BufferRef& from,
                          int64_t from_offset, int64_t bytes);
// Sorts n keys, u32 or u64, ascending and stably, in place; u32 values move with them.
template <class Key>
AsyncValueRef<Chain> sort_by_key(Device& device, const BufferRef& keys, const BufferRef& values, int64_t n);
// Sets out[i] = in[0] + ... + in[i - 1], u32; `out` may be `in`.
AsyncValueRef<Chain> exclusive_scan(Device& device, const BufferRef& in, const BufferRef& out, int64_t n);
// Sets the f64 at that byte of `out`, of u32 and u64 the u64, to in[0] + ... + in[n - 1] of T: float, double,
// uint32_t or uint64_t. The order of a sum of floats is the same from call to call.
template <class T>
AsyncValueRef<Chain> sum_to(Device& device, const BufferRef& in, int64_t n, const BufferRef& out,
                            int64_t out_offset = 0);
// Sets counts[b] = how many of n keys, u32, are b, for b < n_bins.
AsyncValueRef<Chain> histogram(Device& device, const BufferRef& keys, int64_t n, const BufferRef& counts,
                               int64_t n_bins);
// Sets starts[b] = how many of n keys, u32 and sorted, are below b, for b = 0 ... n_bins.
AsyncValueRef<Chain> bin_starts(Device& device, const BufferRef& keys, int64_t n, const BufferRef& starts,
                                int64_t n_bins);

}  // namespace coppice
