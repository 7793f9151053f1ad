// Device memory of the cpu device: a reserved range of virtual addresses, made accessible from its start.
#pragma once
#include "gpu/buffer.h"

namespace coppice {

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(size_t reserved_bytes, size_t initial_bytes);
  ~CpuBuffer() override;
  void grow(size_t size_bytes) override;
  void release() override;
};

}  // namespace coppice
