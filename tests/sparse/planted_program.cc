// A small program around planted.kernels.cc, for tests that watch it from outside.
//
//     planted_program step | race | atomics | right | overrun | stack | copy
//
// All but `step` and `right` are wrong, and a sanitizer stops them.
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "core/error.h"
#include "gpu/device.h"
#include "planted.kernels.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice {
namespace {

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// Two kernels that are right: a range and a cell loop.
void step(Program& program, Tree& tree) {
  const std::vector<float> in{1, 2, 3, 4};
  std::vector<float> out(4);
  finish(program.launch(square_all, range(4), in.data(), out.data()));
  fmt::print("squares: {}\n", fmt::join(out, " "));

  Node leaf = tree.root().pointer({8, 8, 8}).dense({8, 8, 8});
  const Smooth fields{leaf.place<float>("now"), leaf.place<float>("next")};
  finish(leaf.activate({{8, 8, 8}}));
  finish(program.launch(smooth, over(leaf), fields));
  fmt::print("smoothed\n");
}

constexpr int kItems = 1 << 13;
constexpr int64_t kHalf = kItems / 2;

void race(Program& program) {
  alignas(64) uint32_t halves[2] = {};
  alignas(64) int place = 0;
  finish(program.launch(write_one_place, range(kItems), kHalf, &halves[0], &place));
}
void atomics(Program& program) {
  alignas(64) uint32_t halves[2] = {};
  alignas(64) float sum = 0;  // or its history is mixed with the neighbours'
  std::vector<float> read(kItems);
  finish(program.launch(add_and_read, range(kItems), kHalf, &halves[0], &sum, read.data()));
}
// Launches follow each other, whichever threads run them.
void right(Program& program) {
  alignas(64) float sum = 0;  // or its history is mixed with the neighbours'
  std::vector<int> own(kItems);
  for (int k = 0; k < 20; ++k) {
    alignas(64) uint32_t halves[2] = {};
    finish(program.launch(add_right, range(kItems), kHalf, &halves[0], &sum, own.data()));
    sum += 1;
  }
  int count = 0;
  for (int i = 0; i < kItems; ++i) count += own[i] == 20 * i;
  fmt::print("{} right, sum {}\n", count, sum);
}
void overrun(Program& program) {
  std::vector<int> out(10);
  finish(program.launch(write_past_the_end, range(1), out.data(), 10));
}
void stack(Program& program) {
  std::vector<int> out(10);
  finish(program.launch(write_past_a_local_array, range(1), 9, out.data()));
}
void copy(Program& program) {
  const std::vector<char> in(100);
  std::vector<char> out(64);
  finish(program.launch(copy_past_the_end, range(1), in.data(), out.data(), uint64_t{65}));
}

int run(std::string_view what) {
  auto device = Device::cpu(2);
  Program program(device);
  Tree tree(device);
  if (what == "step")
    step(program, tree);
  else if (what == "race")
    race(program);
  else if (what == "atomics")
    atomics(program);
  else if (what == "right")
    right(program);
  else if (what == "overrun")
    overrun(program);
  else if (what == "stack")
    stack(program);
  else if (what == "copy")
    copy(program);
  else
    return 2;
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int count, char** words) try {
  return count == 2 ? coppice::run(words[1]) : 2;
} catch (const coppice::Error& error) {
  fmt::print(stderr, "planted_program: error: {}\n", error.what());
  return 1;
}
