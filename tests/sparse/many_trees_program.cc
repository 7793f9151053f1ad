// A program that makes many small trees, uses each by the host and by kernels, and says what became of it
// (many_trees_test.cc).
//
//     many_trees_program cost TREES              mappings and KiB of addresses that a tree takes, on stdout
//     many_trees_program fit TREES MIB           so many trees within so many MiB of addresses
//     many_trees_program addresses MIB           trees until the addresses run out; the errors on stdout
//     many_trees_program overfill MIB            one tree in so many MiB until it is full; the error
//     many_trees_program mappings MAPPINGS       as with addresses, each tree with a buffer that may grow
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "conformance.kernels.h"
#include "core/error.h"
#include "gpu/cpu/memory_limits.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"

namespace {

using namespace coppice;

uint64_t address_bytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  uint64_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

void limit_addresses(uint64_t more_bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = address_bytes() + more_bytes;
  setrlimit(RLIMIT_AS, &limit);
}

struct SmallTree {
  explicit SmallTree(const IntrusivePtr<Device>& device) : tree(device) {}
  Tree tree;
  Node block = tree.root().pointer({16}), leaf = block.dense({64});
  Field<int> x = leaf.place<int>("x");
  IntrusivePtr<Buffer> beside;
};

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

class Trees {
 public:
  // Makes one, activates two of its blocks by the host and two by a kernel, and loops over it.
  void add(int number) {
    SmallTree tree(device_);
    // A buffer that may grow has a mapping that no neighbour shares.
    if (has_buffers) tree.beside = device_->reserve(1 << 20, 100);
    finish(tree.leaf.activate({{0}, {70}}));
    write(tree, number);
    check(tree, number);
    trees_.push_back(std::move(tree));
  }
  // All are there, can be written, and grow.
  void use_all() {
    for (size_t n = 0; n < trees_.size(); ++n) {
      check(trees_[n], static_cast<int>(n));
      write(trees_[n], static_cast<int>(n) + 1);
      check(trees_[n], static_cast<int>(n) + 1);
    }
  }
  void grow_one() { finish(trees_[0].block.reserve(60000)); }
  size_t size() const { return trees_.size(); }
  void clear_error() { device_->default_stream().clear_error(); }

  bool has_buffers = false;

 private:
  void write(SmallTree& tree, int value) {
    finish(program_.launch(write_at1, range(2), tree.x, at_->as<int>(), value));
  }
  void check(SmallTree& tree, int value) {
    if (tree.leaf.wait_num_active_blocks() != 4 || wait_read(tree.x, 300) != value)
      throw Error(ErrorCode::kInternal, "a tree has other values than were written");
  }

  IntrusivePtr<Device> device_ = Device::cpu(4);
  Program program_{device_};
  IntrusivePtr<Buffer> at_ = [this] {
    const std::vector<int> at{300, 901};
    auto buffer = device_->reserve(64, 64);
    device_->wait_copy(buffer->data(), at.data(), at.size() * sizeof(int));
    return buffer;
  }();
  std::vector<SmallTree> trees_;
};

void add_up_to(Trees& trees, int count) {
  while (static_cast<int>(trees.size()) < count) trees.add(static_cast<int>(trees.size()));
}

void say_cost(Trees& trees, int count) {
  const uint64_t mappings = count_mappings(), bytes = address_bytes();
  add_up_to(trees, static_cast<int>(trees.size()) + count);
  fmt::print("{:.3f} {:.1f}\n", static_cast<double>(count_mappings() - mappings) / count,
             static_cast<double>(address_bytes() - bytes) / 1024 / count);
}

void say_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    fmt::print("{}: {}\n", name_of(error.code()), error.what());
  }
}

// Until there is an error; then all that there were are used, though none of them can grow.
void fill(Trees& trees) {
  say_error([&] { add_up_to(trees, 1 << 20); });
  trees.clear_error();
  say_error([&] { trees.grow_one(); });
  trees.clear_error();
  trees.use_all();
  fmt::print("{} trees\n", trees.size());
}

// Grows one tree, whose range the process has too few addresses for, until it is full.
void overfill(uint64_t more_mib) {
  const auto device = Device::cpu(1);
  Program program(device);
  Tree tree(device);
  const Node leaf = tree.root().pointer({1 << 20}).dense({64});
  const Field<int> x = leaf.place<int>("x");
  constexpr int kCells = 1 << 18;
  const auto at = device->reserve(kCells * sizeof(int), kCells * sizeof(int));
  const auto grow = [&](int first) {
    std::vector<int> cells(kCells);
    for (int i = 0; i < kCells; ++i) cells[static_cast<size_t>(i)] = (first + i) * 64;
    device->wait_copy(at->data(), cells.data(), cells.size() * sizeof(int));
    finish(program.launch(write_at1, range(kCells), x, at->as<int>(), 1));
  };
  program.wait();
  limit_addresses(more_mib << 20);
  say_error([&] {
    for (int first = 0; first < 1 << 20; first += kCells) grow(first);
  });
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const auto number = [&](int at) { return count > at ? std::stoi(words[at]) : 0; };
  Trees trees;
  add_up_to(trees, 1);  // what the first one starts, compiles and keeps is no tree's
  if (what == "cost") {
    say_cost(trees, number(2));
  } else if (what == "fit") {
    limit_addresses((uint64_t{1} << 20) * static_cast<uint64_t>(number(3)));
    add_up_to(trees, number(2));
    trees.use_all();
  } else if (what == "addresses") {
    limit_addresses((uint64_t{1} << 20) * static_cast<uint64_t>(number(2)));
    fill(trees);
  } else if (what == "overfill") {
    overfill(static_cast<uint64_t>(number(2)));
  } else if (what == "mappings") {
    trees.has_buffers = true;
    set_most_mappings(static_cast<uint64_t>(number(2)));
    fill(trees);
  }
  return 0;
}
