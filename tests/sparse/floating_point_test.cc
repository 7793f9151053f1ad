// The promises of docs/floating-point.md hold, line by line.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "floating_point.kernels.h"
#include "sparse/program_ptx.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kItems = 1024;

class FloatingPoint : public DeviceTest {
 protected:
  // Numbers of all magnitudes up to 2^8, the same in every run.
  static std::vector<float> numbers(uint32_t seed, bool positive = false) {
    std::vector<float> all(kItems);
    uint32_t state = seed;
    for (float& x : all) {
      state = state * 1664525u + 1013904223u;
      x = std::ldexp(1.0f + static_cast<float>(state >> 9) * 0x1p-23f, static_cast<int>(state % 17) - 8);
      if (!positive && (state & 64) != 0) x = -x;
    }
    return all;
  }
  bool runs_libm() const { return GetParam() != "cuda"; }
};

TEST_P(FloatingPoint, ProductsAndSumsAreFusedAlsoAcrossStatements) {
  const std::vector<float> a = numbers(1), b = numbers(2), c = numbers(3);
  std::vector<float> o(kItems);
  run(fuse_products, range(kItems), a, b, c, o);
  int fused = 0;
  for (int i = 0; i < kItems; ++i) {
    const volatile float product = a[i] * b[i];
    const float apart = product + c[i], once = std::fmaf(a[i], b[i], c[i]);
    EXPECT_TRUE(o[i] == once || o[i] == apart) << i;
    fused += o[i] == once && once != apart;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") || !runs_libm()) {
    EXPECT_GT(fused, 0);
  }
#endif
}

TEST_P(FloatingPoint, ThePragmaKeepsThemApart) {
  const std::vector<float> a = numbers(1), b = numbers(2), c = numbers(3);
  std::vector<float> o(kItems);
  run(keep_products, range(kItems), a, b, c, o);
  for (int i = 0; i < kItems; ++i) {
    const volatile float product = a[i] * b[i];
    const volatile float sum = product + c[i];
    EXPECT_EQ(o[i], sum) << i;
  }
}

TEST_P(FloatingPoint, ACompensatedSumIsOne) {
  std::vector<float> a(20001, 1e-4f);
  a[0] = 4096;
  std::vector<float> o(1);
  const int n = is_emulated() ? 2001 : 20001;
  run(compensate, range(1), a, n, o);
  EXPECT_EQ(o[0], static_cast<float>(4096 + (n - 1) * double{1e-4f}));
}

TEST_P(FloatingPoint, DivisionsAndSquareRootsAreRoundedExactly) {
  const std::vector<float> a = numbers(4, true), b = numbers(5);
  std::vector<float> quotient(kItems), root(kItems);
  run(round_exactly, range(kItems), a, b, quotient, root);
  std::vector<double> x(a.begin(), a.end()), y(b.begin(), b.end()), quotients(kItems), roots(kItems);
  run(round_doubles, range(kItems), x, y, quotients, roots);
  for (int i = 0; i < kItems; ++i) {
    EXPECT_EQ(quotient[i], a[i] / b[i]) << i;
    EXPECT_EQ(root[i], std::sqrt(a[i])) << i;
    EXPECT_EQ(quotients[i], x[i] / y[i]) << i;
    EXPECT_EQ(roots[i], std::sqrt(x[i])) << i;
  }
}

TEST_P(FloatingPoint, DenormalsInfinitiesAndSignsOfZerosAreKept) {
  const std::vector<float> tiny{1e-39f, -3e-40f, 0x1p-126f, 0x1p-149f, 0x1p-148f};
  std::vector<float> half(tiny.size());
  run(halve_denormals, range(static_cast<int>(tiny.size())), tiny, half);
  for (size_t i = 0; i < tiny.size(); ++i) EXPECT_EQ(half[i], tiny[i] * 0.5f) << i;
  const std::vector<float> a{1, -1, kInfinity, kNan, -0.0f};
  std::vector<float> o(a.size());
  run(keep_signs, range(static_cast<int>(a.size())), a, o);
  EXPECT_TRUE(o[0] == 0 && !std::signbit(o[0]));
  EXPECT_TRUE(o[1] == 0 && std::signbit(o[1]));
  EXPECT_TRUE(std::isnan(o[2]) && std::isnan(o[3]));
  EXPECT_TRUE(std::signbit(o[4]));
}

TEST_P(FloatingPoint, HalvesAreRoundedAfterEveryOperation) {
  const auto nearest = [](float x) {  // of 11 bits
    int exponent = 0;
    const float fraction = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
  };
  std::vector<float> a, o(kItems);
  for (int i = 0; i < kItems; ++i) a.push_back(static_cast<float>(1024 + i));
  run(round_halves, range(kItems), a, o);
  for (int i = 0; i < kItems; ++i) {
    EXPECT_EQ(o[i], nearest(nearest(a[i] * 1.0009765625f) * 1.0009765625f)) << i;
  }
}

