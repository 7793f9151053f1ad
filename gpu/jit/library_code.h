// Which code of a kernel's module is the library's own and which its author's, by the file that it was
// written in. Internal to gpu/jit.
#pragma once
#include <string>

namespace llvm {
class DILocation;
class Module;
}  // namespace llvm

namespace coppice::jit {

// The folder that the library's headers lie in, with a slash at its end, by the place of the function that
// calls a kernel's body (sparse/device/drivers.h); empty where nothing says it.
std::string library_folder(const llvm::Module& module);
// Whether a place, without those that it was inlined to, is in the library's headers.
bool is_in_library(const llvm::DILocation& at, const std::string& folder);

}  // namespace coppice::jit
