// Random: the published test vectors, the moments and tails of its distributions, and
// independence of threads and lists.
//
// Statistics of n draws are compared with their expectation at six standard deviations: one in 5 * 10^8 would
// fail by chance, and seeds are fixed besides.
#include "sparse/device/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "random.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

constexpr double kSigmas = 6;
constexpr int64_t kItems = 1 << 17;

// Vectors of Random123, the authors' own library.
TEST(Philox, GivesThePublishedNumbers) {
  struct Vector {
    device::PhiloxBlock counter;
    uint64_t key;
    device::PhiloxBlock expected;
  };
  const Vector vectors[]{
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~uint64_t{0}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0x299f31d0a4093822,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const Vector& v : vectors) {
    const device::PhiloxBlock got = device::philox(v.counter, v.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], v.expected.word[i]) << i;
  }
}

TEST(ExactLog, IsTheLogarithmToThreeUlp) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> exponent(-100, 100);
  double worst = 0, worst_float = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(exponent(generator)) : 1 + exponent(generator) * 1e-3;
    const auto f = static_cast<float>(x);
    const double e = std::log(x), ef = std::log(static_cast<double>(f));
    worst = std::max(worst, std::abs(device::exact_log(x) - e) / std::max(std::abs(e), 1e-300));
    if (ef != 0) worst_float = std::max(worst_float, std::abs(device::exact_log(f) - ef) / std::abs(ef));
  }
  EXPECT_LE(worst, 3 * 0x1p-52);
  EXPECT_LE(worst_float, 3 * 0x1p-23);
}

class RandomNumbers : public testing::Test {
 protected:
  IntrusivePtr<Device> device = cpu_or_test_device(4);
  Program program{device};

  template <class... Arguments>
  void run(Arguments&&... arguments) {
    auto done = launch_and_wait(program, std::forward<Arguments>(arguments)...);
    ASSERT_FALSE(done.is_error()) << done.error().what();
  }
  template <class T>
  static double mean_of(const std::vector<T>& x, int power) {
    double sum = 0;
    for (const T value : x) sum += std::pow(static_cast<double>(value), power);
    return sum / static_cast<double>(x.size());
  }
  // The k-th moment of x is `expected`; var(x^k) = E x^2k - (E x^k)^2 bounds its error.
  template <class T>
  static void expect_moment(const std::vector<T>& x, int power, double expected, double expected_twice) {
    const double sigma = std::sqrt((expected_twice - expected * expected) / static_cast<double>(x.size()));
    EXPECT_NEAR(mean_of(x, power), expected, kSigmas * sigma) << "moment " << power;
  }
};

