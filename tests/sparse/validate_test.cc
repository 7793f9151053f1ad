// gpu/jit/validate.h: kernels on which LLVM 19 ends the process, or emits wrong code, are errors with a
// place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/jit/code_loader.h"
#include "gpu/jit/fatal_error.h"
#include "gpu/jit/specializer.h"
#include "tests/sparse/refused_bitcode.h"

namespace coppice {
namespace {

jit::SpecializeRequest request_for(const std::string& kernel, const KernelBitcode& file = refused_kernels) {
  jit::SpecializeRequest request;
  request.id = std::string(file.name) + "." + kernel;
  request.file = &file;
  request.entry = "coppice_kernel_" + kernel;
  return request;
}

std::string error_of(const jit::SpecializeRequest& request, int sm) {  // sm 0: the CPU
  try {
    if (sm == 0) {
      jit::compile_x86(request);
    } else {
      jit::compile_ptx(request, {sm});
    }
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCompile);
    return e.what();
  }
  return "";
}

// "kernel refused.fence: fence at /any/where/refused.kernels.cc:11: <what> is not supported on sm_75;
// <advice>"
void expect_refused(const std::string& kernel, const std::string& function, const std::string& what, int sm) {
  const std::string message = error_of(request_for(kernel), sm);
  EXPECT_EQ(message.rfind("kernel refused." + kernel + ": " + function, 0), 0u) << message;
  const std::string target = sm == 0 ? "x86-64 (" : "sm_" + std::to_string(sm) + "; ";
  EXPECT_NE(message.find(": " + what + " is not supported on " + target), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_GT(message.size(), message.find("; ") + 5) << "no advice: " << message;
}

struct Case {
  const char* kernel;
  const char* function;  // and, where debug information survives, " at "
  const char* what;
};
constexpr Case kNotOnGpus[] = {
    {"fence", "fence at ", "a fence"},
    {"load_acquire", "load_acquire at ", "an atomic with an order other than relaxed"},
    {"store_release", "store_release at ", "an atomic with an order other than relaxed"},
    {"add_in_order", "add_in_order at ", "an atomic with an order other than relaxed"},
    {"long_double", "long_double at ", "long double"},
    {"double_of_128_bits", "double_of_128_bits at ",
     "a conversion between a float and an integer of more than 64 bits"},
    {"x86_assembly", "x86_assembly at ", "assembly of another processor"},
    {"x86_register", "add_to_itself at ", "assembly of another processor"},
    {"wide_vectors", "wide_sqrt at ", "the intrinsic llvm.x86.avx512.sqrt.ps.512"},
    {"arm_instruction", "arm_instruction at ", "the intrinsic llvm.aarch64.crc32b"},
    {"per_thread", "", "the thread-local variable g_per_thread"},
    {"missing_global", "missing_global at ",
     "the variable coppice_test_missing_global, which nobody defines,"},
    {"array_of_any_size", "last_of at ", "stack memory of a size that only the run knows"},
    {"computed_goto", "computed_goto at ", "a computed goto"},
    {"clear_cache", "clear_cache at ", "the intrinsic llvm.clear_cache"},
    {"atomic_128_bits", "atomic_128_bits at ", "an atomic of more than 64 bits"},
    {"string_length", "string_length at ", "strlen, which has no GPU version,"},
    {"variadic", "sum at ", "the intrinsic llvm.va_start.p0"},
};

TEST(Validate, RefusesWhatAGpuCannotDoAndSaysWhere) {
  for (const Case& c : kNotOnGpus) {
    SCOPED_TRACE(c.kernel);
    expect_refused(c.kernel, c.function, c.what, 75);
    expect_refused(c.kernel, c.function, c.what, 90);
  }
}

// Every device says the same, one that could do it, too: what runs on one is to run on all.
TEST(Validate, RefusesRecursionAndUnknownCalleesOnEveryDeviceWithTheSameWords) {
  for (const auto& [kernel, text] :
       {std::pair("recursive",
                  "ackermann at {}:51: recursion is supported on no device; a GPU thread has next to "
                  "no stack: use a loop"),
        std::pair("unknown_callee",
                  "unknown_callee at {}:63: a call of a function that only the run knows is "
                  "supported on no device; use a switch")}) {
    std::vector<std::string> messages;
    for (int sm : {0, 75, 90}) messages.push_back(error_of(request_for(kernel), sm));
    jit::SpecializeRequest request = request_for(kernel);
    request.options.simt = true;
    messages.push_back(error_of(request, 0));
    for (const std::string& message : messages) {
      EXPECT_EQ(message, messages[0]);
      std::string shown = message;  // but for the folder
      const size_t from = shown.find(" at ") + 4, to = shown.rfind('/', shown.find(".kernels.cc:")) + 1;
      ASSERT_LT(from, to) << message;
      EXPECT_EQ(shown.erase(from, to - from),
                fmt::format("kernel refused.{}: {}", kernel,
                            fmt::format(fmt::runtime(text), "refused.kernels.cc")));
    }
  }
}
// A debugger shows calls as they were written.
TEST(Validate, LetsRecursionPassWhereNothingIsOptimised) {
  jit::SpecializeRequest request = request_for("recursive");
  request.options.step = true;
  EXPECT_EQ(error_of(request, 0), "");
}

// The emulated GPU runs x86 code, and is there to tell what a GPU cannot do.
TEST(Validate, RefusesOnTheEmulatedGpuWhatNoGpuCanDo) {
  for (const Case& c : kNotOnGpus) {
    const std::string kernel = c.kernel;
    if (kernel == "missing_global" || kernel == "clear_cache" || kernel == "string_length" ||
        kernel == "variadic")
      continue;
    jit::SpecializeRequest request = request_for(kernel);
    request.options.simt = true;
    const std::string message = error_of(request, 0);
    EXPECT_EQ(message.rfind("kernel refused." + kernel + ": " + c.function, 0), 0u) << message;
    EXPECT_NE(message.find(std::string(": ") + c.what + " is not supported on the emulated GPU; "),
              std::string::npos)
        << message;
    if (*c.function != '\0') {
      EXPECT_NE(message.find("refused.kernels.cc:"), std::string::npos) << message;
    }
  }
  for (const char* kernel : {"dead_code", "relaxed_atomics", "compiler_barrier", "integers_of_128_bits",
                             "recursion_that_is_a_loop", "bits"}) {
    jit::SpecializeRequest request = request_for(kernel);
    request.options.simt = true;
    EXPECT_EQ(error_of(request, 0), "") << kernel;
  }
}

TEST(Validate, NamesTheLineInTheKernelFile) {
  const std::string message = error_of(request_for("fence"), 90);
  EXPECT_NE(message.find("refused.kernels.cc:13: a fence"), std::string::npos) << message;
}

TEST(Validate, RefusesWhatTheCpuCannotDo) {
  expect_refused("gpu_register", "gpu_register at ", "the intrinsic llvm.nvvm.read.ptx.sreg.tid.x", 0);
  expect_refused("arm_instruction", "arm_instruction at ", "the intrinsic llvm.aarch64.crc32b", 0);
  expect_refused("per_thread", "", "the thread-local variable g_per_thread", 0);
}

TEST(Validate, KnowsWhatThisCpuHas) {
  const std::string message = error_of(request_for("wide_vectors"), 0);
  const std::string& features = jit::host_target().features;
  bool has_all = true;
  for (const char* part : {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512cd"})
    has_all &= features.find(part) != std::string::npos;
  if (has_all) {
    EXPECT_EQ(message, "");
  } else {
    EXPECT_NE(message.find("which needs +avx512f"), std::string::npos) << message;
  }
}

TEST(Validate, RefusesGlobalsThatNobodyWouldInitialise) {
  for (int sm : {0, 75}) {
    const std::string message = error_of(request_for("constructed", constructed_kernels), sm);
    EXPECT_TRUE(std::regex_match(
        message,
        std::regex(
            "kernel constructed\\.constructed: .*/constructed\\.kernels\\.cc:7: the variable g_table is "
            "initialised or destroyed by code, which no device runs before a kernel; make it constexpr")))
        << message;
    EXPECT_EQ(error_of(request_for("not_constructed", constructed_kernels), sm), "");
    jit::SpecializeRequest stepped = request_for("not_constructed", constructed_kernels);
    stepped.options.step = true;
    EXPECT_EQ(error_of(stepped, sm), "") << "as a file that includes Eigen";
  }
}

TEST(Validate, LetsEverythingElsePass) {
  for (const char* kernel : {"dead_code", "relaxed_atomics", "compiler_barrier", "integers_of_128_bits",
                             "recursion_that_is_a_loop", "bits"}) {
    for (int sm : {0, 75, 90}) EXPECT_EQ(error_of(request_for(kernel), sm), "") << kernel << " for " << sm;
  }
  for (const char* kernel :
       {"fence", "load_acquire", "long_double", "computed_goto", "array_of_any_size", "variadic"})
    EXPECT_EQ(error_of(request_for(kernel), 0), "") << kernel;
}

TEST(FatalErrors, KnowTheInnermostKernelOfTheirThread) {
  EXPECT_EQ(jit::compiling_kernel(), nullptr);
  {
    const jit::CompilingKernel outer("a.b");
    {
      const jit::CompilingKernel inner("c.d");
      EXPECT_EQ(*jit::compiling_kernel(), "c.d");
    }
    EXPECT_EQ(*jit::compiling_kernel(), "a.b");
  }
  EXPECT_EQ(jit::compiling_kernel(), nullptr);
}

}  // namespace
}  // namespace coppice
