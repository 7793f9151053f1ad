// The kernels of one device: compiled in parallel, kept in memory, cached on disk.
//
// Thread-safe. Asking for the same specialization twice gives the same value. One log line says what a burst
// of requests cost ("kernels: 9 compiled in 0.41 s, 3 from the cache"). An entry of the disk cache that does
// not load costs a compilation, which replaces it; nothing about the disk cache is ever an error of a kernel.
// While COPPICE_DUMP is set (gpu/jit/dump.h), nothing is taken from the disk cache.
//
// When several processes (or devices) need the same kernel at once, one compiles it; the others go on with
// other kernels meanwhile and take it from the disk cache then. Whoever waited for `patience` compiles it,
// too: the owner may be stopped in a debugger.
//
// A kernel is in use while somebody else than the store holds its value or its code. Of those that are
// not in use the store keeps the `max_unused` that were asked for last, since whoever rebuilds a tree
// asks for the same ones again; the others are unloaded, on a thread of the store, when a kernel is
// added and by release_unused().
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

using LoadedCodeRef = IntrusivePtr<LoadedCode>;

class KernelStore {
 public:
  struct Options {
    int threads = 1;
    // These are the folder of the disk cache and its bound: by default what the environment says.
    std::filesystem::path folder = jit::KernelCache::default_folder();
    uint64_t max_bytes = jit::KernelCache::default_max_bytes();
    jit::KeyContext key = jit::key_context();
    size_t max_unused = 128;  // half a MiB of machine code, to several MiB of large kernels
    std::chrono::milliseconds patience{10'000};
    std::shared_ptr<jit::CodeBackend> backend;  // null: of this machine's processor
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };

  // Errors: kUsage when the environment's bound of the cache is no number, or COPPICE_DEBUG is wrong.
  explicit KernelStore(int threads);
  explicit KernelStore(Options options);
  ~KernelStore();  // waits for compilations under way, and for those that somebody waits for

  // Returns the compiled kernel, sooner or later; an error (kCompile) when LLVM refuses it.
  AsyncValueRef<LoadedCodeRef> get(jit::SpecializeRequest request);
  // Forgets a kernel; code that is still referenced stays mapped until its last launch is done.
  void remove(const std::string& id);
  // Unloads what is not in use, but for `max_unused` of it. It does not wait for that. It is to be called
  // when kernels went out of use, and costs some ten nanoseconds per kernel of the store.
  void release_unused();
  // Forgets what is still to be compiled and nobody waits for any more.
  void drop_unwanted();
  // Returns when nothing is being compiled; logs the summary line if anything was since the last call, with
  // the time from the first request to the end of the last compilation. Throws the error of a kernel that did
  // not compile, if somebody holds it.
  void wait_compiled();
  jit::KernelCache& disk_cache();

  // Says of all stores of the process, without a lock, how far the burst under way is, or the last one
  // was. A burst begins when a kernel is asked for and none is under way.
  struct Progress {
    uint64_t asked = 0, compiled = 0, cached = 0, failed = 0;
    double seconds = 0;  // since the burst began, or that it took
    uint64_t done() const { return compiled + cached + failed; }
  };
  static Progress progress();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

using jit::specialization_key;

}  // namespace coppice
