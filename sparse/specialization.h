// A launch's code is made from these: its kernel, its constants, and the version of its kernel's file.
#pragma once
#include "gpu/codegen_options.h"
#include "gpu/jit/specializer.h"
#include "gpu/kernel_versions.h"
#include "gpu/memory_uses.h"
#include "sparse/binding.h"
#include "sparse/launch_request.h"

namespace coppice {

// Returns whether what pointers reach is compared with the launch's uses. Code for stepping keeps its
// functions apart, and in these it is not known whether a pointer is to a variable.
inline bool guards_memory(const detail::LaunchRequest& r, const CodegenOptions& options) {
  return options.checks && !options.step && r.argument_bytes <= kMemoryUsesAt;
}

jit::SpecializeRequest specialization(const detail::LaunchRequest& request, const Binding& binding,
                                      const CodegenOptions& options, bool makes_room = false);

// Returns the launch as a version of its kernel's file would have it (null: the program's own). A kernel
// that stayed as it was has the code that there is, unless lines are part of it.
detail::LaunchRequest at_version(detail::LaunchRequest request, const KernelVersion* version,
                                 const CodegenOptions& options);
detail::LaunchRequest at_current_version(const detail::LaunchRequest& request, const CodegenOptions& options);

}  // namespace coppice
