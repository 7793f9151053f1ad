// The tests of misuse share this.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "misuse.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/loop_devices.h"

namespace coppice {

class MisuseTest : public LoopTest {
 protected:
  template <class Call>
  static std::string words_of(const Call& call) {
    try {
      call();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
      return e.message();
    }
    return "";
  }
};

// A plane with a value, a node and lists for each cell.
struct Plane {
  explicit Plane(const IntrusivePtr<Device>& device) : tree(device, {.name = "plane"}) {
    finish(leaf.activate({{3, 1}, {0, 3}}));
  }
  Tree tree;
  Node leaf = tree.root().pointer({4, 4}).bitmasked({4, 4});
  Node lists = tree.root().dense({4, 4}).dynamic(64, 4);
  Field<int> x = leaf.place<int>("x"), list = lists.place<int>("list");
};

}  // namespace coppice
