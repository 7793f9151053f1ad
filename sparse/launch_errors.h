// What a kernel found wrong on the device (DeviceStatus), as an Error in the words of who wrote the kernel: which
// kernel, which field, where, and what would have been right.
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

// Throws if a launch of the kernel left a status of its own making, and takes the status back. What trees resolve
// (a shortage of cells) and what is no error (kStop) stay; returns that. Errors: kOutOfRange,
// kInvalidArgument.
// In stream order.
DeviceStatus throw_kernel_error(Device& device, const LaunchedKernel& kernel);
// With the checks: throws where a tree of the launch has another topology than before, and its uses do not say so.
// Errors: kInvalidArgument. In stream order.
void check_topology_uses(Device& device, const LaunchedKernel& kernel);

}  // namespace coppice
