// Pointers say something of the order of operations (sparse/ordering.h): whose memory they lead to, or that
// nobody can tell.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "function.kernels.h"
#include "sparse/ordering.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class OrderingOfMemory : public testing::Test {
 protected:
  template <class... Parameters, class... Arguments>
  ResourceUses uses(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                    const Arguments&... arguments) {
    return resources_of(program_.bind(kernel, loop, arguments...).shared()->launch);
  }
  // Returns the name of what the first shares with the other; "nothing" where they may run in any order.
  static std::string shared(const ResourceUses& a, const ResourceUses& b) {
    const ResourceUse* const use = conflict(a, b);
    return use == nullptr ? "nothing" : use->name;
  }
  uint32_t* words(int i) const { return words_[i]->as<uint32_t>(); }

  const IntrusivePtr<Device> device_ = cpu_or_test_device(1);
  Program program_{device_};
  Tree tree_{device_, {.name = "line"}};
  Node leaf_ = tree_.root().pointer({32}).dense({16});
  Field<int> x_ = leaf_.place<int>("x"), y_ = leaf_.place<int>("y");
  const std::vector<IntrusivePtr<Buffer>> words_{device_->reserve(1024, 1024), device_->reserve(4096, 4096)};
  const ResourceUses write_ = uses(set_to, over(leaf_), y_, 1), read_ = uses(copy_cells, over(leaf_), x_, y_);
};

// Seen to fail: none of them ordered anything, since another pointer had the same effects.
TEST_F(OrderingOfMemory, IsKeptWhereAKernelComputesItsAddresses) {
  const auto address = reinterpret_cast<uint64_t>(words(1));
  const ResourceUses other = uses(add_one, range(1), words(1));
  for (const ResourceUses& computes :
       {uses(store_at_both, range(1), address, words(0), 1u),
        uses(store_behind_table, range(1), reinterpret_cast<uint64_t*>(words(0)) + 64, words(0))}) {
    EXPECT_EQ(shared(computes, other), "memory that no argument leads to");
    EXPECT_EQ(shared(computes, write_), "memory that no argument leads to");
  }
  EXPECT_EQ(shared(uses(copy_word, range(1), words(0), words(0) + 8), other), "nothing");
}

// Seen to fail: a View's memory was taken for memory that no argument leads to, so that launches with Views
// were ordered with all others, and their first reads of temporaries were not found.
TEST_F(OrderingOfMemory, OfViewsIsThatOfTheirBuffers) {
  const View<uint32_t> to(words(0), 8);
  const View<const uint32_t> from(words(0) + 16, 8);
  const ResourceUses other = uses(add_one, range(1), words(1));
  for (const ResourceUses& views :
       {uses(copy_viewed, range(1), to, from), uses(sum_viewed, range(1), to, from),
        uses(sum_rest_of_viewed, range(1), to, from), uses(add_behind_viewed, range(1), to, 3)}) {
    EXPECT_EQ(shared(views, other), "nothing");
    EXPECT_EQ(shared(views, write_), "nothing");
    EXPECT_NE(shared(views, uses(add_one, range(1), words(0))), "nothing");
  }
  const auto address = reinterpret_cast<uint64_t>(words(1));
  for (const ResourceUses& computes :
       {uses(sum_of_address, range(1), to, address), uses(turn_view, range(1), to, address),
        uses(sum_of_viewed_address, range(1), to,
             View<const uint64_t>(reinterpret_cast<const uint64_t*>(words(0) + 64), 1))})
    EXPECT_EQ(shared(computes, other), "memory that no argument leads to");
}

// Seen to fail: a number that was stored into an array of pointers behind the first was taken for an
// argument.
TEST_F(OrderingOfMemory, OfPointersThatArePutTogetherIsUnknown) {
  const ResourceUses other = uses(add_one, range(1), words(1));
  EXPECT_EQ(shared(uses(store_at_either, range(1), words(0), words(0) + 8, 1), other), "nothing");
  const auto address = reinterpret_cast<uint64_t>(words(1));
  const View<uint32_t> with_address(words(0), static_cast<int64_t>(address));
  for (const ResourceUses& computes :
       {uses(store_at_number, range(1), words(0), address, 1),
        uses(store_at_bytes, range(1), words(0), address, 0), uses(store_at_size, range(1), with_address, 1)})
    EXPECT_EQ(shared(computes, other), "memory that no argument leads to");
}

