// Device memory of the cpu device: a reserved range of virtual addresses, made accessible from its start.
#pragma once
#include "gpu/buffer.h"

namespace coppice {

struct DeviceContext;

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(size_t reserved_bytes, size_t initial_bytes, Filling filling);
  ~CpuBuffer() override;
  void grow(size_t size_bytes) override;
  void discard(size_t offset_bytes, size_t bytes) override;
  void shrink(size_t size_bytes) override;
  void release() override;
  // As one of a device that kernels reach by its own address (gpu/buffer_ranges.h).
  void announce(size_t most_bytes, const DeviceContext& owner);

 private:
  void advise();

  std::byte* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  bool has_huge_pages_ = false, is_announced_ = false;
};

}  // namespace coppice
