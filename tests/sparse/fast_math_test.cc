// COPPICE_KERNEL_FAST_MATH on the CPU: what it may change, and what not. GPU code: ptx_math_gpu_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fast_math.kernels.h"
#include "sparse/program.h"

namespace coppice {
namespace {

class FastMath : public testing::Test {
 protected:
  template <class Kernel, class In, class Out>
  void run(const Kernel& kernel, const std::vector<In>& in, std::vector<Out>& out) {
    auto done = program.launch(kernel, range(static_cast<int64_t>(in.size())), in.data(), out.data());
    wait(done);
    ASSERT_FALSE(done.is_error()) << done.error().what();
  }
  Program program{Device::cpu(1), CodegenOptions{}};
};

// Fails when the specializer forgets the flags (equal everywhere), or sets them for every kernel of the file.
TEST_F(FastMath, IsForTheKernelsThatAskForIt) {
  std::vector<float> in(4096), precise(in.size()), fast(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = 1.0f + static_cast<float>(i) / 4096.0f;
  run(precise_thirds, in, precise);
  run(fast_thirds, in, fast);
  int different = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(precise[i], in[i] / 3.0f) << i;
    EXPECT_NEAR(fast[i], precise[i], precise[i] * std::numeric_limits<float>::epsilon()) << i;
    different += fast[i] != precise[i];
  }
  EXPECT_GT(different, 0) << "x / 3 is still divided, not multiplied by 1 / 3";
}

TEST_F(FastMath, TellsWhatIsNoNumberFromWhatIs) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> in{1.0f, std::numeric_limits<float>::quiet_NaN(), infinity, -1.0f};
  std::vector<int> out(in.size(), 9);
  run(fast_is_nan, in, out);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 1, 0}));
}

}  // namespace
}  // namespace coppice
