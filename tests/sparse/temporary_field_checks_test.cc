// Temporary fields of programs with checks: reads of cells that no launch of this life has written to.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/codegen_options.h"
#include "sparse/buffer_operations.h"
#include "sparse/bulk_append.h"
#include "sparse/cell_memory.h"
#include "sparse/function.h"
#include "sparse/memory_report.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"
#include "temporary_fields.kernels.h"
#include "tests/sparse/temporary_fields_line.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class TemporaryFieldChecks : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) checked_.emplace(device, CodegenOptions{.checks = true});
  }
  void TearDown() override {
    checked_.reset();
    DeviceTest::TearDown();
  }
  static TreeOptions tracked() { return {.name = "line", .checks_temporaries = true}; }
  // Returns the error of a launch, and makes the stream ready for more.
  template <class... Arguments>
  std::string check(Arguments&&... arguments) {
    const AsyncValueRef<Chain> done = checked_->launch(std::forward<Arguments>(arguments)...);
    wait(done);
    if (!done.is_error()) return "";
    device->default_stream().clear_error();
    EXPECT_EQ(status_of(*device), 0u);
    EXPECT_EQ(done.error().code(), ErrorCode::kInvalidArgument);
    return done.error().what();
  }

  std::optional<Program> checked_;
};

TEST_P(TemporaryFieldChecks, FindCellsThatNothingWasWrittenTo) {
  for (const bool is_masked : {false, true}) {
    Line x(device, is_masked, true, tracked());
    finish(x.leaf.activate({{0}, {2}, {20}}));
    const std::string field =
        std::string("field 'a' on line.pointer[8].") + (is_masked ? "bitmasked[16]" : "dense[16]");
    EXPECT_EQ(check(store_ramp, over(x.leaf), x.a, 1.0f), "");
    EXPECT_EQ(check(mix, over(x.leaf), x.a, x.a, x.out, 1.0f), "");
    EXPECT_EQ(check(add_in_place, over(x.leaf), x.a, 1.0f), "");
    EXPECT_EQ(check(add_to_fours, over(x.leaf), x.out, x.a), "");
    // A cell that is activated behind the store has no value.
    finish(x.leaf.activate({{37}}));
    for (const std::string& error : {check(add_in_place, over_box(x.leaf, {32}, {48}), x.a, 1.0f),
                                     check(mix, over_box(x.leaf, {32}, {48}), x.a, x.a, x.out, 1.0f),
                                     check(add_to_fours, over_box(x.leaf, {32}, {48}), x.a, x.out)}) {
      EXPECT_TRUE(has(error, field + ": the temporary has no value in cell (")) << error;
      EXPECT_TRUE(has(error, "): nothing was written there before")) << error;
    }
    EXPECT_EQ(check(store_ramp, over(x.leaf), x.a, 1.0f), "");
    EXPECT_EQ(check(mix, over(x.leaf), x.a, x.a, x.out, 1.0f), "");
    // A cell that was deactivated has no value when it comes again.
    finish(x.block.deactivate({{0}}));
    EXPECT_EQ(check(mix, over(x.leaf), x.a, x.a, x.out, 1.0f), "");
    finish(x.leaf.activate({{1}}));
    EXPECT_TRUE(has(check(mix, over(x.leaf), x.a, x.a, x.out, 1.0f), field + ": the temporary has no value"));
  }
}

TEST_P(TemporaryFieldChecks, FindCellsThatComeAgainInALeaf) {
  Line x(device, true, true, tracked());
  finish(x.leaf.activate({{4}, {5}}));
  EXPECT_EQ(check(store_ramp, over(x.leaf), x.b, 1.0f), "");
  wait_room(*device, x.block, 8);
  EXPECT_EQ(check(drop_and_grow, range(1), x.leaf.topology(), 4, 6), "");
  EXPECT_EQ(check(drop_and_grow, range(1), x.leaf.topology(), 6, 4), "");
  EXPECT_TRUE(has(check(mix, over(x.leaf), x.b, x.b, x.out, 1.0f),
                  "'b' on line.pointer[8].bitmasked[16]: the temporary has no value in cell (4): nothing"));
}

TEST_P(TemporaryFieldChecks, NameTheFieldThatHasTheBytes) {
  Line x(device, false, true, tracked());
  finish(x.leaf.activate({{0}}));
  EXPECT_EQ(check(store_ramp, over(x.leaf), x.a, 1.0f), "");
  EXPECT_EQ(check(store_ramp, over(x.leaf), x.c, 1.0f), "");
  EXPECT_EQ(check(store_where_even, over(x.leaf), x.a, 1.0f), "");
  const BufferRef out = device->reserve(4, 4);
  EXPECT_EQ(check(read_at, range(1), x.a, 6, out->as<float>()), "");
  EXPECT_EQ(check(read_at, range(1), x.a, 20, out->as<float>()), "") << "zero, as nothing is there";
  EXPECT_EQ(check(read_at, range(1), x.a, 7, out->as<float>()),
            "kernel temporary_fields.read_at: field 'a' on line.pointer[8].dense[16]: the temporary has no "
            "value in cell "
            "(7), whose bytes hold 'c'");
  EXPECT_TRUE(has(check(mix, over(x.leaf), x.a, x.a, x.out, 1.0f), "whose bytes hold 'c'"));
  EXPECT_EQ(check(set_at, range(1), x.a, 7, 2.0f), "");
  EXPECT_EQ(check(read_at, range(1), x.a, 7, out->as<float>()), "");
}

