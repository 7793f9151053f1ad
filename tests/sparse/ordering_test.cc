// Operations keep their order where the table in sparse/ordering.h says so: each of its lines is tried here.
#include "sparse/ordering.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "random_functions.kernels.h"
#include "sparse/device_operations.h"
#include "sparse/program.h"
#include "sparse/runtime_launch.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class Ordering : public testing::Test {
 protected:
  template <class... Parameters, class... Arguments>
  ResourceUses uses(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                    const Arguments&... arguments) {
    return resources_of(program_.bind(kernel, loop, arguments...).shared()->launch);
  }
  // Returns the name of what two operations share; "nothing" where they may run in any order. It is the same
  // thing, whichever comes first.
  static std::string shared(const ResourceUses& a, const ResourceUses& b) {
    const ResourceUse *const one = conflict(a, b), *const other = conflict(b, a);
    EXPECT_EQ(one == nullptr, other == nullptr);
    return one == nullptr ? "nothing" : one->name;
  }
  uint32_t* words(int i) const { return words_[i]->as<uint32_t>(); }

  const IntrusivePtr<Device> device_ = cpu_or_test_device(1);
  Program program_{device_};
  Tree tree_{device_, {.name = "line"}}, other_{device_, {.name = "other"}};
  Node leaf_ = tree_.root().pointer({32}).dense({16}), upper_ = other_.root().pointer({32}),
       lists_ = upper_.dynamic(64, 16);
  Field<int> x_ = leaf_.place<int>("x"), y_ = leaf_.place<int>("y"), z_ = leaf_.place<int>("z"),
             sums_ = upper_.place<int>("sums"), v_ = lists_.place<int>("v");
  const std::vector<BufferRef> words_{device_->reserve(1024, 1024), device_->reserve(4096, 4096)};
  const std::string x_name_ = "'x' on line.pointer[32].dense[16]";

  const ResourceUses write_x_ = uses(assign, over(leaf_), x_, 1),
                     update_x_ = uses(change, over(leaf_), x_, 1),
                     write_y_ = uses(assign, over(leaf_), y_, 1),
                     read_x_ = uses(copy_scaled, over(leaf_), x_, y_, 1),
                     read_x_too_ = uses(copy_scaled, over(leaf_), x_, z_, 1),
                     read_near_x_ = uses(sum_near, over(leaf_), x_, z_),
                     add_x_ = uses(deposit, over(leaf_), y_, x_, 0),
                     add_x_too_ = uses(deposit_near, over(leaf_), z_, x_, 0),
                     grow_x_ = uses(grow_at, range(1), x_, words(0), 1);
};

TEST_F(Ordering, IsFreeForReads) {
  EXPECT_EQ(shared(read_x_, read_x_too_), "nothing");
  EXPECT_EQ(shared(read_x_, read_near_x_), "nothing");
}

TEST_F(Ordering, IsKeptWhereOneWritesWhatTheOtherReads) {
  for (const ResourceUses& writer : {write_x_, update_x_}) {
    EXPECT_EQ(shared(writer, read_x_), x_name_);
    EXPECT_EQ(shared(read_x_too_, writer), x_name_);
    EXPECT_EQ(shared(writer, read_near_x_), x_name_);
  }
}

TEST_F(Ordering, IsKeptForWritesAndFreeForThoseOfOtherFields) {
  EXPECT_EQ(shared(write_x_, write_x_), x_name_);
  EXPECT_EQ(shared(write_x_, update_x_), x_name_);
  EXPECT_EQ(shared(update_x_, update_x_), x_name_);
  EXPECT_EQ(shared(write_x_, write_y_), "nothing");
}

