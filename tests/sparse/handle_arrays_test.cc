// Arrays of handles, as arguments and in structs of handles.
#include "handle_arrays.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/loop_devices.h"

namespace coppice {
namespace {

class HandleArrays : public LoopTest {};

TEST_P(HandleArrays, AreBoundInOrder) {
  constexpr int kSide = 16;
  Tree tree(device);
  const Node leaf = tree.root().pointer({2, 2}).dense({8, 8});
  const Field<int> a = leaf.place<int>("a"), b = leaf.place<int>("b"), sum = leaf.place<int>("sum"),
                   da = leaf.place<int>("da"), db = leaf.place<int>("db");
  // Two that are set by one kernel are of different trees or fields.
  run(fill_by_number, range({kSide, kSide}), std::array<Grow<int>, 2>{a, b}, 0);
  run(fill_by_number, range({kSide, kSide}), std::array<Grow<int>, 2>{a, b}, 1);
  run(sum_array, over(leaf), std::array<Read<int>, 3>{a, sum, b}, sum);
  const auto value = [](int x, int y) { return x * x + 5 * y; };
  for (const auto& [x, y] : {std::pair{0, 0}, {3, 7}, {15, 15}})
    EXPECT_EQ(wait_read(sum, {x, y}), 101 * value(x, y));
  run(take_differences, over(leaf), Flux{{a, b}, sum, {da, db}}, 3);
  for (const auto& [x, y] : {std::pair{1, 1}, {3, 7}, {14, 14}}) {
    EXPECT_EQ(wait_read(da, {x, y}), 3 * (value(x + 1, y) - value(x - 1, y)));
    EXPECT_EQ(wait_read(db, {x, y}), 3 * (value(x, y + 1) - value(x, y - 1)));
    EXPECT_EQ(wait_read(sum, {x, y}), 2 * value(x, y));
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, HandleArrays, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
