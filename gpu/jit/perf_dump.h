// COPPICE_PERF=dir: tells Linux's perf of kernels' machine code, by a file `dir/jit-<pid>.dump` in perf's
// jitdump format (tools/perf/Documentation/jitdump-specification.txt). Internal to gpu/jit.
//
// Each kernel is one record under its id, "heat.diffuse", with its code and its unwind table, so that
// samples have a name, instructions and callers. Records have times, so that code that was unloaded, and
// other code at its place, are told apart.
#pragma once

namespace llvm::orc {
class ObjectLinkingLayer;
}

namespace coppice::jit {

// Tells perf of what `layer` links from now on. Does nothing when the variable is unset, or when the
// file cannot be written, after a warning. The folder is made. The layer's libraries have to be
// called "<id>.<number>". Thread-safe.
void show_to_perf(llvm::orc::ObjectLinkingLayer& layer);

}  // namespace coppice::jit
