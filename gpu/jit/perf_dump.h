// COPPICE_PERF=dir: tells Linux's perf of kernels' machine code, by a file `dir/jit-<pid>.dump` in perf's jitdump format
// (tools/perf/Documentation/jitdump-specification.txt). Internal to gpu/jit.
//
// Each kernel is one record under its id, "heat.diffuse", with its code and its unwind table, so that samples have a name,
// instructions and callers. Records have times, so that code that was unloaded, and other code at its place, are told
// apart.
#pragma once
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

namespace coppice::jit {

// Of the whole process, for every linking layer. Null when the variable is unset, or when the file cannot be written,
// after a warning. The folder is made. Libraries that code is loaded into are called "<id>.<number>". Thread-safe.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> perf_dump_plugin();

}  // namespace coppice::jit
