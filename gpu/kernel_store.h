// The kernels of one device: compiled in parallel, kept in memory, cached on disk.
//
// Thread-safe. Asking for the same specialization twice gives the same value. One log line says what a burst of
// requests cost ("kernels: 9 compiled in 0.41 s, 3 from the cache").
#pragma once
#include <memory>
#include <string>

#include "core/async_value.h"
#include "core/hash.h"
#include "gpu/jit/code_loader.h"
#include "gpu/jit/kernel_cache.h"
#include "gpu/jit/specializer.h"

namespace coppice {

using LoadedCodeRef = IntrusivePtr<jit::LoadedCode>;

class KernelStore {
 public:
  explicit KernelStore(int threads);  // errors: kUsage, COPPICE_DEBUG is wrong
  ~KernelStore();                     // waits for compilations under way

  // The compiled kernel, sooner or later; an error (kCompile) when LLVM refuses it.
  AsyncValueRef<LoadedCodeRef> get(jit::SpecializeRequest request);
  // Forgets a kernel; code that is still referenced stays mapped until its last launch is done.
  void remove(const std::string& id);
  // Returns when nothing is being compiled; logs the summary line if anything was since the last call. Throws the error
  // of a kernel that did not compile.
  void wait_compiled();
  jit::KernelCache& disk_cache();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Everything that decides a kernel's machine code, as a hash: bitcode, constants, entry, CPU, LLVM, pipeline.
Hash128 specialization_key(const jit::SpecializeRequest& request);

}  // namespace coppice
