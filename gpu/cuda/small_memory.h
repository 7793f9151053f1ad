// Device memory for small buffers: pieces of shared blocks, since a GPU maps memory by granules (of 2 MiB on
// those of today), and a tree has dozens of buffers that need a few hundred bytes each.
//
// A block belongs to its device for good; pieces are given back and taken again.
#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "gpu/cuda/cuda_buffer.h"

namespace coppice::cuda {

// Thread-safe.
class SmallMemory final : public RefCounted {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 10;

  explicit SmallMemory(IntrusivePtr<Context> context) : context_(std::move(context)) {}
  Context& context() const { return *context_; }
  // Returns how large the piece for so many bytes is.
  static size_t piece_bytes(size_t bytes);
  // Returns a piece of zeros, aligned to 256; waits for them where it was used before. Errors:
  // kOutOfMemory; kUnavailable where the device is lost.
  std::byte* take(size_t piece_bytes);
  // Takes back a piece that no issued work uses.
  void give_back(std::byte* piece, size_t piece_bytes);

 private:
  const IntrusivePtr<Context> context_;
  std::mutex mutex_;
  std::vector<IntrusivePtr<CudaBuffer>> blocks_;
  size_t used_bytes_ = 0;                           // of the last block
  std::map<size_t, std::vector<std::byte*>> free_;  // by piece_bytes
};

// This is a buffer in such memory. As in CudaBuffer, calls that take something away wait for the device.
class SmallBuffer final : public Buffer {
 public:
  SmallBuffer(IntrusivePtr<SmallMemory> memory, size_t reserved_bytes, size_t initial_bytes);
  ~SmallBuffer() override;
  void grow(size_t size_bytes) override;
  void discard(size_t offset_bytes, size_t bytes) override;
  void shrink(size_t size_bytes) override;
  void release() override { shrink(0); }

 private:
  void wait_clear(size_t offset_bytes, size_t bytes);

  const IntrusivePtr<SmallMemory> memory_;
};

// Makes the one or the other, by what it may hold at most.
IntrusivePtr<Buffer> make_buffer(const IntrusivePtr<SmallMemory>& small, size_t reserved_bytes,
                                 size_t initial_bytes);

}  // namespace coppice::cuda