// These kernels do so.
TEST_F(OrderingOfMemory, OfKernelsThatComputeTheirAddresses) {
  const auto address = reinterpret_cast<uint64_t>(words(1));
  const auto word = [&](uint32_t* at) {
    program_.wait();
    uint32_t value = 0;
    device_->wait_copy(&value, at, sizeof value);
    return value;
  };
  program_.launch(store_at_both, range(1), address, words(0), 7u);
  EXPECT_EQ(word(words(1)), 7u);
  device_->wait_copy(words(0) + 64, &address, sizeof address);
  program_.launch(store_behind_table, range(1), reinterpret_cast<uint64_t*>(words(0) + 64), words(0));
  EXPECT_EQ(word(words(1)), 1u);
  program_.launch(copy_word, range(1), words(0) + 1, words(0));
  EXPECT_EQ(word(words(0) + 1), 1u);
}

TEST_F(OrderingOfMemory, OfKernelsThatPutPointersTogether) {
  const auto address = reinterpret_cast<uint64_t>(words(1));
  const auto clears = [&] {
    const uint32_t zero = 0;
    program_.wait();
    uint32_t value = 0;
    device_->wait_copy(&value, words(1), sizeof value);
    device_->wait_copy(words(1), &zero, sizeof zero);
    return value;
  };
  clears();
  program_.launch(store_at_number, range(1), words(0), address, 1);
  EXPECT_EQ(clears(), 1u);
  program_.launch(store_at_bytes, range(1), words(0), address, 0);
  EXPECT_EQ(clears(), 1u);
  program_.launch(store_at_size, range(1), View<uint32_t>(words(0), static_cast<int64_t>(address)), 1);
  EXPECT_EQ(clears(), 1u);
  program_.launch(store_at_either, range(1), words(0), words(1), 1);
  EXPECT_EQ(clears(), 1u);
}

TEST_F(OrderingOfMemory, OfKernelsWithViews) {
  const View<uint32_t> to(words(0), 8);
  const View<const uint32_t> from(words(0) + 16, 8);
  const std::vector<uint32_t> values{1, 2, 3, 4, 5, 6, 7, 8};
  device_->wait_copy(words(0) + 16, values.data(), 32);
  const auto word = [&](const uint32_t* at) {
    program_.wait();
    uint32_t value = 0;
    device_->wait_copy(&value, at, sizeof value);
    return value;
  };
  program_.launch(copy_viewed, range(8), to, from);
  EXPECT_EQ(word(words(0) + 7), 8u);
  program_.launch(add_behind_viewed, range(1), to, 3);
  EXPECT_EQ(word(words(0) + 3), 5u);
  program_.launch(sum_viewed, range(1), to, from);
  EXPECT_EQ(word(words(0)), 36u);
  program_.launch(sum_rest_of_viewed, range(1), to, from);
  EXPECT_EQ(word(words(0)), 35u);
  const auto address = reinterpret_cast<uint64_t>(words(0) + 17);
  program_.launch(sum_of_address, range(1), to, address);
  EXPECT_EQ(word(words(0)), 2u);
  program_.launch(turn_view, range(1), to, reinterpret_cast<uint64_t>(words(1)));
  EXPECT_EQ(word(words(1)), 1u);
  device_->wait_copy(words(0) + 64, &address, sizeof address);
  program_.launch(sum_of_viewed_address, range(1), View<uint32_t>(words(1), 1),
                  View<const uint64_t>(reinterpret_cast<const uint64_t*>(words(0) + 64), 1));
  EXPECT_EQ(word(words(1)), 2u);
}

// Seen to fail: the buffer of a tree was taken for one that has nothing to do with the tree's fields.
TEST_F(OrderingOfMemory, IsKeptBetweenAPointerIntoATreeAndItsFields) {
  wait(leaf_.activate({{3}}));
  program_.wait();
  auto* const cells = reinterpret_cast<uint32_t*>(tree_.storage().memory().allocators()[0].cells->data());
  const ResourceUses stores = uses(add_one, range(1), cells + 16);
  EXPECT_EQ(shared(stores, read_), "the memory of argument 1");
  EXPECT_EQ(shared(stores, write_), "the memory of argument 1");
}

// Seen to fail: it was taken for any memory.
TEST_F(OrderingOfMemory, KnowsTheBufferOfAPointerToItsEnd) {
  const ResourceUses at_end = uses(add_one, range(1), words(1) + 1024);
  if (conflict(at_end, uses(add_one, range(1), words(0))) != nullptr)
    GTEST_SKIP() << "another buffer begins there";
  EXPECT_EQ(shared(at_end, uses(add_one, range(1), words(1))), "the memory of argument 1");
}

}  // namespace
}  // namespace coppice
