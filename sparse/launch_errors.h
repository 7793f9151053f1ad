// Turns what a kernel found wrong on the device (DeviceStatus) into an Error in the words of who wrote the
// kernel: which kernel, which field, where, and what would have been right.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "gpu/device.h"
#include "gpu/launch_uses.h"
#include "sparse/launch_request.h"

namespace coppice {

// Returns the coordinates that cells of a node can have: "[0, 512) x [-8, 8)".
std::string domain_text(const device::NodeLayout& layout);
// Returns "'now' on root.pointer[64].dense[8]"; for a Topology handle, the name of its node only.
std::string field_name(const detail::HandleUse& handle);

// Holds what a launch's errors speak of.
struct LaunchedKernel {
  std::string_view name;  // "file.kernel"
  std::span<const detail::HandleUse> handles;
  std::string_view loop_path;  // of the node looped over
  const LaunchUses& uses;      // the handles' own come first
  std::span<TreeStorage* const> trees;
  std::span<const TemporaryArgument> temporaries = {};  // of its arguments, where it has checks
};

// Throws if a launch of the kernel left a status of its own making, and takes the status back. A status
// that trees resolve (a shortage of cells) or that is no error (kStop) stays, and is returned. Errors:
// kOutOfRange, kInvalidArgument.
DeviceStatus throw_kernel_error(InStream& s, Device& device, const LaunchedKernel& kernel);
// Throws, with the checks, where a tree of the launch has another topology than before, and its uses do
// not say so. Errors: kInvalidArgument.
void check_topology_uses(InStream& s, const LaunchedKernel& kernel);

// Holds what a text about a handle's misuse needs to know, when the tree may be gone.
struct HandleFacts {
  std::string name;  // as field_name()
  std::string tree;
  uint32_t dims = 0;
  Role role = Role::kRead;
  bool has_same_cells = false;  // its node has those of the node looped over
  bool has_lists = false;
};
HandleFacts facts_of(const detail::HandleUse& handle, const Loop& loop);
// Returns whether two nodes of one tree have the same cells, of the same coordinates, whichever are
// active.
bool has_same_cells(const device::NodeLayout& a, const device::NodeLayout& b);
// Returns "1 coordinate given, tree 'wave' has 2 dimensions".
std::string wrong_count_text(uint32_t given, std::string_view tree, uint32_t dims);
// Returns what is wrong with a use of a handle, as "field 'u' on wave.dense[8]: ..."; empty where it is
// fine. `what` is kWrongAxes (`given`: coordinates), kOtherCells or kNoLists.
std::string misuse_text(DeviceStatus what, const HandleFacts& handle, uint32_t given,
                        std::string_view loop_path);

}  // namespace coppice
