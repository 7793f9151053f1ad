// Device memory of the cuda device: a reserved range of the GPU's addresses, backed by memory from its start.
//
// Memory is mapped in chunks of at most kChunkGranules granules (of 2 MiB on the GPUs of today), and a chunk
// is what shrinking gives back. What is mapped behind size_bytes() is zero. A GPU loads no pages on demand:
// what is usable is backed, so that discard() only writes zeros, and Filling makes no difference.
//
// discard(), shrink(), release() and the destructor wait for the device: what was issued may use the memory
// still. So they are for rare occasions. grow() waits only for the new memory to be zero.
#pragma once
#include <vector>

#include "gpu/buffer.h"
#include "gpu/cuda/context.h"

namespace coppice::cuda {

// These refuse sizes and parts that Buffer::grow() and discard() refuse. Errors: kOutOfRange.
void check_growth(const Buffer& buffer, size_t size_bytes);
void check_part(const Buffer& buffer, size_t offset_bytes, size_t bytes);

class CudaBuffer final : public Buffer {
 public:
  static constexpr size_t kChunkGranules = 16;

  // Errors: kOutOfMemory; kUnavailable where the device is lost.
  CudaBuffer(IntrusivePtr<Context> context, size_t reserved_bytes, size_t initial_bytes);
  ~CudaBuffer() override;
  void grow(size_t size_bytes) override;
  void discard(size_t offset_bytes, size_t bytes) override;
  void shrink(size_t size_bytes) override;
  void release() override;

 private:
  struct Chunk {
    MemoryHandle memory;
    size_t bytes;
  };
  DeviceAddress address() const { return reinterpret_cast<DeviceAddress>(data_); }
  void add_chunk(size_t bytes);
  void unmap_last_chunk();
  [[noreturn]] void out_of_memory(size_t bytes);
  void free_range();

  const IntrusivePtr<Context> context_;
  std::vector<Chunk> chunks_;  // one behind the other
  size_t mapped_bytes_ = 0;    // of all of them
};

}  // namespace coppice::cuda
