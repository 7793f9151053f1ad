// GPU code of math: precise and fast, what libdevice has, and the GPUs that PTX is for.
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "fast_math.kernels.h"
#include "gpu/jit/specialization_key.h"
#include "heat.kernels.h"
#include "sparse/program.h"
#include "sparse/program_ptx.h"
#include "sparse/tree.h"
#include "tests/sparse/ptx_check.h"

namespace coppice {
namespace {

class PtxMath : public testing::Test {
 protected:
  void SetUp() override {
    if (!jit::has_libdevice()) GTEST_SKIP() << "built without libdevice, which math functions need";
  }
  std::string text_of(const Kernel<void(Item, const float*, float*)>& kernel, int sm) {
    return ProgramPtx::of(program, {sm}, kernel, range(9), static_cast<const float*>(nullptr),
                          static_cast<float*>(nullptr));
  }
  std::string text_of_all(int sm) {
    return ProgramPtx::of(program, {sm}, all_libdevice, range(9), static_cast<const float*>(nullptr),
                          static_cast<float*>(nullptr), static_cast<double*>(nullptr));
  }
  static bool has(const std::string& text, const char* words) { return text.find(words) != text.npos; }
  static void expect_assembles(const std::string& text, std::initializer_list<int> gpus) {
    if (ptx_check::ptxas_path().empty()) return;
    for (const int sm : gpus) {
      const ptx_check::Usage usage = ptx_check::assemble(ptx_check::ptxas_path(), text, sm);
      EXPECT_EQ(usage.error, "") << "for sm_" << sm;
      EXPECT_GT(usage.registers, 0) << "for sm_" << sm;
    }
  }
  IntrusivePtr<Device> device = Device::cpu(1);
  Program program{device};
};

TEST_F(PtxMath, PreciseDivisionAndSquareRootAreRounded) {
  for (const int sm : {75, 90}) {
    const std::string text = text_of(precise_functions, sm);
    EXPECT_TRUE(has(text, "div.rn.f32")) << text;
    EXPECT_TRUE(has(text, "sqrt.rn.f32")) << text;
    EXPECT_FALSE(has(text, "div.approx") || has(text, "sqrt.approx") || has(text, "sin.approx")) << text;
    EXPECT_FALSE(has(text, "add.ftz") || has(text, "fma.rn.ftz") || has(text, "mul.ftz")) << text;
    expect_assembles(text, {sm});
  }
}

// divide() is a function of its own. Fails for flags on the entry alone.
TEST_F(PtxMath, FastMathReachesWhatTheKernelCalls) {
  for (const int sm : {75, 90}) {
    const std::string text = text_of(fast_functions, sm);
    for (const char* fast :
         {"div.approx.ftz.f32", "sqrt.approx.ftz.f32", "ex2.approx.ftz.f32", "sin.approx.ftz.f32"})
      EXPECT_TRUE(has(text, fast)) << fast << " in " << text;
    EXPECT_FALSE(has(text, "div.rn") || has(text, "sqrt.rn")) << text;
    expect_assembles(text, {sm});
  }
  EXPECT_TRUE(has(text_of(precise_thirds, 90), "div.rn.f32"));
  EXPECT_FALSE(has(text_of(fast_thirds, 90), "div."));
}

// Seen to fail with LLVM's "unsafe-fp-math", which makes it rsqrt.approx.f64.
TEST_F(PtxMath, FastMathKeepsDoublesPrecise) {
  const std::string text = ProgramPtx::of(program, {90}, fast_doubles, range(9),
                                          static_cast<const double*>(nullptr), static_cast<double*>(nullptr));
  EXPECT_TRUE(has(text, "div.rn.f64") || has(text, "rcp.rn.f64")) << text;
  EXPECT_TRUE(has(text, "sqrt.rn.f64")) << text;
  EXPECT_FALSE(has(text, "ex2.approx.ftz.f64") || has(text, "approx.f64")) << text;
}

// Fails for a name that libdevice does not have, or whose arguments are others.
TEST_F(PtxMath, EveryFunctionOfTheTableIsInLibdevice) {
  for (const int sm : {75, 90}) {
    const std::string text = text_of_all(sm);
    ptx_check::expect_no_unresolved_calls("fast_math.all_libdevice", text);
    expect_assembles(text, {sm});
  }
}

TEST_F(PtxMath, LinksNothingButWhatIsCalled) {
  EXPECT_FALSE(has(text_of(precise_functions, 80), "__nv_"));
  EXPECT_LT(text_of(precise_thirds, 80).size(), 5120u);
}

// A driver assembles PTX that is older than its GPU.
TEST_F(PtxMath, OlderPtxAssemblesForNewerGpus) {
  Tree tree(device);
  Node leaf = tree.root().pointer({64, 64, 64}).dense({8, 8, 8});
  const Heat heat{leaf.place<float>("now"), leaf.place<float>("next")};
  for (const std::string& text :
       {text_of_all(90), ProgramPtx::of(program, {90}, diffuse, over(leaf), heat, 0.1f)})
    expect_assembles(text, {90, 100, 120});
  for (const std::string& text :
       {text_of_all(75), ProgramPtx::of(program, {75}, diffuse, over(leaf), heat, 0.1f)})
    expect_assembles(text, {75, 80, 90, 120});
  if (ptx_check::ptxas_path().empty()) GTEST_SKIP() << "no ptxas on PATH or in $CUDA_HOME/bin";
}

// A target in a version of PTX that does not know it would be refused.
TEST_F(PtxMath, EveryTargetAssemblesForItsGpu) {
  for (const int sm : {75, 80, 86, 87, 89, 90}) {
    const std::string text = text_of(fast_functions, sm);
    EXPECT_TRUE(has(text, fmt::format(".target sm_{}\n", sm).c_str()));
    expect_assembles(text, {sm});
  }
}

TEST(PtxTarget, IsTheNewestThatIsNotNewerThanTheGpu) {
  const std::pair<int, int> kExpected[] = {{75, 75}, {80, 80},  {86, 86},  {87, 87},  {88, 87}, {89, 89},
                                           {90, 90}, {100, 90}, {103, 90}, {120, 90}, {121, 90}};
  for (const auto& [capability, sm] : kExpected)
    EXPECT_EQ(jit::newest_ptx_target(capability).sm, sm) << capability;
  try {
    jit::newest_ptx_target(70);
    FAIL() << "sm_70 was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnavailable);
    EXPECT_STREQ(e.what(), "the GPU's compute capability is 7.0; expected 7.5 (Turing) or newer");
  }
}

// Code for one GPU, or without libdevice, must not be found for another.
TEST(PtxKey, DependsOnTheTarget) {
  const jit::SpecializeRequest request{
      "fast_math.fast_thirds", &fast_math_kernels, "coppice_kernel_fast_thirds", {}, {}, 0};
  std::set<std::string> keys{jit::specialization_key(request).hex()};
  for (const int sm : {75, 80, 90})
    keys.insert(jit::specialization_key(request, jit::ptx_key_context({sm})).hex());
  EXPECT_EQ(keys.size(), 4u);
  keys.insert(jit::specialization_key(request, jit::ptx_key_context({.sm = 80, .libdevice = false})).hex());
  EXPECT_EQ(keys.size(), jit::has_libdevice() ? 5u : 4u);
}

// ptxas assumes 1024 threads in a block without it, and full multiprocessors without a minimum of blocks.
TEST(PtxLaunchBounds, AreThoseOfTheDevicesLaunches) {
  Program program{Device::cpu(1)};
  const std::string text = ProgramPtx::of(program, {80}, fast_thirds, range(9),
                                          static_cast<const float*>(nullptr), static_cast<float*>(nullptr));
  EXPECT_NE(text.find(fmt::format(".reqntid {}, 1, 1\n", kGpuThreadsPerBlock)), std::string::npos) << text;
  EXPECT_NE(text.find(".minnctapersm 1\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace coppice