// Chi-square of k bins has mean k - 1 and variance 2 (k - 1), nearly normal for large k.
double chi_square_in_sigmas(const std::vector<uint64_t>& bins, double total) {
  const double expected = total / static_cast<double>(bins.size());
  double chi_square = 0;
  for (const uint64_t n : bins) chi_square += std::pow(static_cast<double>(n) - expected, 2) / expected;
  const double freedom = static_cast<double>(bins.size()) - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST_F(RandomNumbers, AreUniform) {
  std::vector<float> floats(kItems);
  std::vector<double> doubles(kItems);
  run(draw_uniform, range(kItems), floats, doubles);
  const auto check = [&](const auto& x) {
    EXPECT_GE(*std::min_element(x.begin(), x.end()), 0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
    for (int k = 1; k <= 4; ++k) expect_moment(x, k, 1.0 / (k + 1), 1.0 / (2 * k + 1));
    std::vector<uint64_t> bins(256);
    for (const auto value : x) ++bins[static_cast<size_t>(value * 256)];
    EXPECT_LT(std::abs(chi_square_in_sigmas(bins, static_cast<double>(x.size()))), kSigmas);
  };
  check(floats), check(doubles);
  // Products of a number and the next item's: neighbours are not correlated.
  for (const int64_t apart : {1, 2, 64}) {
    double sum = 0;
    for (int64_t i = 0; i + apart < kItems; ++i) sum += (floats[i] - 0.5) * (floats[i + apart] - 0.5);
    EXPECT_LT(std::abs(sum), kSigmas * std::sqrt(static_cast<double>(kItems)) / 12) << apart;
  }
}

// Also sees a spare that is not independent: pairs of one item are uncorrelated, in their squares, too.
TEST_F(RandomNumbers, AreNormal) {
  std::vector<float> floats(2 * kItems);
  std::vector<double> doubles(2 * kItems);
  run(draw_normal, range(kItems), floats, doubles);
  const auto check = [&](const auto& x) {
    expect_moment(x, 1, 0, 1), expect_moment(x, 2, 1, 3), expect_moment(x, 3, 0, 15),
        expect_moment(x, 4, 3, 105);
    std::vector<uint64_t> bins(64);  // of equal probability
    for (const auto value : x)
      ++bins[std::min(63, static_cast<int>(32 * std::erfc(-value / std::sqrt(2.0))))];
    EXPECT_LT(std::abs(chi_square_in_sigmas(bins, static_cast<double>(x.size()))), kSigmas);
    double product = 0, squares = 0;
    for (int64_t i = 0; i < kItems; ++i) {
      const double a = x[2 * i], b = x[2 * i + 1];
      product += a * b, squares += (a * a - 1) * (b * b - 1);
    }
    EXPECT_LT(std::abs(product), kSigmas * std::sqrt(static_cast<double>(kItems)));
    EXPECT_LT(std::abs(squares), kSigmas * 2 * std::sqrt(static_cast<double>(kItems)));
  };
  check(floats), check(doubles);
}

// Guards the rejection: without it, of 3 * 2^30 the lower third would come twice as often.
TEST_F(RandomNumbers, BelowANumberAreUnbiased) {
  std::vector<uint32_t> x(kItems);
  for (const uint32_t n : {1u, 3u, 100u, 3u << 30, ~0u}) {
    run(draw_below, range(kItems), n, x);
    const uint32_t num_bins = std::min(n, 96u);
    std::vector<uint64_t> bins(num_bins);
    for (const uint32_t value : x) {
      ASSERT_LT(value, n);
      ++bins[static_cast<size_t>(uint64_t{value} * num_bins / n)];
    }
    if (n > 1 && n % num_bins == 0) {
      EXPECT_LT(std::abs(chi_square_in_sigmas(bins, kItems)), kSigmas) << n;
    }
    const double mean = mean_of(x, 1), sigma = n / std::sqrt(12.0 * kItems);
    EXPECT_NEAR(mean, (n - 1.0) / 2, kSigmas * sigma) << n;
    if (n > 2) {
      const auto odd = std::count_if(x.begin(), x.end(), [](uint32_t value) { return value % 3 == 1; });
      const double p = std::floor((n + 1.0) / 3) / n;
      EXPECT_NEAR(static_cast<double>(odd), p * kItems, kSigmas * std::sqrt(p * (1 - p) * kItems)) << n;
    }
  }
  run(draw_below, range(1), 0u, x);
  EXPECT_EQ(x[0], 0u);
}

TEST_F(RandomNumbers, DifferInEveryPartOfTheirKey) {
  constexpr int64_t kMany = 4096;
  std::vector<uint32_t> all;
  const auto draw = [&](uint64_t seed, uint64_t b) {
    std::vector<uint32_t> x(kMany);
    run(draw_with_key, range(kMany), seed, b, x);
    all.insert(all.end(), x.begin(), x.end());
  };
  draw(1, 0), draw(2, 0), draw(1, 1), draw(1, uint64_t{1} << 32), draw(uint64_t{1} << 32, 0), draw(0, 0);
  const size_t n = all.size();
  std::sort(all.begin(), all.end());
  const size_t same = static_cast<size_t>(all.end() - std::unique(all.begin(), all.end()));
  const double expected = static_cast<double>(n) * static_cast<double>(n) / 2 * 0x1p-32;  // birthdays
  EXPECT_LE(static_cast<double>(same), expected + kSigmas * std::sqrt(expected + 1));
}

TEST_F(RandomNumbers, DifferFromLaunchToLaunchAndRepeatWithTheSeed) {
  constexpr int64_t kMany = 4096;
  const auto draw_two = [&](uint64_t seed) {
    const auto own = cpu_or_test_device(2);
    Program with(own);
    own->set_seed(seed);
    std::vector<std::vector<uint32_t>> x(2, std::vector<uint32_t>(kMany));
    for (auto& launch : x) run_on(with, draw_words, range(kMany / 4), 4, launch);
    return x;
  };
  const auto first = draw_two(5), again = draw_two(5), other = draw_two(6);
  EXPECT_EQ(first, again);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[0], other[0]);
  EXPECT_NE(first[1], other[1]);
  EXPECT_NE(other[0], first[1]) << "the next seed is the next launch";
}

// The same cells, of trees that were filled in another order, on 1 thread and on 4: the same bits.
TEST_F(RandomNumbers, OfACellDependOnItsCoordinateOnly) {
  std::vector<std::array<int32_t, 3>> coords;
  std::mt19937 generator(7);
  for (int i = 0; i < 500; ++i)
    coords.push_back({static_cast<int32_t>(generator() % 128), static_cast<int32_t>(generator() % 128),
                      static_cast<int32_t>(generator() % 128)});
  const auto fill = [&](int threads, bool dense) {
    const auto own = cpu_or_test_device(threads);
    Program with(own);
    Tree tree(own);
    Node block = tree.root().pointer({16, 16, 16});
    Node leaf = dense ? block.dense({8, 8, 8}) : block.bitmasked({8, 8, 8});
    Field<float> uniform = leaf.place<float>("uniform"), normal = leaf.place<float>("normal");
    for (const auto& coord : coords) wait(leaf.activate({coord}));
    own->set_seed(3);
    wait(with.launch(fill_noise, over(leaf), Noise{uniform, normal}));
    std::vector<float> values;
    for (const auto& c : coords) {
      values.push_back(wait_read(uniform, {c[0], c[1], c[2]}));
      values.push_back(wait_read(normal, {c[0], c[1], c[2]}));
    }
    return values;
  };
  // The launches before have to be as many, for their number counts.
  const std::vector<float> expected = fill(1, false);
  EXPECT_NE(std::count(expected.begin(), expected.end(), 0.0f), static_cast<int64_t>(expected.size()));
  EXPECT_EQ(fill(4, false), expected);
  EXPECT_EQ(fill(4, true), expected);
  std::reverse(coords.begin(), coords.end());
  std::vector<float> reversed = fill(4, false);
  for (size_t i = 0; i < coords.size(); ++i) {
    ASSERT_EQ(reversed[2 * i], expected[2 * (coords.size() - 1 - i)]) << i;
    ASSERT_EQ(reversed[2 * i + 1], expected[2 * (coords.size() - 1 - i) + 1]) << i;
  }
}

// The generator that kernels run is the one of the host compiler, bit for bit: no library's functions, and
// nothing that a back end may fuse or not. Seen to fail where it fused exact_log()'s sums itself.
TEST_F(RandomNumbers, AreTheSameWhenTheHostDraws) {
  std::vector<float> floats(2 * kItems);
  std::vector<double> doubles(2 * kItems);
  run(draw_normal, range(kItems), floats, doubles);
  DeviceContext context;
  device->wait_copy(&context, &device->context(), sizeof context);
  LaunchBlock block{};
  block.context = &context;
  for (int64_t i = 0; i < kItems; i += 17) {
    Random random(Item{&block, i});
    ASSERT_EQ(random.normal(), floats[2 * i]) << i;
    ASSERT_EQ(random.normal(), floats[2 * i + 1]) << i;
    ASSERT_EQ(random.normal<double>(), doubles[2 * i]) << i;
    ASSERT_EQ(random.normal<double>(), doubles[2 * i + 1]) << i;
  }
}

}  // namespace
}  // namespace coppice
