// A device at work, with a handle of each public type, that are let go in a random order while
// kernels are being compiled: what lifetimes_stress_test.cc does on several threads, and
// ending_program.cc when its process ends.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "conformance.kernels.h"
#include "gpu/simt/machine.h"
#include "sparse/program.h"
#include "sparse/topology_tools.h"
#include "sparse/tree.h"
#include "tests/sparse/traced.h"

namespace coppice {

class World {
 public:
  using Random = std::mt19937;

  explicit World(Random& random)
      : device_(some_device(random)), program_(std::make_shared<Program>(device_)) {
    tree_.emplace(device_);
    // Other extents are other kernels, so that there is something to compile.
    leaf_ = tree_->root().pointer({64}).bitmasked({1 + below(random, 4000)});
    x_ = leaf_->place<int>("x"), y_ = leaf_->place<int>("y");
    second_ = device_->create_stream();
    buffer_ = device_->reserve(4096, 4096);
  }

  // Gives some work, and waits for nothing.
  void work(Random& random) {
    switch (below(random, 9)) {
      case 0:
        return keep(program_->launch(write_every1, range(10), *x_, 7, 1));
      case 1:
        return keep(program_->launch(write_branching1, over(*leaf_), *x_, *y_));
      case 2:
        return keep(leaf_->activate({{1}, {below(random, 60)}}));
      case 3:
        keep(leaf_->deactivate({{1}}));
        return keep(tree_->deactivate_all());
      case 4:
        return keep(dilate(*leaf_, Neighbourhood::kFaces));
      case 5:
        bound_.push_back(program_->bind(write_every1, range(5), *y_, 3, 2));
        function_.emplace(traced(bound_));
        return keep(function_->run(2));
      case 6:
        keep(second_->copy(buffer_->data(), buffer_->data() + 64, 32));
        return values_.back().and_then([buffer = buffer_] {});
      case 7:
        return tree_->compile_runtime();
      default:
        return keep(tree_->trim());
    }
  }

  // Returns what was given last. It, and the code of a launch, may be under way.
  AsyncValueRef<Chain> last() const {
    return values_.empty() ? device_->default_stream().barrier() : values_.back();
  }
  AsyncValueRef<IntrusivePtr<LoadedCode>> code() {
    bound_.push_back(program_->bind(write_every1, range(5), *y_, 3, 2));
    return bound_.back().shared()->launch.code;
  }

  // Behind a launch, or behind the compilation of a kernel.
  void on_its_threads(Random& random, std::function<void()> deed) {
    if (random() % 2 == 0) {
      code().and_then(std::move(deed));
    } else {
      last().and_then(std::move(deed));
    }
  }

  // The handles one after another, in a random order.
  void let_go(Random& random) {
    std::vector<std::function<void()>> handles{
        [&] { device_.reset(); },   [&] { program_.reset(); }, [&] { tree_.reset(); },
        [&] { leaf_.reset(); },     [&] { x_.reset(); },       [&] { y_.reset(); },
        [&] { second_.reset(); },   [&] { buffer_.reset(); },  [&] { bound_.clear(); },
        [&] { function_.reset(); }, [&] { values_.clear(); }};
    std::shuffle(handles.begin(), handles.end(), random);
    for (const auto& drop : handles) drop();
  }

 private:
  static int below(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  static IntrusivePtr<Device> some_device(Random& random) {
    switch (below(random, 4)) {
      case 0:
        return Device::cpu(1);
      case 1:
        return Device::cpu({.threads = 2, .deterministic = true});
      case 2:
        return Device::simt();
      default:
        return Device::cpu(2);
    }
  }
  void keep(AsyncValueRef<Chain> value) { values_.push_back(std::move(value)); }

  IntrusivePtr<Device> device_;
  std::shared_ptr<Program> program_;
  std::optional<Tree> tree_;
  std::optional<Node> leaf_;
  std::optional<Field<int>> x_, y_;
  IntrusivePtr<Stream> second_;
  IntrusivePtr<Buffer> buffer_;
  std::vector<BoundLaunch> bound_;
  std::optional<Function> function_;
  std::vector<AsyncValueRef<Chain>> values_;
};

}  // namespace coppice
