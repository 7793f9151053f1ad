// Finds which code of a kernel's module is its author's, and where what it accesses lies. Internal to
// gpu/jit.
//
// The file that an instruction was written in tells: the library's own headers lie in the folder of the
// one that calls kernels for items (sparse/device/kernel_call.h), all else is the author's, also what the
// standard library or Eigen does for them.
#pragma once
#include <string>

namespace llvm {
class DILocation;
class Instruction;
class Module;
}  // namespace llvm

namespace coppice::jit {

// Returns the folder that the library's headers lie in, with a slash at its end, by the place of the
// function that calls a kernel's body; empty where nothing says it.
std::string library_folder(const llvm::Module& module);
// Tells whether a place, without those that it was inlined to, is in the library's headers.
bool is_in_library(const llvm::DILocation& at, const std::string& folder);
// Tells whether an instruction was written in the library's own headers.
bool is_library(const llvm::Instruction& i, const std::string& folder);
// Makes one function of the entry, so that a variable is known as one wherever it is stored to.
void inline_all(llvm::Module& module);

}  // namespace coppice::jit
