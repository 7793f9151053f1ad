// Prints one line that names the kernel when LLVM ends the process.
//
// LLVM's back ends call abort() on inputs that they cannot handle, and their handler for fatal
// errors must not return. validate.h refuses all such inputs that we know of; for the rest,
// this says which kernel it was.
#pragma once
#include <string>

namespace coppice::jit {

// While it lives, this thread compiles the kernel `id`. Nests.
class CompilingKernel {
 public:
  explicit CompilingKernel(const std::string& id);
  CompilingKernel(const CompilingKernel&) = delete;
  CompilingKernel& operator=(const CompilingKernel&) = delete;
  ~CompilingKernel();

 private:
  const std::string id_;
  const CompilingKernel* outer_;
  friend const std::string* compiling_kernel();
};

// Returns the innermost kernel that this thread compiles, or null.
const std::string* compiling_kernel();

// Process-wide, once: LLVM's fatal errors and failed allocations print
//     error: kernel heat.diffuse: LLVM cannot compile it and ends the program: <LLVM's words>
// to stderr before LLVM aborts.
void install_fatal_error_handlers();

}  // namespace coppice::jit
