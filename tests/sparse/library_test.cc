// Kernels get from the host's libraries what the host gets: every function of C's math library, and what
// compilers call of their own accord.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "gpu/jit/library_symbols.h"
#include "gpu/jit/specializer.h"
#include "library.kernels.h"
#include "tests/sparse/library_functions.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

using library_test::Input;

std::vector<Input> inputs() {
  std::vector<Input> all;
  for (const double x :
       {0.0, 0.25, 0.75, 1.0, 1.5, 2.5, -2.5, 7.25, 100.125, -0.5, 1e-40, 3e20, 65519.9, 1e-7})
    all.push_back({x, 1.75 - x / 3, 0.5, static_cast<int64_t>(x * 1000) + 17});
  all.push_back({INFINITY, 2, 1, 5}), all.push_back({NAN, 1, 2, -6}),
      all.push_back({-1e10, -INFINITY, 0, -90001});
  all.push_back({0.1, 0.3, -0.03, INT64_MAX / 3}),
      all.push_back({1.0009765625 + 0x1p-30, 3, 1, INT64_MIN + 9});
  return all;
}
// A conversion of what the integer type does not hold is undefined.
std::vector<Input> inputs_of_helpers() {
  std::vector<Input> all;
  for (const Input& in : inputs())
    if (std::fabs(in.x) < 1e15) all.push_back(in);
  return all;
}

struct Named {
  std::string name;
  double value;
};

// Runs `kernel` over the inputs and compares each value with what `call` gives here: the same bits, or NaN
// for NaN.
template <class K, class Call>
void expect_as_on_host(Program& program, const K& kernel, const std::vector<Input>& in, Call&& call) {
  std::vector<std::vector<Named>> expected;
  for (const Input& input : in) {
    expected.emplace_back();
    call(input, [&](const char* name, double value) { expected.back().push_back({name, value}); });
  }
  const size_t stride = expected[0].size();
  std::vector<double> values(stride * in.size(), -12345);
  run_on(program, kernel, range(in.size()), in, values, static_cast<int>(stride));
  for (size_t i = 0; i < in.size(); ++i) {
    for (size_t k = 0; k < stride; ++k) {
      const double value = values[i * stride + k], want = expected[i][k].value;
      if (std::isnan(value) && std::isnan(want)) continue;
      EXPECT_EQ(std::memcmp(&value, &want, sizeof value), 0)
          << expected[i][k].name << " of " << in[i].x << ", " << in[i].y << ", " << in[i].n << ": " << value
          << " instead of " << want;
    }
  }
}

class Library : public DeviceTest {};

TEST_P(Library, MathGivesWhatItGivesTheHost) {
  expect_as_on_host(program(), math, inputs(), [](const Input& in, auto visit) { call_math(in, visit); });
}
TEST_P(Library, MathThatGivesTwoValuesGivesWhatItGivesTheHost) {
  expect_as_on_host(program(), math_with_pointers, inputs(),
                    [](const Input& in, auto visit) { call_math_with_pointers(in, visit); });
}
TEST_P(Library, WhatCompilersCallGivesWhatItGivesTheHost) {
  if (is_emulated()) {  // as weak as a GPU
    std::vector<Input> in = inputs_of_helpers();
    std::vector<double> out(in.size() * 64);
    try {
      run(helpers, range(1), in, out, 64);
      ADD_FAILURE() << "it is accepted";
    } catch (const Error& error) {
      EXPECT_NE(
          std::string(error.what()).find("a conversion between a float and an integer of more than 64 bits"),
          std::string::npos)
          << error.what();
    }
    device->default_stream().clear_error();
    return;
  }
  expect_as_on_host(program(), helpers, inputs_of_helpers(),
                    [](const Input& in, auto visit) { call_helpers(in, visit); });
}

// Rounded to nearest, once. The exact spacing of the values is what is compared with, not another library.
double rounded(double x, int bits, int min_exponent, double largest) {
  if (x == 0 || std::isnan(x) || std::isinf(x)) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), min_exponent) - (bits - 1));
  const double y = std::nearbyint(x / unit) * unit;
  return std::fabs(y) > largest ? std::copysign(INFINITY, x) : y;
}
double value_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}
double value_of_bfloat(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

TEST_P(Library, FloatsOf16BitsAreRoundedOnce) {
  std::vector<Input> in = inputs();
  // Halfway between two values as a float, and not quite so as a double.
  for (const double x :
       {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40, 1 + 3 * 0x1p-8 - 0x1p-40, 3.4e38, 65520.0})
    in.push_back({x, 0, 0, 0}), in.push_back({-x, 0, 0, 0});
  std::vector<uint16_t> bits(5 * in.size());
  run(halves, range(in.size()), in, bits);
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = in[i].x, single = static_cast<float>(x);
    const double half = rounded(x, 11, -14, 65504), largest = 0x1.fep127;
    const double expected[5] = {half, rounded(single, 11, -14, 65504),
                                rounded(static_cast<float>(half) * 3.0f, 11, -14, 65504),
                                rounded(x, 8, -126, largest), rounded(single, 8, -126, largest)};
    const bool is_denormal = std::fpclassify(in[i].x) != FP_ZERO && std::fabs(single) < 0x1p-126;
    for (int k = 0; k < 5; ++k) {
      const uint16_t b = bits[5 * i + k];
      const double value = k < 3 ? value_of_half(b) : value_of_bfloat(b);
      if (std::isnan(expected[k]) && std::isnan(value)) continue;
      if (k == 4 && is_denormal && value == 0) continue;  // so do processors that have an instruction for it
      EXPECT_EQ(value, expected[k]) << "number " << k << " of " << x;
    }
  }
}