TEST_F(Ordering, IsFreeForAdditionsAndKeptForTheirSums) {
  EXPECT_EQ(shared(add_x_, add_x_too_), "nothing") << "sums commute";
  EXPECT_EQ(shared(add_x_, add_x_), "nothing");
  EXPECT_EQ(shared(add_x_, read_x_too_), x_name_);
  EXPECT_EQ(shared(read_near_x_, add_x_), x_name_);
  EXPECT_EQ(shared(add_x_too_, write_x_), x_name_);
  EXPECT_EQ(shared(update_x_, add_x_too_), x_name_);
}

TEST_F(Ordering, IsKeptWhereCellsComeOrGo) {
  const std::vector<ResourceUses> changes{grow_x_, launch_work(bind_deactivate_all(tree_.root())).uses,
                                          uses(deactivate_at, range(1), leaf_.topology(), words(0), 512u),
                                          uses(assign, over_box(leaf_, {0}, {9}), x_, 1)};
  const ResourceUses of_other = uses(assign, over(upper_), sums_, 1);
  for (const ResourceUses& change : changes) {
    EXPECT_NE(shared(change, write_y_), "nothing") << "the cells that it loops over";
    EXPECT_NE(shared(add_x_, change), "nothing");
    for (const ResourceUses& other : changes) EXPECT_NE(shared(change, other), "nothing");
    EXPECT_EQ(shared(change, of_other), "nothing") << "another tree";
  }
  // A kernel that reads a tree by coordinates alone sees its cells come, too.
  const ResourceUses read_at = uses(mirror, over(upper_), x_, sums_);
  EXPECT_NE(shared(grow_x_, read_at), "nothing");
  EXPECT_EQ(shared(write_y_, read_at), "nothing");
}

TEST_F(Ordering, IsKeptForListsThatGrow) {
  const ResourceUses append = uses(append_at, range(1), v_, words(0), 1),
                     sum = uses(sum_lists, over(lists_), v_, sums_);
  EXPECT_NE(shared(append, sum), "nothing");
  EXPECT_NE(shared(append, append), "nothing");
  EXPECT_NE(shared(append, uses(assign, over(upper_), sums_, 1)), "nothing");
  EXPECT_EQ(shared(sum, sum), "nothing");
  EXPECT_EQ(shared(append, write_x_), "nothing");
}

TEST_F(Ordering, IsKeptForPointersIntoOneBuffer) {
  const ResourceUses to_first = uses(mix_words, range(4), words(0), words(0) + 8, 1),
                     from_its_end = uses(load, over(leaf_), x_, words(0) + 255),
                     from_second = uses(load, over(leaf_), y_, words(1));
  EXPECT_EQ(shared(to_first, from_its_end), "the memory of argument 1");
  EXPECT_EQ(shared(to_first, to_first), "the memory of argument 1");
  EXPECT_EQ(shared(to_first, from_second), "nothing") << "another buffer";
  EXPECT_EQ(shared(from_its_end, from_second), "nothing") << "reads, and fields of their own";
  EXPECT_EQ(shared(uses(gather, over(leaf_), x_, words(0)), uses(gather, over(leaf_), y_, words(0))),
            "the memory of argument 2")
      << "atomic operations need not be additions";
  // As calls on the buffer have it.
  EXPECT_EQ(shared({use_of_buffer(*words_[0], false, true)}, from_its_end), "a buffer of 1024 bytes");
  EXPECT_EQ(shared({use_of_buffer(*words_[0], true, false)}, from_its_end), "nothing");
  EXPECT_EQ(shared({use_of_buffer(*words_[1], false, true)}, from_its_end), "nothing");
}

TEST_F(Ordering, IsKeptWithAnyMemoryThatMayBeBehindMembers) {
  const ResourceUses hidden = uses(mix_behind_members, range(4), CoppiceWords{words(0), words(0), 1});
  const std::string name = "memory behind members of its arguments";
  EXPECT_EQ(shared(hidden, uses(mix_words, range(4), words(1), words(1), 1)), name);
  EXPECT_EQ(shared(hidden, {use_of_buffer(*words_[1], true, false)}), name);
  EXPECT_EQ(shared(hidden, write_x_), name) << "a field's values may be there";
  EXPECT_EQ(shared(hidden, read_x_), name);
  EXPECT_EQ(shared(hidden, hidden), name);
  EXPECT_EQ(shared(hidden, launch_work(bind_deactivate_all(upper_)).uses), "nothing") << "no values";
}

