// Says how kernels are compiled: what the environment variable COPPICE_DEBUG asks for, and what the device
// needs.
//
// Part of every specialization's key, so that debug code and fast code never mix in the kernel cache.
#pragma once
#include <string_view>

namespace coppice {

struct CodegenOptions {
  // This is for stepping in a debugger: no optimisation beyond inlining the runtime, line tables kept,
  // code shown to debuggers.
  bool step = false;
  // This is for finding wrong indices and roles: kernels see `coppice_debug_checks` as 1 instead of 0.
  bool checks = false;
  // This is for the emulated GPU (gpu/simt/machine.h): its device intrinsics, and memory accesses that go
  // through its views.
  bool simt = false;

  bool operator==(const CodegenOptions&) const = default;
};

// Reads a comma list of `step` and `checks`; `1` is both, "" and `0` are none. Errors: kUsage, for any
// other word.
CodegenOptions parse_codegen_options(std::string_view words);
// Returns what COPPICE_DEBUG says, read when this is first called. Errors: as above.
const CodegenOptions& codegen_options();

}  // namespace coppice
