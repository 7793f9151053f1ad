// Bricks of trees of all kinds against the values that wait_read() gives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "apps/render/brick_pack.h"
#include "render_volumes.kernels.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/test_devices.h"

namespace coppice::render {
namespace {

class BrickPack : public DeviceTest {
 protected:
  // Sets cells to values that tell them apart; i32[n][3].
  void set(const Field<float>& field, const std::vector<CellCoord>& cells, const std::vector<float>& values) {
    std::vector<int> coords;
    for (const CellCoord& c : cells) coords.insert(coords.end(), {c.x, c.y, c.z});
    const auto n = static_cast<int64_t>(cells.size());
    field.tree->freeze();  // a tree has its dimensions from then on
    if (field.tree->layout().dims() == 1)
      run(set_volume_cells_1, range(n), field, coords, values);
    else if (field.tree->layout().dims() == 2)
      run(set_volume_cells_2, range(n), field, coords, values);
    else
      run(set_volume_cells_3, range(n), field, coords, values);
  }
  BrickVolume pack(const Field<float>& field, BrickFormat format = BrickFormat::kFloat) {
    BrickPacker packer(device);
    BrickVolume volume;
    packer.wait_pack(field, format, volume);
    return volume;
  }
  // Every brick has the values of its cells, all cells that are not zero are in bricks, and bricks are in
  // order.
  void expect_equal_to_cells(const Field<float>& field, const std::vector<CellCoord>& cells) {
    const Node node = detail::node_of(field.tree, field.id.node);
    const uint64_t version = node.wait_topology_version();
    const BrickVolume volume = pack(field), half = pack(field, BrickFormat::kHalf);
    EXPECT_EQ(node.wait_topology_version(), version);
    EXPECT_EQ(half.origins, volume.origins);
    const int dim = static_cast<int>(field.tree->layout().dims());
    ASSERT_EQ(volume.dim, dim);
    EXPECT_TRUE(std::is_sorted(volume.origins.begin(), volume.origins.end()));
    std::map<CellCoord, size_t> brick_at;
    for (size_t b = 0; b < volume.size(); ++b) {
      brick_at[volume.origins[b]] = b;
      std::vector<float> expected(kBrickValues);
      const CellCoord o = volume.origins[b];
      if (dim == 3) expected = wait_read(field, {o.x, o.y, o.z}, {o.x + 9, o.y + 9, o.z + 9});
      if (dim == 1) {
        const std::vector<float> line = wait_read(field, {o.x}, {o.x + 9});
        for (int i = 0; i < kBrickValues; ++i) expected[i] = line[i / (kBrickSide * kBrickSide)];
      }
      if (dim == 2) {
        const std::vector<float> plane = wait_read(field, {o.x, o.y}, {o.x + 9, o.y + 9});
        for (int i = 0; i < kBrickValues; ++i) expected[i] = plane[i / kBrickSide];
      }
      ASSERT_EQ(0, std::memcmp(volume.values_of(b).data(), expected.data(), sizeof(float) * kBrickValues))
          << o.x << " " << o.y << " " << o.z;
      EXPECT_EQ(volume.stats[b].min, *std::min_element(expected.begin(), expected.end()));
      EXPECT_EQ(volume.stats[b].max, *std::max_element(expected.begin(), expected.end()));
    }
    EXPECT_EQ(brick_at.size(), volume.size());
    const auto down = [](int v) { return v & -8; };
    for (const CellCoord& c : cells) {
      for (int corner = 0; corner < 1 << dim; ++corner) {
        const int dx = corner & 1, dy = (corner >> 1) & 1, dz = corner >> 2;
        EXPECT_TRUE(brick_at.contains({down(c.x - dx), down(c.y - dy), down(c.z - dz)}));
      }
    }
  }
  static std::vector<CellCoord> some_cells(int low, int high, int n, uint32_t dim = 3) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> at(low, high - 1);
    std::vector<CellCoord> cells{{low, dim > 1 ? low : 0, dim > 2 ? low : 0},
                                 {high - 1, dim > 1 ? high - 1 : 0, dim > 2 ? high - 1 : 0}};
    while (static_cast<int>(cells.size()) < n)
      cells.push_back({at(random), dim > 1 ? at(random) : 0, dim > 2 ? at(random) : 0});
    return cells;
  }
  static std::vector<float> values_for(const std::vector<CellCoord>& cells) {
    std::vector<float> values;
    for (const CellCoord& c : cells)
      values.push_back(0.25f + static_cast<float>(c.x) + 31.0f * static_cast<float>(c.y) -
                       7.0f * static_cast<float>(c.z));
    return values;
  }
  void check(Tree& tree, const Node& leaf, int low, int high) {
    const Field<float> field = leaf.place<float>("density");
    tree.freeze();
    const std::vector<CellCoord> cells = some_cells(low, high, is_emulated() ? 6 : 40, field.tree->layout().dims());
    set(field, cells, values_for(cells));
    expect_equal_to_cells(field, cells);
  }
};
INSTANTIATE_TEST_SUITE_P(Volumes, BrickPack, testing::ValuesIn(test_devices()), device_test_name);

TEST_P(BrickPack, LeavesOfEightCellsEachWay) {
  Tree tree(device, {.origin = {-64, -64, -64}});
  check(tree, tree.root().pointer({16, 16, 16}).dense({8, 8, 8}), -64, 64);
}
TEST_P(BrickPack, SmallLeavesAreGathered) {
  Tree tree(device, {.origin = {-20, -20, -20}});
  check(tree, tree.root().pointer({11, 11, 11}).dense({4, 4, 4}), -20, 24);
}
TEST_P(BrickPack, LargeLeavesAreDivided) {
  Tree tree(device, {.origin = {-32, -32, -32}});
  check(tree, tree.root().pointer({4, 4, 4}).dense({16, 16, 16}), -32, 32);
}
TEST_P(BrickPack, ExtentsThatAreNoPowersOfTwo) {
  Tree tree(device, {.origin = {-15, -15, -15}});
  check(tree, tree.root().pointer({6, 6, 6}).dense({5, 5, 5}), -15, 15);
}
TEST_P(BrickPack, BitmaskedLeaves) {
  Tree tree(device);
  check(tree, tree.root().pointer({8, 8, 8}).bitmasked({4, 8, 16}), 0, 32);
}
TEST_P(BrickPack, FieldsOnPointerNodes) {
  Tree tree(device);
  check(tree, tree.root().pointer({24, 24, 24}), 0, 24);
}
TEST_P(BrickPack, ADenseRoot) {
  Tree tree(device);
  check(tree, tree.root().dense({20, 20, 20}), 0, 20);
}
TEST_P(BrickPack, TwoDimensionsAreASlab) {
  Tree tree(device, {.origin = {-32, -32}});
  check(tree, tree.root().pointer({8, 8}).dense({8, 8}), -32, 32);
}
TEST_P(BrickPack, OneDimensionIsARod) {
  Tree tree(device, {.origin = {-32}});
  check(tree, tree.root().pointer({8}).dense({8}), -32, 32);
}
TEST_P(BrickPack, TwoLevelsOfPointers) {
  Tree tree(device);
  check(tree, tree.root().pointer({4, 4, 4}).pointer({4, 4, 4}).dense({8, 8, 8}), 0, 128);
}

// The same cells give the same bricks, whatever holds them. The kernels that set them differ by tree, and
// so may last bits.
TEST_P(BrickPack, AShellInTreesOfAllKindsIsTheSameBricks) {
  const int n = is_emulated() ? 16 : 48;
  const std::vector<std::function<Node(const Node&)>> kinds{
      [&](const Node& root) {
        return root.pointer({8, 8, 8}).dense({8, 8, 8});
      },
      [&](const Node& root) {
        return root.pointer({12, 12, 12}).dense({4, 4, 4});
      },
      [&](const Node& root) {
        return root.pointer({6, 6, 6}).bitmasked({8, 8, 8});
      },
      [&](const Node& root) {
        return root.dense({n, n, n});
      }};
  std::vector<BrickVolume> volumes;
  for (const auto& kind : kinds) {
    Tree tree(device);
    const Node leaf = kind(tree.root());
    const Field<float> field = leaf.place<float>("density");
    const auto half = static_cast<float>(n) / 2;
    program().launch(set_shell, over_box(leaf, {0, 0, 0}, {n, n, n}), field, half, 0.6f * half, 0.2f * half);
    volumes.push_back(pack(field));
    const BrickVolume &a = volumes[0], &b = volumes.back();
    ASSERT_GT(a.size(), is_emulated() ? 7u : 100u);
    ASSERT_EQ(a.origins, b.origins);
    for (size_t i = 0; i < a.values.size(); i += sizeof(float)) {
      float u, v;
      std::memcpy(&u, &a.values[i], sizeof u), std::memcpy(&v, &b.values[i], sizeof v);
      ASSERT_NEAR(u, v, 1e-5f);
    }
  }
}

TEST_P(BrickPack, NothingActiveAndNothingButZerosAreNoBricks) {
  Tree tree(device);
  const Node leaf = tree.root().pointer({8, 8, 8}).dense({8, 8, 8});
  const Field<float> field = leaf.place<float>("density");
  EXPECT_EQ(pack(field).size(), 0u);
  leaf.activate({{3, 3, 3}});
  EXPECT_EQ(pack(field).size(), 0u);
  set(field, {{3, 3, 3}}, {2.0f});
  const BrickVolume volume = pack(field);
  ASSERT_EQ(volume.size(), 1u);
  EXPECT_EQ(volume.stats[0].min, 0.0f);
  EXPECT_EQ(volume.stats[0].max, 2.0f);
}

TEST_P(BrickPack, ValuesThatAreNotFiniteAreInAllRanges) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    Tree tree(device);
    const Field<float> field = tree.root().pointer({2, 2, 2}).dense({8, 8, 8}).place<float>("density");
    set(field, {{3, 3, 3}, {12, 12, 12}}, {bad, 1.0f});
    const BrickVolume volume = pack(field);
    ASSERT_EQ(volume.size(), 2u);
    EXPECT_EQ(volume.stats[0].min, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(volume.stats[0].max, std::numeric_limits<float>::infinity());
    EXPECT_EQ(volume.stats[1].max, 1.0f);
  }
}

