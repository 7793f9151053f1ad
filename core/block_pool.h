// Memory for small objects that come and go by the million: async values, their waiters, executor frames.
//
//   void* block = allocate_block(bytes);      // aligned for any standard type; bad_alloc when there is none
//   free_block(block, bytes);                 // the same number of bytes, on any thread
//
// Each thread has two lists of free blocks for each size class; taking a block is a pop, giving it back a
// push onto the list of the thread that frees. A list holds up to one batch (16 KiB). Full lists go as a
// whole to a store that all threads share, and come from there, so the lock there is taken once a batch.
// Without a batch there, and for sizes above 1024 bytes, blocks come from operator new one by one.
//
// At most 32 KiB a class and thread stay cached (256 KiB a thread), handed over when the thread ends, and
// 1 MiB a class (8 MiB in all) in the shared store; the rest goes back to operator delete.
//
// Builds with AddressSanitizer or ThreadSanitizer cache nothing, so that these see each use after free. What
// the library was built with counts, and not what its user is: blocks pass from one to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace coppice {

#ifdef COPPICE_SANITIZED_MEMORY  // by the build, which exports it
inline constexpr bool kCachesBlocks = false;
#else
inline constexpr bool kCachesBlocks = true;
#endif

// Blocks allocated and not freed; always 0 unless COPPICE_DEBUG is defined.
int64_t live_blocks();
// Returns the bytes in the store that the threads share.
size_t shared_free_block_bytes();

namespace detail {

inline constexpr size_t kBlockClassBytes[] = {32, 64, 96, 128, 192, 256, 512, 1024};
inline constexpr size_t kBlockClasses = std::size(kBlockClassBytes);
inline constexpr size_t kMaxBlockBytes = kBlockClassBytes[kBlockClasses - 1];
inline constexpr size_t kBlockBatchBytes = 16 << 10;
inline constexpr size_t kMaxSharedBatches = 64;  // of one class

struct BlockClassTable {
  uint8_t of[kMaxBlockBytes / 32 + 1] = {};  // of a size rounded up to 32 bytes
  constexpr BlockClassTable() {
    for (size_t i = 0, block_class = 0; i <= kMaxBlockBytes / 32; ++i) {
      if (i * 32 > kBlockClassBytes[block_class]) ++block_class;
      of[i] = static_cast<uint8_t>(block_class);
    }
  }
};
inline constexpr BlockClassTable kBlockClassTable;

struct FreeBlock {
  FreeBlock* next;
  FreeBlock* next_batch;  // of a batch's first block, in the shared store
};

// Holds one thread's free blocks of one class. It is all zero until its first slow path and after the
// thread's end: then every call takes the slow path.
struct BlockList {
  FreeBlock* first;
  uint32_t room;     // blocks until `first` is a full batch
  FreeBlock* spare;  // a full batch, or null
};

// This is thread-local because a block is freed by whoever drops the last reference, and nothing passes
// through there that could carry an allocator. It is for host code only, constant-initialised and never
// destroyed, so that access needs no guard and works in destructors of other thread-locals; initial-exec,
// so that it needs no call either.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local BlockList block_lists[kBlockClasses];

void* allocate_block_slowly(size_t block_class);
void free_block_slowly(void* block, size_t block_class);
void count_live_blocks(int delta);

}  // namespace detail

inline void* allocate_block(size_t bytes) {
#ifdef COPPICE_DEBUG
  detail::count_live_blocks(1);
#endif
  if (!kCachesBlocks || bytes > detail::kMaxBlockBytes) return ::operator new(bytes);
  const size_t block_class = detail::kBlockClassTable.of[(bytes + 31) / 32];
  detail::BlockList& list = detail::block_lists[block_class];
  detail::FreeBlock* const block = list.first;
  if (block == nullptr) [[unlikely]]
    return detail::allocate_block_slowly(block_class);
  list.first = block->next;
  ++list.room;
  return block;
}

inline void free_block(void* memory, size_t bytes) {
#ifdef COPPICE_DEBUG
  detail::count_live_blocks(-1);
#endif
  if (!kCachesBlocks || bytes > detail::kMaxBlockBytes) return ::operator delete(memory, bytes);
  const size_t block_class = detail::kBlockClassTable.of[(bytes + 31) / 32];
  detail::BlockList& list = detail::block_lists[block_class];
  if (list.room == 0) [[unlikely]]
    return detail::free_block_slowly(memory, block_class);
  --list.room;
  list.first = new (memory) detail::FreeBlock{list.first, nullptr};
}

// These are new and delete of one object of exactly type T; over-aligned ones come from aligned operator
// new.
template <class T, class... Args>
T* new_in_block(Args&&... args) {
  if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    return new T(std::forward<Args>(args)...);
  } else {
    void* const memory = allocate_block(sizeof(T));
    if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
      return new (memory) T(std::forward<Args>(args)...);
    } else {
      try {
        return new (memory) T(std::forward<Args>(args)...);
      } catch (...) {
        free_block(memory, sizeof(T));
        throw;
      }
    }
  }
}
template <class T>
void delete_in_block(T* object) {
  if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    delete object;
  } else {
    std::destroy_at(object);
    free_block(object, sizeof(T));
  }
}

}  // namespace coppice
