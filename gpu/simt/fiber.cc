#include "gpu/simt/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstring>

#include "core/check.h"
#include "core/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace coppice::simt {
namespace {

namespace context = boost::context::detail;

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuardBytes = size_t{4} << 10;

void* map_stack() {
  void* base = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("the emulated GPU gets no stack of {} bytes for a thread: {}", kStackBytes,
                            std::strerror(errno)));
  }
  COPPICE_CHECK(mprotect(base, kGuardBytes, PROT_NONE) == 0);
  return static_cast<char*>(base) + kGuardBytes;
}

}  // namespace

struct Fiber::Start {
  [[noreturn]] static void run(context::transfer_t from) {
    // The fiber that switches passes both sides: only it knows them.
    auto** const sides = static_cast<Fiber**>(from.data);
    Fiber& self = *sides[1];
    self.arrived_from(from.fctx, *sides[0]);
    for (;;) self.switch_to(self.body_(self.argument_));
  }
};

Fiber::Fiber() {
#if defined(__SANITIZE_THREAD__)
  tsan_fiber_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(Body body, void* argument)
    : body_(body), argument_(argument), stack_(map_stack()), stack_bytes_(kStackBytes) {
  reset();
}

Fiber::~Fiber() {
  if (body_ == nullptr) return;
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(tsan_fiber_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, stack_bytes_);
#endif
  munmap(static_cast<char*>(stack_) - kGuardBytes, kGuardBytes + stack_bytes_);
}

void Fiber::reset() {
  context_ = context::make_fcontext(static_cast<char*>(stack_) + stack_bytes_, stack_bytes_, &Start::run);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, stack_bytes_);
  fake_stack_ = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
  if (tsan_fiber_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
}

void Fiber::arrived_from(void* context, Fiber& from) {
  from.context_ = context;
#if defined(__SANITIZE_ADDRESS__)
  const void* stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack_, &stack, &bytes);
  if (from.body_ == nullptr) {  // only now is it known where that stack lies
    from.stack_ = const_cast<void*>(stack);
    from.stack_bytes_ = bytes;
  }
#endif
}

void Fiber::switch_to(Fiber& to) {
  if (&to == this) return;
  Fiber* sides[] = {this, &to};
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, to.stack_, to.stack_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.tsan_fiber_, 0);
#endif
  const context::transfer_t from = context::jump_fcontext(to.context_, sides);
  arrived_from(from.fctx, **static_cast<Fiber**>(from.data));
}

}  // namespace coppice::simt
