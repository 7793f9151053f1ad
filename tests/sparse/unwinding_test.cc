// Backtraces through kernels: from a handler of a fault inside one to the function that called it.
#include <execinfo.h>
#include <gtest/gtest.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <span>

#include "tests/sparse/kernel_store_util.h"

// The C runtime, libgcc, returns what the unwinder knows of the function at an address; null for what
// nobody registered.
extern "C" const void* _Unwind_Find_FDE(void* pc, void* bases);

namespace coppice {
namespace {

std::array<void*, 64> frames;
int frame_count = 0;
sigjmp_buf behind_the_fault;
void* caller_frame = nullptr;

void on_fault(int) {
  frame_count = backtrace(frames.data(), static_cast<int>(frames.size()));
  siglongjmp(behind_the_fault, 1);
}

class WithFaultHandler {
 public:
  WithFaultHandler() {
    backtrace(frames.data(), 1);  // loads the unwinder, which a handler must not do
    struct sigaction action {};
    action.sa_handler = &on_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~WithFaultHandler() { sigaction(SIGSEGV, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

[[gnu::noinline]] void call_kernel(KernelEntry entry, const LaunchBlock& block) {
  caller_frame = __builtin_return_address(0);
  entry(&block, 0, 3);
  asm volatile("" ::: "memory");  // no tail call
}

bool has_frame(const void* address) {
  const std::span all(frames.data(), static_cast<size_t>(frame_count));
  return std::find(all.begin(), all.end(), address) != all.end();
}

bool has_frame_in(KernelEntry entry) {
  const auto begin = reinterpret_cast<uintptr_t>(entry);
  for (int i = 0; i < frame_count; ++i) {
    const auto pc = reinterpret_cast<uintptr_t>(frames[static_cast<size_t>(i)]);
    if (pc >= begin && pc < begin + 4096) return true;
  }
  return false;
}

bool is_unwindable(uintptr_t pc) {
  void* bases[3] = {};
  return _Unwind_Find_FDE(reinterpret_cast<void*>(pc), bases) != nullptr;
}

class UnwindingTest : public KernelStoreFolder {
 protected:
  LoadedCodeRef load(const std::string& kernel, CodegenOptions codegen = {}) {
    jit::SpecializeRequest request = jit_request(kernel);
    request.options = codegen;
    auto code = store.get(request);
    wait(code);
    store.wait_compiled();
    return code.get();
  }
  static KernelStore::Options dropping(KernelStore::Options o) {
    o.max_unused = 0;
    return o;
  }
  KernelStore store{dropping(options())};
};

TEST_F(UnwindingTest, ABacktraceOfAFaultingKernelLeadsToItsCaller) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "the unwinder allocates in the signal handler, which the thread sanitizer takes for a fault";
#endif
  const WithFaultHandler handler;
  for (const char* kernel : {"write_index", "add_one", "sine_and_cosine", "powers_of_ten"}) {
    for (const bool step : {false, true}) {
      SCOPED_TRACE(std::string(kernel) + (step ? ", for stepping" : ""));
      const LoadedCodeRef code = load(kernel, {.step = step});
      LaunchBlock block{};  // its arguments are null pointers
      frame_count = 0;
      if (sigsetjmp(behind_the_fault, 1) == 0) {
        call_kernel(jit::host_entry(*code), block);
        ADD_FAILURE() << "no fault";
      }
      EXPECT_TRUE(has_frame_in(jit::host_entry(*code)));
      EXPECT_TRUE(has_frame(caller_frame)) << frame_count << " frames";
    }
  }
}

TEST_F(UnwindingTest, UnloadedCodeIsForgotten) {
  LoadedCodeRef code = load("add_one");
  const auto pc = reinterpret_cast<uintptr_t>(jit::host_entry(*code)) + 1;
  EXPECT_TRUE(is_unwindable(pc));
  code.reset();
  store.release_unused();
  store.wait_compiled();
  EXPECT_FALSE(is_unwindable(pc));
}

}  // namespace
}  // namespace coppice