TEST_P(TemporaryFieldChecks, LookAtStencilsAndBlocks) {
  Line dense(device, false, true, tracked());
  finish(dense.leaf.activate({{16}}));
  EXPECT_EQ(check(store_where_even, over(dense.leaf), dense.b, 1.0f), "");
  EXPECT_TRUE(has(check(smooth, over(dense.leaf), dense.b, dense.out),
                  "'b' on line.pointer[8].dense[16]: the temporary has no value"));
  EXPECT_TRUE(has(check(sum_block, over(dense.leaf), dense.b, dense.out, 16), "has no value in cell (17)"));
  EXPECT_TRUE(has(check(double_block, over(dense.leaf), dense.b, 16), "has no value in cell (17)"));
  EXPECT_EQ(check(store_ramp, over(dense.leaf), dense.b, 1.0f), "");
  EXPECT_EQ(check(smooth, over(dense.leaf), dense.b, dense.out), "") << "beside it all is zero";
  EXPECT_EQ(check(sum_block, over(dense.leaf), dense.b, dense.out, 16), "");
  EXPECT_EQ(check(double_block, over(dense.leaf), dense.b, 16), "");

  Line masked(device, true, true, tracked());
  finish(masked.leaf.activate({{16}, {17}}));
  EXPECT_EQ(check(store_ramp, over(masked.leaf), masked.b, 1.0f), "");
  EXPECT_TRUE(has(check(smooth, over(masked.leaf), masked.b, masked.out), "has no value in cell (18)"));
  EXPECT_EQ(check(store_block, over(masked.leaf), masked.b, 16, 0.0f), "");
  EXPECT_EQ(check(smooth, over(masked.leaf), masked.b, masked.out), "");
}

TEST_P(TemporaryFieldChecks, LookAtElementsOfLists) {
  Tree tree(device, {.name = "lists", .checks_temporaries = true});
  const Node lists = tree.root().dense({4}).dynamic(1000, 16);
  const Field<float> x = lists.place<float>("x"), t = lists.temporary<float>("t", {0, 0}),
                     u = lists.temporary<float>("u", {1, 1});
  const BufferRef out = device->reserve(256, 256);
  wait_room(*device, lists, 30);
  EXPECT_EQ(check(append_numbers, range(100), x, 4), "");
  EXPECT_EQ(check(store_entries, over(lists), x, t, 2.0f), "");
  EXPECT_EQ(check(add_entries, over(lists), x, t), "");
  EXPECT_EQ(check(read_element, range(25), t, 2, out->as<float>()), "");
  EXPECT_EQ(check(append_numbers, range(4), x, 4), "");
  EXPECT_TRUE(has(check(read_element, range(26), t, 2, out->as<float>()),
                  "'t' on lists.dense[4].dynamic[1000]: the temporary has no value"));
  EXPECT_TRUE(has(check(store_entries, over(lists), t, x, 2.0f),
                  "'t' on lists.dense[4].dynamic[1000]: the temporary has no value"));
  EXPECT_EQ(check(store_entries, over(lists), x, u, 2.0f), "");
  EXPECT_EQ(check(add_entries, over(lists), x, u), "");
  finish(tree.deactivate_all());
  EXPECT_EQ(check(append_numbers, range(100), x, 4), "");
  EXPECT_TRUE(has(check(add_entries, over(lists), x, u),
                  "'u' on lists.dense[4].dynamic[1000]: the temporary has no value"));
}

TEST_P(TemporaryFieldChecks, GiveTheSameResults) {
  std::vector<float> results[2];
  for (const bool is_checked : {false, true}) {
    Line x(device, true, true, is_checked ? tracked() : TreeOptions{});
    Program& p = is_checked ? *checked_ : program();
    finish(x.leaf.activate({{0}, {2}, {20}, {21}}));
    const Function f = trace(device, [&] {
      p.launch(store_ramp, over(x.leaf), x.a, 3.0f);
      p.launch(mix, over(x.leaf), x.a, x.a, x.b, 0.5f);
      repeat(3, [&] {
        p.launch(store_ramp, over(x.leaf), x.c, 1.0f);
        p.launch(mix, over(x.leaf), x.b, x.c, x.out, 2.0f);
      });
    });
    finish(f.run(2));
    results[is_checked] = wait_read(x.out, {0}, {32});
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0][20], 0);
}

// The marks have bytes of their own, which only a tree has that is made for the checks.
TEST_P(TemporaryFieldChecks, CostBytesOnlyWhereTheyAreAskedFor) {
  Line plain(device), looked_at(device, false, true, tracked());
  plain.tree.freeze(), looked_at.tree.freeze();
  const auto cell = [](const Line& x) { return x.leaf.storage().layout().node(1).cell_bytes; };
  EXPECT_EQ(cell(looked_at), cell(plain) + 16 * 8);
  EXPECT_EQ(plain.leaf.storage().layout().node(2).marks_stride, 0u);
}

INSTANTIATE_TEST_SUITE_P(Sparse, TemporaryFieldChecks, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
