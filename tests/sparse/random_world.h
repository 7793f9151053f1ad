// The trees, buffers and slots that random functions work on (random_statements.h), and how a statement is
// given.
//
//   dense:  root.pointer[32].dense[16]       x, y, z       lists:  root.pointer[32].dynamic    v, and sums
//   bits:   root.pointer[16].bitmasked[32]   x, y
//
// Cells are large, so that the few that a tree has room for at first are soon too few.
#pragma once
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "gpu/host_access.h"
#include "random_functions.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/function.h"
#include "tests/sparse/random_statements.h"
#include "tests/sparse/staging.h"

namespace coppice::random_functions {

struct Ballast {
  std::array<unsigned char, 8192> bytes;
};
struct SmallBallast {
  std::array<unsigned char, 256> bytes;
};

// Holds what a test compares: a name, and numbers.
struct Observed {
  std::string name;
  std::vector<uint32_t> values;
  bool operator==(const Observed&) const = default;
};

class World {
 public:
  static constexpr int kDomain = 512, kLists = 32;

  World(const IntrusivePtr<Device>& device, const CodegenOptions& options)
      : device_(device), program_(device, options) {
    upper_[0].place<Ballast>("ballast"), upper_[1].place<Ballast>("ballast");
    lists_.place<SmallBallast>("ballast");
    fields_ = {leaf_[0].place<int>("x"), leaf_[0].place<int>("y"), leaf_[0].place<int>("z"),
               leaf_[1].place<int>("x"), leaf_[1].place<int>("y")};
    v_ = lists_.place<int>("v"), sums_ = upper_[2].place<int>("sums");
    for (int b = 0; b < kBuffers; ++b) words_.push_back(device->reserve(kWords * 4, kWords * 4));
    flags_ = device->reserve(2 * kMostFlags * 4, 2 * kMostFlags * 4), counts_ = device->reserve(8, 8);
    seen_ = device->reserve(kSeen * 4, kSeen * 4);
    for (int i = 0; i < kSlots; ++i) times_.emplace_back(device, 0), values_.emplace_back(device, 0);
  }

  // Makes all as it is at first: trees have no cells, and room for few.
  void reset() {
    for (Tree& tree : trees_) tree.deactivate_all();
    trim();
    for (int b = 0; b < kBuffers; ++b) launch(first_words, range(kWords), words(b), static_cast<uint32_t>(b));
    fill(*device_, flags_, 0, 0, 2 * kMostFlags * 4), fill(*device_, counts_, 0, 0, 8);
    for (int i = 0; i < kSlots; ++i) set_times(i, i + 1), set_value(i, 10 + i);
  }

  // Gives a statement without a body.
  void give(const Statement& s) {
    if (s.deed < Deed::kGather)
      give_cells(s);
    else if (s.deed < Deed::kAppendAt)
      give_topology(s);
    else if (s.deed < Deed::kMixWords)
      give_lists(s);
    else if (s.deed < Deed::kFill)
      give_words(s);
    else
      give_buffers(s);
  }
  // Gives what control flow needs beside its body: the first value of a flag, and lowering it.
  void set_flag(const Statement& s) {
    if (s.deed == Deed::kWhile)
      launch(set_word, range(1), flag(s), static_cast<uint32_t>(s.n[1] % 4));
    else
      launch(choose, range(1), words(s.n[1]) + s.n[2] % kWords, flag(s));
  }
  void lower_flag(const Statement& s) { launch(lower_word, range(1), flag(s)); }
  DeviceFlag device_flag(const Statement& s) const {
    return {flags_, static_cast<uint64_t>(s.n[0]) * sizeof(uint32_t)};
  }
  bool wait_flag(const Statement& s) {
    program_.wait();
    uint32_t value = 0;
    device_->wait_copy(&value, flag(s), sizeof value);
    return value != 0;
  }

  void set_times(int slot, int times) { times_[slot].set(times), count_[slot] = times; }
  void set_value(int slot, int value) { values_[slot].set(value); }
  const Slot<int32_t>& times(int slot) const { return times_[slot]; }
  int count(int slot) const { return count_[slot]; }
  void trim() {
    for (Tree& tree : trees_) tree.trim();
  }
  void activate(int tree, int at) { leaf_[tree].activate({{at % kDomain}, {at * 7 % kDomain}}); }
  const IntrusivePtr<Device>& device() const { return device_; }

  // Throws the error of what was given before.
  std::vector<Observed> wait_observe();

 private:
  static constexpr int kSeen = 2 * kDomain + kLists + 3 * kLists;

  template <class... Parameters, class... Arguments>
  void launch(const Kernel<void(Parameters...)>& kernel, const Loop& loop, const Arguments&... arguments) {
    program_.launch(kernel, loop, arguments...);
  }
  uint32_t* words(int n) const { return words_[n % kBuffers]->as<uint32_t>(); }
  uint32_t* flag(const Statement& s) const { return flags_->as<uint32_t>() + s.n[0]; }
  const Field<int>& field(int n) const { return fields_[n % kFields]; }
  static int tree_of(int field) { return field % kFields < 3 ? 0 : 1; }
  Loop over_field(int n) const { return over(leaf_[tree_of(n)]); }

  void give_cells(const Statement& s);
  void give_topology(const Statement& s);
  void give_lists(const Statement& s);
  void give_words(const Statement& s);
  void give_buffers(const Statement& s);

  IntrusivePtr<Device> device_;
  Program program_;
  std::vector<Tree> trees_{Tree(device_, {.name = "dense"}), Tree(device_, {.name = "bits"}),
                           Tree(device_, {.name = "lists"})};
  std::vector<Node> upper_{trees_[0].root().pointer({32}), trees_[1].root().pointer({16}),
                           trees_[2].root().pointer({32})};
  std::vector<Node> leaf_{upper_[0].dense({16}), upper_[1].bitmasked({32})};
  Node lists_ = upper_[2].dynamic(1 << 20, 16);
  std::vector<Field<int>> fields_;
  Field<int> v_, sums_;
  std::vector<BufferRef> words_;
  BufferRef flags_, counts_, seen_;
  std::vector<Slot<int32_t>> times_;
  std::vector<Slot<int>> values_;
  std::array<int, kSlots> count_{};
};

}  // namespace coppice::random_functions

#include "tests/sparse/random_world_inl.h"
