// gpu/primitives.h against the standard library, for sizes from nothing to a million.
#include "gpu/primitives.h"

#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace coppice {
namespace {

constexpr uint64_t kSeed = 20240917;
constexpr size_t kSizes[] = {0, 1, 2, 3, 17, 1023, 1024, 65537, 1'000'000};

template <class T>
std::vector<T> random_values(size_t n, uint64_t largest) {
  std::mt19937_64 random(kSeed + n);
  std::uniform_int_distribution<uint64_t> distribution(0, largest);
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(distribution(random));
  return values;
}

std::vector<uint32_t> indices(size_t n) {
  std::vector<uint32_t> result(n);
  std::iota(result.begin(), result.end(), 0u);
  return result;
}

// Values are the places the keys came from, so that an order which is not stable shows.
template <class Key>
void expect_sorts(size_t n, uint64_t largest_key) {
  SCOPED_TRACE(testing::Message() << "n " << n << ", keys to " << largest_key << ", seed " << kSeed + n);
  const std::vector<Key> unsorted = random_values<Key>(n, largest_key);
  std::vector<uint32_t> expected = indices(n);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint32_t a, uint32_t b) { return unsorted[a] < unsorted[b]; });

  std::vector<Key> keys = unsorted;
  std::vector<uint32_t> values = indices(n);
  primitives::sort_by_key(keys.data(), values.data(), n);
  EXPECT_TRUE(values == expected);
  bool keys_follow = true;
  for (size_t i = 0; i < n; ++i) keys_follow &= keys[i] == unsorted[expected[i]];
  EXPECT_TRUE(keys_follow);
}

TEST(Primitives, SortsByKeyStably) {
  for (const size_t n : kSizes) {
    expect_sorts<uint32_t>(n, 7);
    expect_sorts<uint32_t>(n, std::numeric_limits<uint32_t>::max());
  }
}

TEST(Primitives, SortsByLongKeyStably) {
  for (const size_t n : kSizes) {
    expect_sorts<uint64_t>(n, n / 4);
    expect_sorts<uint64_t>(n, std::numeric_limits<uint64_t>::max());
  }
}

