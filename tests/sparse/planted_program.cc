// A small program around planted.kernels.cc, for tests that watch it from outside.
//
//     planted_program step
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

int run(std::string_view what) {
  auto device = Device::cpu(2);
  Program program(device);
  Tree tree(device);
  if (what == "step")
    step(program, tree);
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
