// Memory with a cap, for a host's functions: a request beyond it fails, and the function's result is the
// error.
//
//   CappedMemory memory(1 << 30);
//   auto host = make_intrusive<Host>(WorkQueue::create(), memory);
//
// It outlives all that was allocated from it, or a check fails. A result may come before the thread that made
// it has let go of what it was made from, so host->queue()->wait_idle() or shutdown() comes before the memory
// goes. Thread-safe where `upstream` is.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory_resource>

namespace coppice::executor {

class CappedMemory final : public std::pmr::memory_resource {
 public:
  explicit CappedMemory(size_t most_bytes,
                        std::pmr::memory_resource& upstream = *std::pmr::new_delete_resource())
      : most_bytes_(most_bytes), upstream_(upstream) {}
  ~CappedMemory() override;

  // Returns the size of what is allocated now, as it was asked for, without what `upstream` adds.
  size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  // Errors: kOutOfMemory.
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  const size_t most_bytes_;
  std::pmr::memory_resource& upstream_;
  std::atomic<size_t> used_bytes_{0};
};

}  // namespace coppice::executor