TEST_P(Library, MemoryFunctions) {
  constexpr uint64_t n = 24;
  std::vector<unsigned char> from(4 * n), to(4 * 3 * n), expected(4 * 3 * n);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(13 * i + 1);
  std::vector<int> same(8);
  run(memory, range(4), to, from, n, same);
  for (size_t i = 0; i < 4; ++i) {
    unsigned char* row = expected.data() + 3 * n * i;
    std::memset(row, static_cast<int>(7 + i), 3 * n);
    std::memcpy(row, from.data() + n * i, n);
    std::memmove(row + n / 2, row, n);
    EXPECT_EQ(same[2 * i], 0);
    EXPECT_EQ(same[2 * i + 1], 0);
  }
  EXPECT_EQ(to, expected);
}

std::vector<std::string> devices_with_the_hosts_libraries() {
  std::vector<std::string> names = test_devices();
  std::erase(names, "cuda");  // has functions of its own, with errors of their own (docs/nvptx.md)
  return names;
}
INSTANTIATE_TEST_SUITE_P(Sparse, Library, testing::ValuesIn(devices_with_the_hosts_libraries()),
                         device_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Library);

jit::SpecializeRequest request_for(const char* kernel) {
  jit::SpecializeRequest request;
  request.id = std::string("library.") + kernel;
  request.file = &library_kernels;
  request.entry = std::string("coppice_kernel_") + kernel;
  return request;
}

// NVIDIA's library has what the host has. Without that library there is nothing to see.
TEST(LibraryOnGpus, HasAllOfMath) {
  for (const char* kernel : {"math", "math_with_pointers", "halves", "memory"}) {
    for (const int sm : {75, 90}) {
      try {
        const std::string ptx = jit::compile_ptx(request_for(kernel), {sm});
        EXPECT_NE(ptx.find(std::string("library_") + kernel), std::string::npos);
      } catch (const Error& error) {
        if (std::string(error.what()).find("without NVIDIA's libdevice") != std::string::npos)
          GTEST_SKIP() << error.what();
        ADD_FAILURE() << error.what();
      }
    }
  }
}

std::string object_of(const char* kernel) { return jit::compile_x86(request_for(kernel)); }

// Returns what an object file names in its table of symbols.
std::set<std::string> symbols_of(const std::string& object) {
  std::set<std::string> names;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof sections[0]);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* strings = object.data() + sections[section.sh_link].sh_offset;
    std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
    std::memcpy(symbols.data(), object.data() + section.sh_offset, section.sh_size);
    for (const Elf64_Sym& symbol : symbols) names.insert(strings + symbol.st_name);
  }
  return names;
}

// So that no name of the table goes untested: each is called by a kernel above, or is instructions on some
// processors.
TEST(LibrarySymbols, AreCalledByTheseKernels) {
  std::set<std::string> names;
  for (const char* kernel : {"math", "math_with_pointers", "helpers", "halves", "memory"})
    names.merge(symbols_of(object_of(kernel)));
  std::set<std::string> instructions;
  for (const char* name : {"ceil", "copysign", "fabs", "floor", "fma", "fmax", "fmin", "llrint", "lrint",
                           "nearbyint", "rint", "roundeven", "round", "sqrt", "trunc"})
    instructions.insert({name, std::string(name) + "f"});
  for (const char* name : {"bcmp", "sincos", "sincosf", "scalbn", "scalbnf", "__extendhfsf2", "__truncsfhf2",
                           "__truncsfbf2", "__truncdfhf2"})
    instructions.insert(name);
  for (const jit::LibrarySymbol& symbol : jit::library_symbols()) {
    EXPECT_NE(symbol.function, nullptr) << symbol.name;
    if (instructions.count(symbol.name) != 0) continue;
    // In a build with a sanitizer the functions of memory have names of its own.
    size_t found = 0;
    for (const char* prefix : {"", "__asan_", "__tsan_"})
      found += names.count(prefix + std::string(symbol.name));
    EXPECT_EQ(found, 1u) << symbol.name;
  }
}

}  // namespace
}  // namespace coppice
