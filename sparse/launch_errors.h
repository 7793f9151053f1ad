// What a kernel found wrong on the device (DeviceStatus), as an Error in the words of who wrote the kernel:
// which kernel, which field, where, and what would have been right.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "sparse/program.h"

namespace coppice {

// The coordinates that cells of a node can have: "[0, 512) x [-8, 8)".
std::string domain_text(const device::NodeLayout& layout);
// "'now' on root.pointer[64].dense[8]"; of a Topology handle, its node only.
std::string field_name(const detail::HandleUse& handle);

// What a launch's errors speak of.
struct LaunchedKernel {
  std::string_view name;  // "file.kernel"
  std::span<const detail::HandleUse> handles;
  std::string_view loop_path;  // of the node looped over
  const LaunchUses& uses;      // the handles' own come first
  std::span<TreeStorage* const> trees;
};

// Throws if a launch of the kernel left a status of its own making, and takes the status back. What trees
// resolve (a shortage of cells) and what is no error (kStop) stay; returns that. Errors: kOutOfRange,
// kInvalidArgument.
DeviceStatus throw_kernel_error(InStream& s, Device& device, const LaunchedKernel& kernel);
// With the checks: throws where a tree of the launch has another topology than before, and its uses do not
// say so. Errors: kInvalidArgument.
void check_topology_uses(InStream& s, const LaunchedKernel& kernel);

// What a text about a handle's misuse needs to know, when the tree may be gone.
struct HandleFacts {
  std::string name;  // as field_name()
  std::string tree;
  uint32_t dims = 0;
  Role role = Role::kRead;
  bool has_same_cells = false;  // its node has those of the node looped over
  bool has_lists = false;
};
HandleFacts facts_of(const detail::HandleUse& handle, const Loop& loop);
// Whether two nodes of one tree have the same cells, of the same coordinates, whichever are active.
bool has_same_cells(const device::NodeLayout& a, const device::NodeLayout& b);
// "1 coordinate given, tree 'wave' has 2 dimensions"
std::string wrong_count_text(uint32_t given, std::string_view tree, uint32_t dims);
// What is wrong with a use of a handle, as "field 'u' on wave.dense[8]: ..."; nothing where it is fine.
// `what` is kWrongAxes (`given`: coordinates), kOtherCells or kNoLists.
std::string misuse_text(DeviceStatus what, const HandleFacts& handle, uint32_t given,
                        std::string_view loop_path);

}  // namespace coppice
