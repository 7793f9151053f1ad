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

// Throws if a launch of `kernel` left a status of its own making, and takes the status back. What trees resolve
// (a shortage of cells) and what is no error (kStop) stay; returns that. `loop_path` is the node looped over.
// In stream order. Errors: kOutOfRange, kInvalidArgument.
DeviceStatus throw_kernel_error(Device& device, std::string_view kernel,
                                std::span<const detail::HandleUse> handles, std::string_view loop_path);

}  // namespace coppice
