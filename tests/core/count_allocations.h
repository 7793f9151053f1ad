// Replaces operator new by one that counts, and fails once when it is told to: for one source of a program of
// its own. Sanitizers keep theirs.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0}, failing_allocation{-1};  // the latter as a number of the former

// Counts an allocation, which fails when its turn is that of the failing one.
inline void count_allocation() {
  const int64_t number = allocations.fetch_add(1, std::memory_order_relaxed);
  if (number == failing_allocation.load(std::memory_order_relaxed)) throw std::bad_alloc();
}
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(size_t bytes) {
  count_allocation();
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  count_allocation();
  const auto a = static_cast<size_t>(alignment);
  if (void* const memory = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return memory;
  throw std::bad_alloc();
}
// GCC sees one of these inlined where it does not see the operator new that belongs to it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#pragma GCC diagnostic pop
#endif