TEST_P(BrickPack, HalvesAreRoundedAndSaturate) {
  Tree tree(device);
  const Field<float> field = tree.root().dense({8, 8, 8}).place<float>("density");
  set(field, {{1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 1, 4}}, {0.1f, 1e6f, -1e6f, 1.0f});
  const BrickVolume volume = pack(field, BrickFormat::kHalf);
  ASSERT_EQ(volume.size(), 1u);
  uint16_t halves[5];
  std::memcpy(halves, volume.values_of(0).data() + 2 * (81 + 9), sizeof halves);
  EXPECT_EQ(halves[0], 0);
  EXPECT_EQ(halves[1], 0x2e66);  // 0.0999756
  EXPECT_EQ(halves[2], 0x7bff);  // 65504
  EXPECT_EQ(halves[3], 0xfbff);
  EXPECT_EQ(halves[4], 0x3c00);
  EXPECT_EQ(volume.stats[0].max, 1e6f);
}

// Seen to fail: of two moments that took turns one was floats and the other halves.
TEST_P(BrickPack, FloatsStayFloatsInWhateverMemory) {
  Tree tree(device);
  const Field<float> field = tree.root().dense({8, 8, 8}).place<float>("speed");
  BrickPacker packer(device);
  BrickVolume one, other;
  packer.wait_pack(field, one);
  EXPECT_EQ(one.format, BrickFormat::kHalf) << "nothing needs more";
  set(field, {{1, 1, 1}}, {1e-4f});
  packer.wait_pack(field, one);
  EXPECT_EQ(one.format, BrickFormat::kFloat);
  set(field, {{1, 1, 1}}, {1.0f});
  packer.wait_pack(field, other);
  EXPECT_EQ(other.format, BrickFormat::kFloat);
  EXPECT_EQ(other.values.size(), other.size() * kBrickValues * sizeof(float));
  packer.forget_format();
  packer.wait_pack(field, one);
  EXPECT_EQ(one.format, BrickFormat::kHalf);
}

