// COPPICE_TEMPORARIES: temporaries of functions and of fields that share no bytes.
#include "sparse/temporary_places.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/plan/verify.h"
#include "sparse/cell_memory.h"
#include "sparse/function.h"
#include "sparse/function_memory.h"
#include "sparse/read_back.h"
#include "temporary_fields.kernels.h"
#include "tests/sparse/environment.h"
#include "tests/sparse/refusal.h"
#include "tests/sparse/temporary_fields_line.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class TemporaryPlaces : public DeviceTest {};

TEST_P(TemporaryPlaces, OfFieldsAreTheirOwnWhereTheEnvironmentSaysSo) {
  std::vector<float> values[2];
  for (const bool apart : {false, true}) {
    const Environment environment("COPPICE_TEMPORARIES", apart ? "apart" : "shared");
    const Line x(device);
    finish(x.leaf.activate({{0}, {40}, {127}}));
    const Loop cells = over(x.leaf);
    program().launch(store_ramp, cells, x.a, 3.0f);
    program().launch(mix, cells, x.a, x.a, x.b, 0.5f);
    program().launch(mix, cells, x.b, x.out, x.c, 0.25f);
    program().launch(mix, cells, x.c, x.c, x.out, 2.0f);
    values[apart] = wait_read(x.out, {0}, {128});
    const CellMemory memory = memory_of(x.leaf);
    EXPECT_EQ(plan::find_fault(memory.problem, memory.plan), std::nullopt);
    EXPECT_EQ(memory.plan.bytes, apart ? memory.naive_bytes() : memory.least_bytes);
    EXPECT_EQ(text_of(memory), apart
                                   ? "3 temporaries of 12 bytes per cell together in 12; any plan needs 8"
                                   : "3 temporaries of 12 bytes per cell together in 8; no plan needs less");
    // The bytes of `a` are those of `c` in a plan.
    if (apart) {
      finish(program().launch(mix, cells, x.a, x.a, x.b, 1.0f));
    } else {
      EXPECT_TRUE(has(refusal([&] { program().launch(mix, cells, x.a, x.a, x.b, 1.0f); }), "hold 'c'"));
    }
  }
  EXPECT_NE(values[0][40], 0);
  EXPECT_EQ(values[0], values[1]);
}

INSTANTIATE_TEST_SUITE_P(Sparse, TemporaryPlaces, testing::ValuesIn(test_devices()), device_test_name);

TEST(TemporaryPlacesOfTheEnvironment, RefuseOtherWords) {
  const Environment environment("COPPICE_TEMPORARIES", "far");
  EXPECT_EQ(refusal([] { temporaries_lie_apart(); }, {ErrorCode::kUsage}),
            "COPPICE_TEMPORARIES must be shared or apart, not 'far'");
}

}  // namespace
}  // namespace coppice