// Both of the algorithms behind, on a machine of any size.
TEST(Primitives, SortsByKeyStablyWithOneAndWithManyThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "TBB's library is not instrumented: each access would report a false race, for minutes, suppressed";
#endif
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 8);
  for (const int threads : {1, 8}) {
    tbb::task_arena arena(threads);
    arena.execute([&] {
      ASSERT_EQ(tbb::this_task_arena::max_concurrency(), threads);
      expect_sorts<uint32_t>(600'001, 1000);
      expect_sorts<uint64_t>(600'001, uint64_t{1} << 40);
    });
  }
}

TEST(Primitives, SortsKeysThatAreSortedOrEqualAlready) {
  std::vector<uint32_t> keys(5000, 3);
  std::vector<uint32_t> values = indices(5000);
  primitives::sort_by_key(keys.data(), values.data(), keys.size());
  EXPECT_EQ(values, indices(5000));
  keys = indices(5000);
  primitives::sort_by_key(keys.data(), values.data(), keys.size());
  EXPECT_EQ(values, indices(5000));
  std::reverse(keys.begin(), keys.end());
  primitives::sort_by_key(keys.data(), values.data(), keys.size());
  EXPECT_EQ(keys, indices(5000));
  EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
}

TEST(Primitives, AcceptsNullPointersForNothing) {
  primitives::sort_by_key(static_cast<uint32_t*>(nullptr), nullptr, 0);
  primitives::sort_by_key(static_cast<uint64_t*>(nullptr), nullptr, 0);
  EXPECT_EQ(primitives::exclusive_scan(nullptr, nullptr, 0), 0u);
  EXPECT_EQ(primitives::sum(static_cast<const float*>(nullptr), 0), 0.0);
  EXPECT_EQ(primitives::select_if_flag(nullptr, nullptr, 0), 0u);
  EXPECT_EQ(primitives::run_length_encode(nullptr, nullptr, nullptr, 0), 0u);
  uint32_t starts[3] = {9, 9, 9};
  primitives::bin_starts(nullptr, 0, starts, 2);
  EXPECT_EQ(std::vector<uint32_t>(starts, starts + 3), std::vector<uint32_t>({0, 0, 0}));
}

TEST(Primitives, ScansExclusivelyAndReturnsTheTotal) {
  for (const size_t n : kSizes) {
    std::vector<uint32_t> in = random_values<uint32_t>(n, 4000);
    std::vector<uint32_t> expected(n), out(n);
    std::exclusive_scan(in.begin(), in.end(), expected.begin(), 0u);
    const uint64_t total = std::accumulate(in.begin(), in.end(), uint64_t{0});
    EXPECT_EQ(primitives::exclusive_scan(in.data(), out.data(), n), total) << n;
    EXPECT_TRUE(out == expected) << n;
    EXPECT_EQ(primitives::exclusive_scan(in.data(), in.data(), n), total) << n << " in place";
    EXPECT_TRUE(in == expected) << n << " in place";
  }
}

TEST(Primitives, ScanReturnsTotalsAboveFourBillion) {
  const std::vector<uint32_t> in(5, 0x80000000u);
  std::vector<uint32_t> out(5);
  EXPECT_EQ(primitives::exclusive_scan(in.data(), out.data(), 5), uint64_t{5} << 31);
  EXPECT_EQ(out, std::vector<uint32_t>({0, 0x80000000u, 0, 0x80000000u, 0}));
}

TEST(Primitives, SumsIntegersExactlyAndFloatsInDouble) {
  for (const size_t n : kSizes) {
    const std::vector<uint32_t> small = random_values<uint32_t>(n, std::numeric_limits<uint32_t>::max());
    const std::vector<uint64_t> large = random_values<uint64_t>(n, uint64_t{1} << 40);
    EXPECT_EQ(primitives::sum(small.data(), n), std::accumulate(small.begin(), small.end(), uint64_t{0}));
    EXPECT_EQ(primitives::sum(large.data(), n), std::accumulate(large.begin(), large.end(), uint64_t{0}));

    const std::vector<float> floats(n, 0.1f);
    const std::vector<double> doubles(n, 0.1);
    const double expected = static_cast<double>(n) * 0.1f;
    // n additions, each rounded by half a unit of at most the final sum.
    const double bound = static_cast<double>(n) * expected * std::numeric_limits<double>::epsilon();
    EXPECT_NEAR(primitives::sum(floats.data(), n), expected, bound) << n;
    EXPECT_EQ(primitives::sum(doubles.data(), n), std::accumulate(doubles.begin(), doubles.end(), 0.0)) << n;
  }
}

template <class T>
void expect_finds_largest(T lowest) {
  EXPECT_EQ(primitives::max(static_cast<const T*>(nullptr), 0), lowest);
  for (const size_t n : kSizes) {
    if (n == 0) continue;
    std::vector<T> values = random_values<T>(n, 1'000'000'000);
    if (std::numeric_limits<T>::is_signed) {
      for (T& value : values) value = -value;  // all below zero: a start value of zero would show
    }
    EXPECT_EQ(primitives::max(values.data(), n), *std::max_element(values.begin(), values.end())) << n;
  }
}

TEST(Primitives, FindsTheLargestValue) {
  expect_finds_largest<float>(-std::numeric_limits<float>::infinity());
  expect_finds_largest<double>(-std::numeric_limits<double>::infinity());
  expect_finds_largest<uint32_t>(0);
  expect_finds_largest<uint64_t>(0);
}

TEST(Primitives, SelectsTheIndicesOfSetFlags) {
  for (const size_t n : kSizes) {
    const std::vector<uint32_t> flags = random_values<uint32_t>(n, 2);
    std::vector<uint32_t> expected;
    for (size_t i = 0; i < n; ++i) {
      if (flags[i] != 0) expected.push_back(static_cast<uint32_t>(i));
    }
    std::vector<uint32_t> out(n);
    out.resize(primitives::select_if_flag(flags.data(), out.data(), n));
    EXPECT_TRUE(out == expected) << n;
  }
}

TEST(Primitives, SelectTakesAnyBitAsSet) {
  const uint32_t flags[] = {0, 0x80000000u, 0, 0x00010000u};
  uint32_t out[4] = {};
  EXPECT_EQ(primitives::select_if_flag(flags, out, 4), 2u);
  EXPECT_EQ(std::make_pair(out[0], out[1]), std::make_pair(1u, 3u));
}

TEST(Primitives, EncodesRunsOfEqualNeighbours) {
  for (const size_t n : kSizes) {
    const std::vector<uint32_t> keys = random_values<uint32_t>(n, 1);
    std::vector<uint32_t> expected_keys, expected_counts;
    for (const uint32_t key : keys) {
      if (expected_keys.empty() || expected_keys.back() != key) {
        expected_keys.push_back(key);
        expected_counts.push_back(0);
      }
      ++expected_counts.back();
    }
    std::vector<uint32_t> unique(n), counts(n);
    const size_t runs = primitives::run_length_encode(keys.data(), unique.data(), counts.data(), n);
    unique.resize(runs);
    counts.resize(runs);
    EXPECT_TRUE(unique == expected_keys) << n;
    EXPECT_TRUE(counts == expected_counts) << n;
  }
}

TEST(Primitives, FindsWhereBinsBegin) {
  for (const size_t n : kSizes) {
    const size_t n_bins = n / 3 + 1;
    std::vector<uint32_t> keys =
        random_values<uint32_t>(n, 2 * n_bins);  // about half lie beyond the last bin
    std::sort(keys.begin(), keys.end());
    std::vector<uint32_t> starts(n_bins + 1);
    primitives::bin_starts(keys.data(), n, starts.data(), n_bins);
    bool are_right = true;
    for (size_t bin = 0; bin <= n_bins; ++bin) {
      are_right &= starts[bin] == std::lower_bound(keys.begin(), keys.end(), bin) - keys.begin();
    }
    EXPECT_TRUE(are_right) << n;
  }
}

}  // namespace
}  // namespace coppice