TEST_P(FloatingPoint, TheLeastOfANumberAndNoNumberIsTheNumber) {
  const std::vector<float> a{kNan, 1, -kInfinity, 3}, b{1, kNan, 2, 2};
  std::vector<float> least(4), most(4);
  run(order_numbers, range(4), a, b, least, most);
  EXPECT_EQ(least, (std::vector<float>{1, 1, -kInfinity, 2}));
  EXPECT_EQ(most, (std::vector<float>{1, 1, 2, 3}));
}

TEST_P(FloatingPoint, FastMathKeepsInfinitiesAndZeros) {
  const std::vector<float> a{1, 1, 1, -2, 1, 9}, b{0, kInfinity, 4, 0, kNan, -1};
  std::vector<float> o(a.size());
  run(fast_inverse_roots, range(static_cast<int>(a.size())), a, b, o);
  EXPECT_EQ(o[0], kInfinity);
  EXPECT_EQ(o[1], 0);
  EXPECT_NEAR(o[2], 0.5f, 1e-6f);
  EXPECT_EQ(o[3], -kInfinity);
  EXPECT_TRUE(std::isnan(o[4]) && std::isnan(o[5]));
  const std::vector<double> x(a.begin(), a.end()), y(b.begin(), b.end());
  std::vector<double> d(x.size());
  run(fast_inverse_roots_of_doubles, range(static_cast<int>(x.size())), x, y, d);
  EXPECT_EQ(d[0], kInfinity);
  EXPECT_EQ(d[1], 0);
  EXPECT_NEAR(d[2], 0.5, 1e-14);
}

// No estimate of one maker's processor or another's: the same bits on all of them.
TEST_P(FloatingPoint, FastMathRoundsRootsAndDivisionsOnCpusAsTheyAreWritten) {
  if (!runs_libm()) GTEST_SKIP() << "GPUs have approximate instructions";
  const std::vector<float> a = numbers(6), b = numbers(7, true);
  std::vector<float> o(kItems);
  run(fast_inverse_roots, range(kItems), a, b, o);
  for (int i = 0; i < kItems; ++i) {
    const float root = std::sqrt(b[i]);
    EXPECT_TRUE(o[i] == a[i] / root || o[i] == a[i] * (1 / root)) << i;
  }
}

TEST_P(FloatingPoint, FunctionsOnCpusAreThoseOfTheHostsLibrary) {
  if (!runs_libm()) GTEST_SKIP() << "GPUs have libdevice's";
  const std::vector<float> a = numbers(8, true);
  std::vector<float> s(kItems), e(kItems), l(kItems), p(kItems), t(kItems);
  run(call_library, range(kItems), a, s, e, l, p, t);
  float (*const power)(float, float) = ::powf;  // called, not folded
  for (int i = 0; i < kItems; ++i) {
    EXPECT_EQ(s[i], std::sin(a[i])) << i;
    EXPECT_EQ(e[i], std::exp(a[i])) << i;
    EXPECT_EQ(l[i], std::log(a[i])) << i;
    EXPECT_EQ(p[i], power(a[i], 1.7f)) << i;
    EXPECT_EQ(t[i], std::tanh(a[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, FloatingPoint, testing::ValuesIn(test_devices()), device_test_name);

// The same in PTX, which names how each operation is rounded.
class FloatingPointPtx : public testing::Test {
 protected:
  static size_t count(const std::string& text, std::string_view word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
    return n;
  }
  Program program{Device::cpu(1), CodegenOptions{}};
  const float* in = nullptr;
  float* out = nullptr;
  const jit::PtxTarget target{.sm = 80, .libdevice = false};
};

TEST_F(FloatingPointPtx, FusesUnlessThePragmaSaysNo) {
  const std::string fused = ProgramPtx::of(program, target, fuse_products, range(1), in, in, in, out);
  EXPECT_GT(count(fused, "fma.rn.f32"), 0u) << fused;
  const std::string apart = ProgramPtx::of(program, target, keep_products, range(1), in, in, in, out);
  EXPECT_EQ(count(apart, "fma"), 0u) << apart;
  EXPECT_GT(count(apart, "mul.rn.f32"), 0u) << apart;  // without .rn ptxas would be free to fuse
  EXPECT_GT(count(apart, "add.rn.f32"), 0u) << apart;
}

TEST_F(FloatingPointPtx, RoundsExactlyAndKeepsDenormals) {
  const std::string text = ProgramPtx::of(program, target, round_exactly, range(1), in, in, out, out);
  EXPECT_GT(count(text, "div.rn.f32"), 0u) << text;
  EXPECT_GT(count(text, "sqrt.rn.f32"), 0u) << text;
  EXPECT_EQ(count(text, ".ftz"), 0u) << text;
}

}  // namespace
}  // namespace coppice
