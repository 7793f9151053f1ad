// Tells whether a kernel is the same as in another version of its file, whatever else changed there. Part
// of coppice-kernelgen.
#pragma once
#include <memory>
#include <string>

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace coppice::kernelgen {

class KernelContents {
 public:
  // `shipped` is the bitcode of a file that is compiled for devices.
  explicit KernelContents(const llvm::Module& shipped);
  ~KernelContents();

  // Returns 40 hexadecimal digits of a kernel's entry and all that it leads to, functions and variables.
  // Lines do not count, but the files and functions do in which code was written: they tell what is the
  // author's (gpu/jit/author_code.h). Two kernels of one name with equal hashes become the same code, but
  // for what debuggers, profilers and messages say of lines. Cost: 2 to 10 ms.
  std::string hash(const llvm::Function& entry) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::kernelgen
