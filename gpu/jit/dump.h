// COPPICE_DUMP=dir: what the specializer sees and makes, as text files.
//
//     <id>-<key>.in.ll     LLVM IR of a kernel for the CPU, linked and with its constants, before optimising
//     <id>-<key>.opt.ll    after optimising
//     <id>-<key>.s         x86-64 assembly
//     <id>-<key>-simt.*    the same three for the emulated GPU, and .views.ll: what .opt.ll becomes
//     <id>-<key>-sm_90.*   .in.ll, .opt.ll and .ptx of the same kernel for a GPU
//
// <key> is the first 8 digits of the specialization's key. The folder is made. One that cannot be written
// gives one warning and no files; the kernel works nevertheless. Thread-safe.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "gpu/jit/specializer.h"

namespace coppice::jit {

// Returns COPPICE_DUMP, or an empty path.
std::filesystem::path dump_folder();
inline bool is_dumping() { return !dump_folder().empty(); }

// Names of a kernel's files without suffix.
std::string dump_stem(const SpecializeRequest& request);
std::string dump_stem(const SpecializeRequest& request, PtxTarget target);

// Writes `<folder>/<stem>.<suffix>` as a whole; nothing when the variable is unset.
void dump_text(const std::string& stem, std::string_view suffix, std::string_view text);

}  // namespace coppice::jit
