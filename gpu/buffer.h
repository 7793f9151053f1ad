// Device memory that grows in place: a reserved address range, committed from its start.
//
// Addresses never move, so kernels and other buffers may keep them; fresh memory reads as zero. Growing
// happens between launches (of those that use it). Thread-compatible.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/intrusive_ptr.h"

namespace coppice {

// Says how a buffer fills. Packed: from its start, so that huge pages pay (a page table walk per 2 MiB
// instead of 4 KiB). Scattered: touched here and there, where a huge page would cost memory that nobody
// uses.
enum class Filling { kPacked, kScattered };

class Buffer : public RefCounted {
 public:
  ~Buffer() override = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }          // committed and usable
  size_t reserved_bytes() const { return reserved_bytes_; }  // the most it can ever hold

  // Makes at least `size_bytes` usable; contents stay, new bytes are zero. Never shrinks.
  // Errors: kOutOfRange beyond the reservation, kOutOfMemory when the machine has no more.
  virtual void grow(size_t size_bytes) = 0;
  // Makes a part of it read as zero again and returns its whole pages to the system; it stays usable.
  // Errors: kOutOfRange when it does not lie in what is committed.
  virtual void discard(size_t offset_bytes, size_t bytes) = 0;
  // Returns what lies behind the first `size_bytes` to the system; growing again gives zeros. Never grows.
  virtual void shrink(size_t size_bytes) = 0;
  // Returns all memory to the system; afterwards size_bytes() is 0 and growing starts again from zeros.
  virtual void release() = 0;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 protected:
  Buffer() = default;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t reserved_bytes_ = 0;
};

}  // namespace coppice
