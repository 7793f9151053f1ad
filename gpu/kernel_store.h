// The kernels of one device: compiled in parallel, kept in memory, cached on disk.
//
// Thread-safe. Asking for the same specialization twice gives the same value. One log line says what a burst of
// requests cost ("kernels: 9 compiled in 0.41 s, 3 from the cache"). An entry of the disk cache that does not load
// costs a compilation, which replaces it; nothing about the disk cache is ever an error of a kernel. While
// COPPICE_DUMP is set (gpu/jit/dump.h), nothing is taken from the disk cache.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/async_value.h"
#include "core/hash.h"
#include "gpu/jit/code_backend.h"
#include "gpu/jit/kernel_cache.h"
#include "gpu/jit/specialization_key.h"
#include "gpu/jit/specializer.h"

namespace coppice {

using LoadedCodeRef = IntrusivePtr<jit::LoadedCode>;

class KernelStore {
 public:
  struct Options {
    int threads = 1;
    // The folder of the disk cache and its bound: by default what the environment says.
    std::filesystem::path folder = jit::KernelCache::default_folder();
    uint64_t max_bytes = jit::KernelCache::default_max_bytes();
    jit::KeyContext key = jit::key_context();
    std::shared_ptr<jit::CodeBackend> backend;  // null: of this machine's processor
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };

  // Errors: kUsage when the environment's bound of the cache is no number, or COPPICE_DEBUG is wrong.
  explicit KernelStore(int threads);
  explicit KernelStore(Options options);
  ~KernelStore();  // waits for compilations under way

  // The compiled kernel, sooner or later; an error (kCompile) when LLVM refuses it.
  AsyncValueRef<LoadedCodeRef> get(jit::SpecializeRequest request);
  // Forgets a kernel; code that is still referenced stays mapped until its last launch is done.
  void remove(const std::string& id);
  // Returns when nothing is being compiled; logs the summary line if anything was since the last call, with the time
  // from the first request to the end of the last compilation. Throws the error of a kernel that did not compile.
  void wait_compiled();
  jit::KernelCache& disk_cache();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

using jit::specialization_key;

}  // namespace coppice
