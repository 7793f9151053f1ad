// Kernels that change trees: items that append to lists, and items that activate and deactivate cells.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "tests/kernel_fuzz/batch.h"
#include "tests/kernel_fuzz/launch.h"

namespace coppice::kernel_fuzz {

// A tree that one run changes, and the host's model of it.
class GrowingTree : public fuzz_reference::Changes {
 public:
  virtual FieldId field() const = 0;
  // Where the tree differs from the model, as the runner says it; empty where it does not.
  virtual std::string wait_difference() = 0;
};

// Makes a tree of EXTENTS in shapes.py. `fills` launches what fills it at first. The lists of one that is
// to be appended to are empty.
std::unique_ptr<GrowingTree> make_lists(Program& fills, int dims, int number, const std::string& type,
                                        bool filled, uint64_t seed);
std::unique_ptr<GrowingTree> make_cells(Program& fills, int dims, int number, const std::string& type,
                                        uint64_t seed);

}  // namespace coppice::kernel_fuzz
