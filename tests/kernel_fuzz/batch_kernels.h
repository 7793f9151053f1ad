// The kernels of a batch, as the program that runs them has them: bitcode for the
// devices, references for the host.
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

// The loops of all shapes, of the build's folder.
class Loops {
 public:
  explicit Loops(const std::filesystem::path& folder);
  jit::LoopParts parts(int shape);

 private:
  std::vector<std::string> raw_, shipped_;
  struct Parts {
    std::string cell, loop;
  };
  std::map<int, Parts> parts_;  // of shapes that were asked for
};

// A folder's batch.so with the references, and either bodies.raw.bc and bodies.bc, with the
// number of each body's shape in `shapes`, or whole.bc with `whole.told`, two lines per
// kernel, as a user's build makes them.
class Batch {
 public:
  // Costs some milliseconds per kernel, for putting loops around bodies.
  Batch(Loops& loops, const std::filesystem::path& folder);
  ~Batch();
  Batch(const Batch&) = delete;
  const AnyKernel& kernel(int number) const { return kernels_.at(number); }
  fuzz_reference::Reference reference(int number) const { return references_[number]; }

 private:
  void* library_;
  const fuzz_reference::Reference* references_;
  std::string bitcode_;
  std::vector<AnyKernel> kernels_;
};

}  // namespace coppice::kernel_fuzz
