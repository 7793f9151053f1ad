// The edges of a graph that was captured (fake_driver.h): in which orders its operations may run.
#pragma once
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "gpu/cuda/driver.h"

namespace coppice::fake {

// Its nodes are numbered as they are added; the handle of number i has the value i + 1.
class GraphEdges {
 public:
  using Nodes = std::vector<cuda::GraphNodeHandle>;

  static size_t number_of(cuda::GraphNodeHandle node) { return reinterpret_cast<size_t>(node) - 1; }
  size_t size() const { return before_.size(); }
  bool has(cuda::GraphNodeHandle node) const { return number_of(node) < size(); }
  // Adds a node that comes behind others.
  cuda::GraphNodeHandle add(Nodes before) {
    before_.push_back(std::move(before));
    return reinterpret_cast<cuda::GraphNodeHandle>(size());
  }

  // Returns an order that the edges allow.
  std::vector<size_t> any_order(std::mt19937_64& random) const {
    std::vector<size_t> order, ready, waits(size());
    std::vector<std::vector<size_t>> behind(size());
    for (size_t i = 0; i < size(); ++i) {
      waits[i] = before_[i].size();
      if (waits[i] == 0) ready.push_back(i);
      for (const cuda::GraphNodeHandle node : before_[i]) behind[number_of(node)].push_back(i);
    }
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const size_t done = ready.back();
      ready.pop_back();
      order.push_back(done);
      for (const size_t i : behind[done]) {
        if (--waits[i] == 0) ready.push_back(i);
      }
    }
    return order;
  }

  // Returns whether one node must be done when the other, which was added later, begins.
  bool is_behind(size_t later, size_t earlier) const {
    std::vector<bool> is_needed(size(), false);
    is_needed[later] = true;
    for (size_t i = later; i > earlier; --i) {
      if (!is_needed[i]) continue;
      for (const cuda::GraphNodeHandle node : before_[i]) is_needed[number_of(node)] = true;
    }
    return is_needed[earlier];
  }

 private:
  std::vector<Nodes> before_;
};

}  // namespace coppice::fake
