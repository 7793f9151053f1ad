// The kernels of a batch, as the program that runs them has them: bitcode for the devices, references for the host.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/gpu/jit/kernel_assembly.h"
#include "tests/kernel_fuzz/batch.h"
#include "tests/kernel_fuzz/launch.h"

namespace coppice::kernel_fuzz {

inline constexpr int kLoopFiles = 4;  // shape n's loop is in file n % kLoopFiles

// A bitcode file in memory.
struct BitcodeFile {
  explicit BitcodeFile(const std::filesystem::path& path);
  std::string bytes;
};
KernelBitcode view_of(const std::string& bytes);

// The loops of all shapes, of the build's folder.
class Loops {
 public:
  explicit Loops(const std::filesystem::path& folder);
  jit::KernelParts parts(int shape);

 private:
  std::vector<BitcodeFile> raw_, shipped_;
  struct Parts {
    std::string cell, loop;
  };
  std::map<int, Parts> parts_;  // of shapes that were asked for
};

// A folder's batch.so with the references, and either bodies.raw.bc and bodies.bc, whose loops are put around them when a
// kernel is first asked for, or whole.bc with `whole.active_only`, a line per kernel, as a user's build makes them.
class Batch {
 public:
  Batch(Loops& loops, const std::filesystem::path& folder);
  ~Batch();
  Batch(const Batch&) = delete;
  const AnyKernel& kernel(int number, int shape);
  fuzz_reference::Reference reference(int number) const { return references_[number]; }
  double assembly_seconds() const { return assembly_seconds_; }  // of a processor

 private:
  struct Kernel {
    std::string bitcode;
    AnyKernel any;
  };
  Loops& loops_;
  void* library_;
  const fuzz_reference::Reference* references_;
  std::vector<BitcodeFile> files_;  // raw and shipped bodies, or whole kernels
  std::vector<bool> active_only_;   // of whole kernels
  std::map<int, Kernel> kernels_;
  double assembly_seconds_ = 0;
};

}  // namespace coppice::kernel_fuzz
