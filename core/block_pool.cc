// The shared store of free blocks, and how threads' lists are filled from and emptied into it.
#include "core/block_pool.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace coppice {
namespace detail {

constinit thread_local BlockList block_lists[kBlockClasses] = {};

namespace {

// This is a global only so that a leak test is one line; release builds never touch it.
constinit std::atomic<int64_t> live_count{0};

constexpr size_t blocks_per_batch(size_t block_class) {
  return kBlockBatchBytes / kBlockClassBytes[block_class];
}

// Holds full batches of one class. It is a global, because memory has no owner that could hold it;
// constant-initialised and never destroyed, since statics may free blocks.
class SharedBatches {
 public:
  bool push(FreeBlock* batch) {
    const std::lock_guard lock(mutex_);
    if (count_ == kMaxSharedBatches) return false;
    batch->next_batch = std::exchange(first_, batch);
    ++count_;
    return true;
  }
  FreeBlock* pop() {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) return nullptr;
    --count_;
    return std::exchange(first_, first_->next_batch);
  }
  size_t bytes() {
    const std::lock_guard lock(mutex_);
    return count_ * kBlockBatchBytes;
  }

 private:
  std::mutex mutex_;
  FreeBlock* first_ = nullptr;
  size_t count_ = 0;
};
constinit SharedBatches shared_batches[kBlockClasses];

void delete_blocks(FreeBlock* first, size_t block_class) {
  while (first != nullptr) {
    FreeBlock* const block = std::exchange(first, first->next);
    ::operator delete(block, kBlockClassBytes[block_class]);
  }
}

void hand_over(FreeBlock* batch, size_t block_class) {
  if (!shared_batches[block_class].push(batch)) delete_blocks(batch, block_class);
}

constinit thread_local bool thread_is_ending = false;

struct ThreadEnd {
  ~ThreadEnd() {
    thread_is_ending = true;
    for (size_t i = 0; i < kBlockClasses; ++i) {
      const BlockList list = std::exchange(block_lists[i], BlockList{});
      if (list.spare != nullptr) hand_over(list.spare, i);
      delete_blocks(list.first, i);
    }
  }
};

// Returns whether this thread still keeps lists; from the first call on, they are handed over at its end.
bool keeps_lists() {
  if (thread_is_ending) return false;
  static thread_local ThreadEnd at_end;
  (void)&at_end;  // names it, which is what registers its destructor
  return true;
}

}  // namespace

[[gnu::noinline]] void* allocate_block_slowly(size_t block_class) {
  BlockList& list = block_lists[block_class];
  if (keeps_lists()) {
    FreeBlock* batch = std::exchange(list.spare, nullptr);
    if (batch == nullptr) batch = shared_batches[block_class].pop();
    if (batch != nullptr) {
      list.first = batch->next;
      list.room = 1;
      return batch;
    }
    list.room = static_cast<uint32_t>(blocks_per_batch(block_class));
  }
  return ::operator new(kBlockClassBytes[block_class]);
}

[[gnu::noinline]] void free_block_slowly(void* memory, size_t block_class) {
  BlockList& list = block_lists[block_class];
  if (!keeps_lists()) return ::operator delete(memory, kBlockClassBytes[block_class]);
  // The list is a full batch, or this is the class's first use here and it is empty.
  if (list.first != nullptr) {
    FreeBlock* const full = std::exchange(list.spare, list.first);
    if (full != nullptr) hand_over(full, block_class);
  }
  list.first = new (memory) FreeBlock{nullptr, nullptr};
  list.room = static_cast<uint32_t>(blocks_per_batch(block_class)) - 1;
}

void count_live_blocks(int delta) { live_count.fetch_add(delta, std::memory_order_relaxed); }

}  // namespace detail

int64_t live_blocks() { return detail::live_count.load(std::memory_order_relaxed); }

size_t shared_free_block_bytes() {
  size_t bytes = 0;
  for (auto& batches : detail::shared_batches) bytes += batches.bytes();
  return bytes;
}

}  // namespace coppice
