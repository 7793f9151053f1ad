// Tests of temporary fields share this: a small tree with fields that share bytes.
#pragma once
#include <string>
#include <utility>

#include "sparse/tree.h"
#include "tests/sparse/refusal.h"

namespace coppice {

// A line of leaves of 16 cells. Of three temporaries the second is needed with each of the others.
struct Line {
  explicit Line(const IntrusivePtr<Device>& device, bool is_masked = false, bool shares = true,
                TreeOptions options = {.name = "line"})
      : tree(device, std::move(options)),
        block(tree.root().pointer({8})),
        leaf(is_masked ? block.bitmasked({16}) : block.dense({16})),
        out(leaf.place<float>("out")),
        a(scratch("a", {0, 1}, shares)),
        b(scratch("b", {1, 2}, shares)),
        c(scratch("c", {2, 3}, shares)) {}
  Field<float> scratch(const std::string& name, Stages stages, bool shares) {
    return shares ? leaf.temporary<float>(name, stages) : leaf.place<float>(name);
  }

  Tree tree;
  Node block, leaf;
  Field<float> out, a, b, c;
};

}  // namespace coppice
