// Says what a launch touches, as data: fields and topologies of trees, and memory given to it by address.
//
// It comes from the handles' roles and from what was seen in the kernel when its file was built
// (gpu/jit/kernel_effects.h), and errs on the side of touching more. It decides whether a launch may be
// repeated, whether its result depends on the order of its items, and what a recording must look after.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/intrusive_ptr.h"
#include "gpu/effects.h"

namespace coppice {

struct LaunchUse {
  enum class Kind : uint8_t { kField, kTopology, kMemory } kind = Kind::kField;
  bool star = true;               // of a reach
  bool depends_on_order = false;  // of the items: which of several values stays, how sums are rounded
  int16_t radius = 0;             // cells around its own; kAnywhere: by coordinate
  bool in_neighbours = false;     // what is anywhere is in blocks beside its own
  uint32_t effects = 0;           // of namespace effect
  RefCounted* tree = nullptr;     // of a field or topology: a TreeStorage, kept by the launch
  uint32_t node = 0, field = 0;
  std::string_view role;  // of the handle it comes from, "Read"; empty where none does
  // These say of memory which of the launch's arguments leads to it, from 1 on, and where in the launch
  // block's arguments its address is, from which the checks find the buffer (sparse/memory_uses.h).
  // Argument 0: it is behind a member of some argument, or reached by an address that the kernel computes.
  // An argument that leads to memory is listed, without effects, even where nothing is done there.
  uint32_t argument = 0, argument_offset = 0;
  bool is_slot = false;  // memory of the runtime's own (sparse/slot.h), which no kernel stores to
  std::string name;      // "'now' on grid.pointer[64].dense[8]", "argument 3"

  static constexpr int16_t kAnywhere = -1;
  bool does(uint32_t any_of) const { return (effects & any_of) != 0; }
};

class LaunchUses final : public RefCounted {
 public:
  LaunchUses() = default;
  explicit LaunchUses(std::vector<LaunchUse> uses) : all(std::move(uses)) {}
  std::vector<LaunchUse> all;
  // The number of items is read from device memory, whenever the launch is run.
  bool reads_count = false;
  bool has_temporary_fields = false;  // some field's values are a step's only (sparse/temporary_fields.h)

  bool depends_on_order() const {
    return std::any_of(all.begin(), all.end(), [](const LaunchUse& u) { return u.depends_on_order; });
  }
  bool does(uint32_t any_of) const {
    return std::any_of(all.begin(), all.end(), [any_of](const LaunchUse& u) { return u.does(any_of); });
  }
  bool does_to(const RefCounted* tree, uint32_t any_of) const {
    return std::any_of(all.begin(), all.end(),
                       [&](const LaunchUse& u) { return u.tree == tree && u.does(any_of); });
  }
};

}  // namespace coppice
