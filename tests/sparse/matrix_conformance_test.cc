// Two things in one launch do what each does alone: every pair of roles, on every kind of node, in one tree
// or two, with little room or plenty. Where memory is mapped before a launch, memory that cannot be had is
// one Error, and only that.
#include <numeric>

#include "core/error.h"
#include "matrix.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

constexpr int kItems = 96, kWidth = 1024, kFirstGone = 1000;

enum Deed { kRead, kWrite, kUpdate, kSum, kSet, kAppend, kActivate, kDeactivate, kTest, kDeeds };
constexpr const char* kNames[] = {"read",   "write",    "update",     "sum", "set",
                                  "append", "activate", "deactivate", "test"};
enum Shape { kDenseLeaf, kBitmaskedLeaf, kTwoPointers, kBelowBitmasked, kShapes };
constexpr const char* kShapeNames[] = {"pointer.dense", "pointer.bitmasked", "pointer.pointer.dense",
                                       "bitmasked.pointer.dense"};

bool is_of_home(Deed d) { return d == kRead || d == kWrite || d == kUpdate; }
bool grows(Deed d) { return d == kSet || d == kAppend || d == kActivate; }

// The tree whose topology deeds change: leaves of 4 KiB, and a list beside each.
struct Grown {
  Grown(const IntrusivePtr<Device>& device, Shape shape, const char* name)
      : tree(device, {.name = name}),
        block(block_of(tree, shape)),
        leaf(leaf_of(block, shape)),
        lists(block.dynamic(1024, 256)) {
    x = leaf.place<int>("x"), v = lists.place<int>("v");
  }
  static Node block_of(const Tree& tree, Shape shape) {
    if (shape == kTwoPointers) return tree.root().pointer({64}).pointer({64});
    if (shape == kBelowBitmasked) return tree.root().bitmasked({64}).pointer({64});
    return tree.root().pointer({4096});
  }
  static Node leaf_of(const Node& block, Shape shape) {
    return shape == kBitmaskedLeaf ? block.bitmasked({kWidth}) : block.dense({kWidth});
  }
  Tree tree;
  Node block, leaf, lists;
  Field<int> x, v;
};

// Where cells live that a kernel runs over, and a sum.
struct Home {
  explicit Home(const IntrusivePtr<Device>& device)
      : tree(device, {.name = "home"}), cells(tree.root().dense({kItems})), one(tree.root().dense({1})) {
    read = cells.place<int>("read"), write = cells.place<int>("write"), update = cells.place<int>("update");
    out = cells.place<int>("out"), sum = one.place<int>("sum");
  }
  Tree tree;
  Node cells, one;
  Field<int> read, write, update, out, sum;
};

class Matrix : public DeviceTest {
 protected:
  struct Case {
    Deed one, other;
    Shape shape;
    bool two_trees, plenty;
  };

  // Makes what the deeds need beforehand: blocks that are to go, and room.
  void prepare(const Case& c, Grown& of_one, Grown& of_other) {
    for (const auto& [deed, grown] : {std::pair(c.one, &of_one), std::pair(c.other, &of_other)}) {
      if (deed != kDeactivate && deed != kTest) continue;
      std::vector<std::array<int32_t, 3>> coords;
      for (int k = 0; k < kItems; ++k) coords.push_back({kFirstGone + k, 0, 0});
      wait(grown->block.activate(coords));
    }
    if (!c.plenty) return;
    for (Grown* grown : {&of_one, &of_other})
      wait(grown->block.reserve(1000)), wait(grown->lists.reserve(1000));
  }

  template <Deed kOne, Deed kOther, class Kernel>
  void check(const Case& c, const Kernel& kernel) {
    SCOPED_TRACE(std::string(kNames[c.one]) + " and " + kNames[c.other] + " on " + kShapeNames[c.shape] +
                 (c.two_trees ? ", two trees" : ", one tree") +
                 (c.plenty ? ", plenty of room" : ", little room"));
    Home home(device);
    Grown a(device, c.shape, "a"), b(device, c.shape, "b");
    Grown& of_other = c.two_trees ? b : a;
    prepare(c, a, of_other);
    const AsyncValueRef<Chain> done = program().launch(kernel, over(home.cells), handle<kOne>(home, a),
                                                       handle<kOther>(home, of_other), home.out);
    wait(done);
    // A kernel that asks what is active, or takes away what has more below it, beside one that grows: how
    // much room it needs is known only by running it.
    const auto is_open = [](Deed d) { return d == kTest || d == kDeactivate; };
    const bool may_lack_room = !device->commits_on_touch() && !c.plenty &&
                               ((is_open(c.one) && grows(c.other)) || (is_open(c.other) && grows(c.one)));
    if (done.is_error()) {
      EXPECT_TRUE(may_lack_room) << done.error().what();
      EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
      EXPECT_NE(std::string(done.error().what()).find("reserve(n)"), std::string::npos)
          << done.error().what();
      device->default_stream().clear_error();
      EXPECT_LE(a.block.wait_num_active_cells(), 3u * kItems) << "readable";
      return;
    }
    verify(c.one, c.other, home, a, c.two_trees);
    verify(c.other, c.one, home, of_other, c.two_trees);
  }

