// Coordinates outside of the domain.
#include "core/error.h"
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C64_ReadsOutsideTheDomainGiveZeroAndWritesAreErrors) {
  Tree tree(device, {.name = "grid", .origin = {-8}});
  Node leaf = tree.root().pointer({4}).dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, {-8, 7}, 1);
  const std::vector<int> beyond{-9, 8, -2147483647 - 1, 2147483647};
  for (const int c : beyond) {
    if (codegen_options().checks)
      EXPECT_THROW(read1(x, {-8, c}), Error) << c;
    else
      EXPECT_EQ(read1(x, {-8, c}), (std::vector<int>{1, 0})) << c;
    device->default_stream().clear_error();
  }
  std::vector<int> outside{-9};
  auto done = launch_and_wait(program(), write_at1, range(1), x, outside, 1);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(
      done.error().what(),
      "kernel conformance.write_at1: field 'x' on grid.pointer[4].dense[4]: coordinate (-9) is outside the "
      "domain [-8, 8)");
}

}  // namespace
}  // namespace coppice
