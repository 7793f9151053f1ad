// This binds a launch's loop and handles: they are checked against each other and the trees, and become the
// constants of its specialization.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "gpu/launch_uses.h"
#include "sparse/device/layout.h"
#include "sparse/launch_request.h"

namespace coppice {

class TreeStorage;

// Holds the constants of a specialization and what its launches need besides.
struct Binding {
  std::vector<device::NodeLayout> nodes;
  std::vector<device::FieldBinding> fields;  // of the handles, in their order
  device::LoopLayout loop{};
  std::vector<TreeStorage*> trees;
  std::vector<std::pair<TreeStorage*, uint32_t>> node_keys;  // which ones `nodes` are of
  bool needs_neighbours = false;
  uint32_t shared_bytes = 0;  // of all tiles
  bool names_a_field_twice = false;
};

// Freezes the trees. With `checks`, rows are not blended: what is computed of inactive cells would complain.
// Errors: kInvalidArgument, "kernel file.name: <why>".
Binding make_binding(const detail::LaunchRequest& request, const Device& device, bool checks);

// Tells the kernel what its launch's uses say, which the checks compare with what it does.
void tell_uses(Binding& binding, const LaunchUses& uses);

}  // namespace coppice
