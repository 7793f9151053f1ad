// Device memory of the emulated GPU: memory of the host under addresses of the device (address.h).
#pragma once
#include <algorithm>

#include "gpu/buffer_ranges.h"
#include "gpu/cpu/cpu_buffer.h"
#include "gpu/simt/address.h"

namespace coppice::simt {

class SimtBuffer final : public Buffer {
 public:
  SimtBuffer(size_t reserved_bytes, size_t initial_bytes, Filling filling = Filling::kPacked,
             const DeviceContext* owner = nullptr)
      : memory_(make_intrusive<CpuBuffer>(reserved_bytes, initial_bytes, filling)),
        most_bytes_(std::max(reserved_bytes, initial_bytes)),
        owner_(owner) {
    data_ = device_address(memory_->data());
    reserved_bytes_ = memory_->reserved_bytes();
    take_size();
  }
  ~SimtBuffer() override { BufferRanges::all().set(data_, 0); }
  void grow(size_t size_bytes) override { memory_->grow(size_bytes), take_size(); }
  void discard(size_t offset_bytes, size_t bytes) override { memory_->discard(offset_bytes, bytes); }
  void shrink(size_t size_bytes) override { memory_->shrink(size_bytes), take_size(); }
  void release() override { memory_->release(), take_size(); }

 private:
  void take_size() {
    size_bytes_ = memory_->size_bytes();
    BufferRanges::all().set(data_, size_bytes_, most_bytes_, owner_);
  }

  const IntrusivePtr<CpuBuffer> memory_;
  const size_t most_bytes_;
  const DeviceContext* const owner_;  // as in BufferRange
};

}  // namespace coppice::simt