TEST_P(BrickPack, AHashChangesWithTheBricksThatChange) {
  Tree tree(device);
  const Field<float> field = tree.root().pointer({4, 4, 4}).dense({8, 8, 8}).place<float>("density");
  set(field, {{3, 3, 3}, {12, 12, 12}, {20, 20, 20}}, {1, 1, 1});
  const BrickVolume before = pack(field);
  set(field, {{12, 12, 12}}, {2});
  const BrickVolume after = pack(field);
  ASSERT_EQ(before.origins, after.origins);
  for (size_t b = 0; b < before.size(); ++b)
    EXPECT_EQ(before.stats[b].hash == after.stats[b].hash, before.origins[b] != (CellCoord{8, 8, 8}));
}

TEST_P(BrickPack, RefusesWhatIsNoVolume) {
  const auto code_of = [&](const Field<float>& field) {
    try {
      pack(field);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of({}), ErrorCode::kInvalidArgument);
  Tree lists(device);
  EXPECT_EQ(code_of(lists.root().dense({4, 4, 4}).dynamic(64).place<float>("mass")),
            ErrorCode::kInvalidArgument);
  Tree other(Device::cpu(1));
  EXPECT_EQ(code_of(other.root().dense({4, 4, 4}).place<float>("density")), ErrorCode::kInvalidArgument);
  Tree wide(device, {.origin = {0, 0, 0}});
  const Field<float> field = wide.root().pointer({4096, 8, 4096}).dense({8, 8, 8}).place<float>("density");
  set(field, {{0, 0, 0}, {32760, 8, 32760}}, {1, 1});
  EXPECT_EQ(code_of(field), ErrorCode::kOutOfRange);
}

// The devices' bits, beside each other.
TEST(BrickPackDevices, GiveTheSameBits) {
  std::string reason;
  std::vector<BrickVolume> volumes;
  for (const std::string& name : {std::string("cpu4"), std::string("simt")}) {
    const IntrusivePtr<Device> device = test_device(name, reason);
    if (!device) GTEST_SKIP() << reason;
    Program program(device);
    Tree tree(device);
    const Field<float> field = tree.root().pointer({4, 4, 4}).dense({4, 4, 4}).place<float>("density");
    std::mt19937 random(3);
    std::vector<int> coords;
    std::vector<float> values;
    for (int i = 0; i < 60; ++i) {
      for (int axis = 0; axis < 3; ++axis) coords.push_back(static_cast<int>(random() % 16));
      values.push_back(static_cast<float>(random()) * 1e-7f - 100.0f);
    }
    for (int i = 0; i < 60; ++i)  // one after another: the last of equal cells stays
      run_on(program, set_volume_cells_3, range(1), field,
             std::vector<int>(coords.begin() + 3 * i, coords.begin() + 3 * i + 3),
             std::vector<float>{values[static_cast<size_t>(i)]});
    BrickPacker packer(device);
    packer.wait_pack(field, BrickFormat::kHalf, volumes.emplace_back());
  }
  EXPECT_GT(volumes[0].size(), 4u);
  EXPECT_EQ(volumes[0].origins, volumes[1].origins);
  EXPECT_EQ(volumes[0].values, volumes[1].values);
  for (size_t b = 0; b < volumes[0].size(); ++b) {
    EXPECT_EQ(volumes[0].stats[b].hash, volumes[1].stats[b].hash);
    EXPECT_EQ(volumes[0].stats[b].min, volumes[1].stats[b].min);
    EXPECT_EQ(volumes[0].stats[b].max, volumes[1].stats[b].max);
  }
}

}  // namespace
}  // namespace coppice::render
