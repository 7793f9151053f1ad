// Tells ThreadSanitizer about kernels that run on oneTBB's threads; does nothing in any other build.
//
// oneTBB is not instrumented: ThreadSanitizer sees neither how a loop's start is ordered before its items and
// they before its end, nor how TBB's own data is guarded, and so tests/tsan.supp hides every report with a
// frame of TBB's in it. Items therefore run on fibers, whose stacks have no such frame, and the order is told
// here: races between items are reported, and those between launches that follow each other are none.
#pragma once
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#include <tbb/task_arena.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace coppice {

// Holds one stream's fibers: its launches follow each other. A slot of the arena has one fiber, since a
// fiber runs in one thread at a time.
class KernelFibers {
 public:
  explicit KernelFibers(int slots) : fibers_(static_cast<size_t>(slots)) {
    for (void*& fiber : fibers_) fiber = __tsan_create_fiber(0);
  }
  ~KernelFibers() {
    for (void* fiber : fibers_) __tsan_destroy_fiber(fiber);
  }
  KernelFibers(const KernelFibers&) = delete;

  void begin_loop() { __tsan_release(&begin_); }
  void end_loop() { __tsan_acquire(&end_); }
  template <class Run>
  void run_items(Run&& run) {
    void* const thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fibers_.at(static_cast<size_t>(tbb::this_task_arena::current_thread_index())), 0);
    __tsan_acquire(&begin_);
    run();
    __tsan_release(&end_);
    __tsan_switch_to_fiber(thread, 0);
  }

 private:
  std::vector<void*> fibers_;
  uint64_t begin_ = 0, end_ = 0;  // only their addresses count
};

}  // namespace coppice
#else
namespace coppice {

class KernelFibers {
 public:
  explicit KernelFibers(int) {}
  void begin_loop() {}
  void end_loop() {}
  template <class Run>
  void run_items(Run&& run) {
    run();
  }
};

}  // namespace coppice
#endif