TEST_F(Ordering, IsKeptWithMemoryOfNoBuffer) {
  std::vector<uint32_t> of_the_host(8);
  const ResourceUses unknown = uses(mix_words, range(4), words(0), of_the_host.data(), 1);
  EXPECT_EQ(shared(unknown, {use_of_buffer(*words_[1], false, true)}), "the memory of argument 2");
  EXPECT_EQ(shared(unknown, {use_of_buffer(*words_[1], true, false)}), "nothing") << "it is only read";
}

TEST_F(Ordering, IsKeptWithWhatSetsACountOnTheDevice) {
  const auto* const count = words_[1]->as<uint64_t>() + 3;
  const ResourceUses counted = uses(draw_numbers, range_on_device(count), words(0));
  EXPECT_EQ(shared(counted, {use_of_buffer(*words_[1], false, true)}), "the count of its range");
  EXPECT_EQ(shared(counted, uses(draw_numbers, range(1), words(1))), "the count of its range");
  EXPECT_EQ(shared(counted, {use_of_buffer(*words_[1], true, false)}), "nothing");
}

TEST_F(Ordering, TellsRangesThatAreCountedOnTheDeviceFromThoseThatAreNot) {
  // Launches of one kernel, whichever of them a program prepares first.
  const auto* const count = words_[1]->as<uint64_t>();
  const ResourceUses change_count{use_of_buffer(*words_[1], false, true)};
  EXPECT_EQ(shared(uses(draw_numbers, range(1), words(0)), change_count), "nothing");
  EXPECT_EQ(shared(uses(draw_numbers, range_on_device(count), words(0)), change_count),
            "the count of its range");
  EXPECT_EQ(shared(uses(set_word, range_on_device(count), words(0), 1u), change_count),
            "the count of its range");
  EXPECT_EQ(shared(uses(set_word, range(1), words(0), 1u), change_count), "nothing");
}

TEST_F(Ordering, NamesTheNearestOperationsAlone) {
  const std::vector<ResourceUses> chain{write_x_, read_x_too_, update_x_, write_y_, read_x_};
  const Predecessors order = order_by_uses(chain);
  EXPECT_EQ(order, (Predecessors{{}, {0}, {1}, {}, {2, 3}})) << "2 comes behind 0, but by way of 1";
  EXPECT_EQ(find_unordered(chain, order), std::nullopt);
  EXPECT_EQ(order_by_uses({}), Predecessors());
}

TEST_F(Ordering, FindsThePairThatNothingOrders) {
  const std::vector<ResourceUses> chain{write_x_, read_x_too_, update_x_};
  using Pair = std::optional<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ(find_unordered(chain, {{}, {0}, {0}}), Pair({1, 2}));
  EXPECT_EQ(find_unordered(chain, {{}, {}, {1}}), Pair({0, 1}));
  EXPECT_EQ(find_unordered(chain, {{}, {0}, {}}), Pair({0, 2}));
  EXPECT_EQ(find_unordered(chain, {{}, {0}, {1, 0}}), std::nullopt) << "more than is needed is no mistake";
}

TEST_F(Ordering, KnowsMoreOperationsThanAWordHasBits) {
  const std::vector<ResourceUses> chain(200, update_x_);
  Predecessors order = order_by_uses(chain);
  for (uint32_t i = 1; i < chain.size(); ++i) EXPECT_EQ(order[i], std::vector<uint32_t>{i - 1});
  EXPECT_EQ(find_unordered(chain, order), std::nullopt);
  order[150] = {148};
  EXPECT_EQ(find_unordered(chain, order), (std::optional(std::pair(149u, 150u))));
}

}  // namespace
}  // namespace coppice
