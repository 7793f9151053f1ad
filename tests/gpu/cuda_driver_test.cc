// gpu/cuda/driver.h and driver_error.h: the table against cuda.h where there is one, programs without a
// driver, and what the driver's answers are called.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "core/error.h"
#include "core/trace.h"
#include "gpu/cuda/cuda_code.h"
#include "gpu/cuda/driver.h"
#include "gpu/cuda/driver_error.h"
#include "gpu/cuda/nvtx.h"
#include "gpu/device.h"
#ifdef COPPICE_HAS_CUDA_H
#include "tests/gpu/cuda/toolkit_declarations.h"
#endif
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

bool has_driver() { return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr; }

TEST(CudaDriver, SaysWhyThereIsNone) {
  if (has_driver()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  const std::string why =
      "no NVIDIA driver: libcuda.so.1: cannot open shared object file: No such file or directory";
  const Error error = error_from([] { cuda::load_driver(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), why);
  const Error of_user = error_from([] { Device::named("cuda"); });
  EXPECT_EQ(of_user.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(of_user.message(), "device cuda: " + why + "; use the cpu device");
  EXPECT_EQ(Device::best()->name(), "cpu");
  EXPECT_EQ(Device::named("auto")->name(), "cpu");
}

TEST(CudaDriver, NamesTheFunctionThatALibraryLacks) {
  const Error error = error_from([] { cuda::driver_from_library("libm.so.6"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "no NVIDIA driver: it lacks cuInit; the driver of CUDA 11.4 or newer is needed");
}

TEST(CudaDriver, RefusesADriverThatIsTooOldWithBothVersions) {
  FakeDriver driver({.driver_version = 10020});
  const Error error = error_from([&] { cuda::initialize(driver.table()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "the NVIDIA driver is too old: it is of CUDA 10.2, and 11.4 or newer is needed");
}

TEST(CudaDriver, SaysWhatItsInitializationAnswered) {
  FakeDriver driver;
  cuda::initialize(driver.table());
  for (const Result result : {Result::kNoDevice, Result::kStubLibrary, Result::kSystemDriverMismatch}) {
    driver.fail("cuInit", result);
    const Error error = error_from([&] { cuda::initialize(driver.table()); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error.message(), fmt::format("no NVIDIA driver: cuInit: answer {0} (CUDA_ERROR_{0})",
                                           static_cast<uint32_t>(result)));
  }
}

TEST(CudaDriver, RefusesMachinesThatCannotRunTheDevice) {
  const auto error_on = [](const Options& options) {
    FakeDriver driver(options);
    const Error error = error_from([&] { cuda::make_device(driver.table()); });
    EXPECT_EQ(driver.report(), "");
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    return error.message();
  };
  EXPECT_EQ(error_on({.devices = 0}), "device cuda: the NVIDIA driver shows no GPU");
  EXPECT_EQ(error_on({.sm = 70}), "device cuda: Fake GPU has compute capability 7.0; 7.5 or newer is needed");
  EXPECT_EQ(error_on({.has_virtual_memory = false}),
            "device cuda: the driver of Fake GPU has no virtual memory management");
  FakeDriver driver;
  EXPECT_EQ(error_from([&] { cuda::make_device(driver.table(), {.ordinal = 1}); }).message(),
            "device cuda: there is no GPU 1");
}

TEST(CudaDriver, DescribesItsDevice) {
  FakeCuda fake({.memory_bytes = size_t{3} << 29, .sm = 120});
  EXPECT_EQ(fake.device->name(), "cuda");
  EXPECT_EQ(fake.device->description(),
            "Fake GPU, compute capability 12.0, 4 multiprocessors, 1.5 GiB, driver of CUDA 12.4");
  EXPECT_EQ(fake.device->threads(), 4096);
}

TEST(CudaDriver, TellsNobodyOfItsOperationsWhereNoProfilerListens) {
  if (std::getenv("NVTX_INJECTION64_PATH") != nullptr) GTEST_SKIP() << "a profiler listens";
  FakeCuda fake;
  EXPECT_FALSE(cuda::trace_to_nvtx());
  EXPECT_EQ(Trace::listener(), nullptr);
}

TEST(CudaDriver, TellsWhoseFaultAnAnswerIs) {
  FakeDriver driver;
  const auto code = [&](Result result) { return cuda::driver_error(driver.table(), result, "x").code(); };
  EXPECT_EQ(code(Result::kOutOfMemory), ErrorCode::kOutOfMemory);
  for (const Result result : {Result::kIllegalAddress, Result::kLaunchFailed, Result::kEccUncorrectable,
                              Result::kNoDevice, Result::kUnsupportedPtxVersion, Result::kLaunchTimeout})
    EXPECT_EQ(code(result), ErrorCode::kUnavailable);
  EXPECT_EQ(code(Result::kInvalidValue), ErrorCode::kInternal);
  EXPECT_EQ(cuda::driver_error(driver.table(), Result::kInvalidValue, "cuMemMap").message(),
            "device cuda: cuMemMap: answer 1 (CUDA_ERROR_1)");
  EXPECT_EQ(cuda::driver_error(driver.table(), static_cast<Result>(12345), "cuMemMap").message(),
            "device cuda: cuMemMap: error 12345");
}

TEST(CudaCode, TakesTheNewestTargetThatAGpuAndTheCompilerKnow) {
  const std::pair<int, int> known[] = {{75, 75}, {80, 80}, {86, 86},  {87, 87},
                                       {89, 89}, {90, 90}, {100, 90}, {120, 90}};
  for (const auto& [sm, target] : known) EXPECT_EQ(jit::newest_ptx_target(sm).sm, target);
}

TEST(CudaCode, KnowsItsOwnPtxInTheCache) {
  EXPECT_EQ(cuda::why_not_ptx(ptx_of("heat.diffuse"), "heat.diffuse", 90), "");
  EXPECT_EQ(cuda::why_not_ptx("\x7f"
                              "ELF",
                              "heat.diffuse", 90),
            "it is no PTX");
  EXPECT_EQ(cuda::why_not_ptx(ptx_of("heat.diffuse") + '\0', "heat.diffuse", 90), "it is no PTX");
  EXPECT_EQ(cuda::why_not_ptx(ptx_of("heat.diffuse", 80), "heat.diffuse", 90), "it is not for sm_90");
  EXPECT_EQ(cuda::why_not_ptx(ptx_of("heat.diffuse"), "heat.diffuse", 9), "it is not for sm_9");
  EXPECT_EQ(cuda::why_not_ptx(ptx_of("heat.diffuse2"), "heat.diffuse", 90), "it has no kernel heat_diffuse");
}

TEST(CudaCode, ShowsTheAssemblersFirstErrorLine) {
  FakeCuda fake;
  fake.driver.refuse_ptx(
      Result::kInvalidPtx,
      "\nptxas info: hello\n  ptxas application ptx input, line 7; error   : Unknown symbol 'foo'\n"
      "ptxas fatal : Ptx assembly aborted due to errors\n");
  Error error = error_from([&] { code_of(fake.driver.table(), "heat.diffuse"); });
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
  EXPECT_EQ(error.message(),
            "kernel heat.diffuse: the driver refuses its PTX: ptxas application ptx input, line 7; "
            "error   : Unknown symbol 'foo'");
  fake.driver.refuse_ptx(Result::kInvalidPtx, "");
  error = error_from([&] { code_of(fake.driver.table(), "heat.diffuse"); });
  EXPECT_EQ(error.message(), "kernel heat.diffuse: the driver refuses its PTX: answer 218 (CUDA_ERROR_218)");
  fake.driver.refuse_ptx(Result::kUnsupportedPtxVersion, "");
  error = error_from([&] { code_of(fake.driver.table(), "heat.diffuse"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(),
            "device cuda: loading kernel heat.diffuse: the NVIDIA driver is too old: it is of CUDA "
            "12.4, and PTX 7.8 needs a newer one");
  fake.driver.refuse_ptx(Result::kOutOfMemory, "");
  EXPECT_EQ(error_from([&] { code_of(fake.driver.table(), "heat.diffuse"); }).code(),
            ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace coppice::fake