  // A handle for a deed.
  template <Deed D>
  static auto handle(const Home& home, const Grown& grown) {
    if constexpr (D == kRead) return home.read;
    if constexpr (D == kWrite) return home.write;
    if constexpr (D == kUpdate) return home.update;
    if constexpr (D == kSum) return home.sum;
    if constexpr (D == kSet) return grown.x;
    if constexpr (D == kAppend) return grown.v;
    if constexpr (D == kActivate || D == kDeactivate || D == kTest) return grown.block.topology();
  }
  void verify(Deed deed, Deed beside, const Home& home, const Grown& grown, bool two_trees) {
    const int times = deed == beside && (is_of_home(deed) || deed == kSum || !two_trees) ? 2 : 1;
    std::vector<int> numbers(kItems);
    std::iota(numbers.begin(), numbers.end(), 1);
    const auto scaled = [&](int by) {
      std::vector<int> all = numbers;
      for (int& n : all) n *= by;
      return all;
    };
    if (deed == kWrite) {
      EXPECT_EQ(wait_read(home.write, {0}, {kItems}), numbers);
    }
    if (deed == kUpdate) {
      EXPECT_EQ(wait_read(home.update, {0}, {kItems}), scaled(times));
    }
    if (deed == kSum) {
      EXPECT_EQ(wait_read(home.sum, {0}), times * kItems * (kItems + 1) / 2);
    }
    if (deed == kSet) {
      for (int k = 0; k < kItems; k += 7) ASSERT_EQ(wait_read(grown.x, {k * kWidth}), k + 1) << k;
    }
    if (deed == kAppend) {
      for (int k = 0; k < kItems; k += 7)
        ASSERT_EQ(wait_read_list(grown.v, k), std::vector<int>(times, k + 1)) << k;
    }
    const bool comes = grows(deed) || (!two_trees && grows(beside));
    const bool was_there =
        deed == kDeactivate || deed == kTest || (!two_trees && (beside == kDeactivate || beside == kTest));
    const bool goes = deed == kDeactivate || (!two_trees && beside == kDeactivate);
    EXPECT_EQ(grown.block.wait_num_active_cells(),
              static_cast<uint64_t>(kItems) * (comes + (was_there && !goes)));
  }
};

template <Deed D>
using Is = std::integral_constant<Deed, D>;

// Calls visit(Is<one>, Is<other>, kernel) for all others.
#define COPPICE_EACH(visit, kind, one)                             \
  visit(Is<kind>(), Is<kRead>(), matrix_##one##_read);             \
  visit(Is<kind>(), Is<kWrite>(), matrix_##one##_write);           \
  visit(Is<kind>(), Is<kUpdate>(), matrix_##one##_update);         \
  visit(Is<kind>(), Is<kSum>(), matrix_##one##_sum);               \
  visit(Is<kind>(), Is<kSet>(), matrix_##one##_set);               \
  visit(Is<kind>(), Is<kAppend>(), matrix_##one##_append);         \
  visit(Is<kind>(), Is<kActivate>(), matrix_##one##_activate);     \
  visit(Is<kind>(), Is<kDeactivate>(), matrix_##one##_deactivate); \
  visit(Is<kind>(), Is<kTest>(), matrix_##one##_test)

TEST_P(Matrix, EveryPairDoesWhatEachDoesAlone) {
  for (int shape = 0; shape < kShapes; ++shape) {
    for (const bool two_trees : {false, true}) {
      for (const bool plenty : {false, true}) {
        const auto visit = [&](auto one, auto other, const auto& kernel) {
          // On an emulated GPU a fourth of it, another one for each pair.
          const bool is_chosen =
              !is_emulated() || (one() + other() + shape + 2 * two_trees + plenty) % 4 == 0;
          if (!is_chosen || HasFatalFailure()) return;
          if (one() == kSet && other() == kSet && !two_trees) return;  // one field, set twice
          check<one(), other()>({one(), other(), static_cast<Shape>(shape), two_trees, plenty}, kernel);
        };
        COPPICE_EACH(visit, kRead, read);
        COPPICE_EACH(visit, kWrite, write);
        COPPICE_EACH(visit, kUpdate, update);
        COPPICE_EACH(visit, kSum, sum);
        COPPICE_EACH(visit, kSet, set);
        COPPICE_EACH(visit, kAppend, append);
        COPPICE_EACH(visit, kActivate, activate);
        COPPICE_EACH(visit, kDeactivate, deactivate);
        COPPICE_EACH(visit, kTest, test);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, Matrix, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
