// A radix sort, and a merge sort of pieces that are sorted so (see pair_sort.h).
#ifndef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP  // the default would be CUDA
#endif
#include "gpu/pair_sort.h"

#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <thrust/merge.h>
#include <thrust/system/tbb/execution_policy.h>

#include <algorithm>
#include <array>
#include <utility>

namespace coppice::primitives {
namespace {

// With two threads the merge sort of 4 M 32-bit keys takes 1.6 times as long, so that it is expected to pay
// from four threads on, and no sooner than there is a piece for each of them.
constexpr int kMergeSortThreads = 4;
constexpr size_t kMergeSortSize = size_t{1} << 19, kMostOfPiece = size_t{1} << 17;
bool pays_merge_sort(size_t n) {
  return n >= kMergeSortSize && tbb::this_task_arena::max_concurrency() >= kMergeSortThreads;
}

constexpr size_t kDigits = 256;

template <class Key>
struct Pairs {
  Key* keys;
  uint32_t* values;
  Pairs operator+(size_t i) const { return {keys + i, values + i}; }
};

template <class Key>
void copy_pairs(Pairs<Key> from, size_t n, Pairs<Key> to) {
  std::copy_n(from.keys, n, to.keys);
  std::copy_n(from.values, n, to.values);
}

// Moves each pair to the next place of its digit.
template <class Key>
void scatter(Pairs<Key> from, size_t n, size_t shift, std::array<size_t, kDigits>& places, Pairs<Key> to) {
  for (size_t i = 0; i < n; ++i) {
    const Key key = from.keys[i];
    const size_t place = places[(key >> shift) % kDigits]++;
    to.keys[place] = key, to.values[place] = from.values[i];
  }
}

template <class Key>
void radix_sort(Pairs<Key> pairs, size_t n, Pairs<Key> spare) {
  std::array<std::array<size_t, kDigits>, sizeof(Key)> counts{};
  for (size_t i = 0; i < n; ++i) {
    for (size_t d = 0; d < sizeof(Key); ++d) ++counts[d][(pairs.keys[i] >> (8 * d)) % kDigits];
  }
  Pairs<Key> from = pairs, to = spare;
  for (size_t d = 0; d < sizeof(Key); ++d) {
    if (counts[d][(pairs.keys[0] >> (8 * d)) % kDigits] == n) continue;
    size_t begin = 0;
    for (size_t& count : counts[d]) begin += std::exchange(count, begin);
    scatter(from, n, 8 * d, counts[d], to);
    std::swap(from, to);
  }
  if (from.keys != pairs.keys) copy_pairs(from, n, pairs);
}

// Sorts the pairs where they are, or into the spare ones; the contents of the others are lost.
template <class Key>
void merge_sort(Pairs<Key> pairs, size_t n, Pairs<Key> spare, bool into_spare) {
  if (n <= kMostOfPiece) {
    radix_sort(pairs, n, spare);
    if (into_spare) copy_pairs(pairs, n, spare);
    return;
  }
  const size_t half = n / 2;
  tbb::parallel_invoke([&] { merge_sort(pairs, half, spare, !into_spare); },
                       [&] { merge_sort(pairs + half, n - half, spare + half, !into_spare); });
  const Pairs<Key> from = into_spare ? pairs : spare, to = into_spare ? spare : pairs;
  thrust::merge_by_key(thrust::tbb::par, from.keys, from.keys + half, from.keys + half, from.keys + n,
                       from.values, from.values + half, to.keys, to.values);
}

template <class Key>
void sort(Key* keys, uint32_t* values, size_t n, void* scratch) {
  if (n < 2) return;
  auto* const spare_keys = static_cast<Key*>(scratch);
  const Pairs<Key> pairs{keys, values}, spare{spare_keys, reinterpret_cast<uint32_t*>(spare_keys + n)};
  if (pays_merge_sort(n))
    merge_sort(pairs, n, spare, false);
  else
    radix_sort(pairs, n, spare);
}

}  // namespace

void sort_pairs(uint32_t* keys, uint32_t* values, size_t n, void* scratch) { sort(keys, values, n, scratch); }
void sort_pairs(uint64_t* keys, uint32_t* values, size_t n, void* scratch) { sort(keys, values, n, scratch); }

}  // namespace coppice::primitives
