// Device memory for small buffers (see small_memory.h).
#include "gpu/cuda/small_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/buffer_ranges.h"

namespace coppice::cuda {
namespace {

constexpr size_t kLeastBytes = 256;

}  // namespace

// Sizes are powers of two: there are few, so that what one buffer gives back fits the next.
size_t SmallMemory::piece_bytes(size_t bytes) { return std::bit_ceil(std::max(bytes, kLeastBytes)); }

std::byte* SmallMemory::take(size_t piece_bytes) {
  context_->throw_if_lost();
  const std::lock_guard lock(mutex_);
  std::vector<std::byte*>& free = free_[piece_bytes];
  if (!free.empty()) {
    const Context::Scope scope(*context_);
    context_->wait_fill(reinterpret_cast<DeviceAddress>(free.back()), 0, piece_bytes);
    std::byte* const piece = free.back();
    free.pop_back();
    return piece;
  }
  if (blocks_.empty() || used_bytes_ + piece_bytes > blocks_.back()->size_bytes()) {
    const size_t block_bytes = std::max(context_->properties().granule_bytes, kMostBytes);
    blocks_.push_back(make_intrusive<CudaBuffer>(context_, block_bytes, block_bytes));
    used_bytes_ = 0;
  }
  std::byte* const piece = blocks_.back()->data() + used_bytes_;
  used_bytes_ += piece_bytes;
  return piece;
}

void SmallMemory::give_back(std::byte* piece, size_t piece_bytes) {
  const std::lock_guard lock(mutex_);
  free_[piece_bytes].push_back(piece);
}

SmallBuffer::SmallBuffer(IntrusivePtr<SmallMemory> memory, size_t reserved_bytes, size_t initial_bytes)
    : memory_(std::move(memory)) {
  reserved_bytes_ = SmallMemory::piece_bytes(std::max(reserved_bytes, initial_bytes));
  data_ = memory_->take(reserved_bytes_);
  size_bytes_ = initial_bytes;
  BufferRanges::all().set(data_, std::max(reserved_bytes, initial_bytes), reserved_bytes_);
}

SmallBuffer::~SmallBuffer() {
  BufferRanges::all().set(data_, 0);
  {
    const Context::FreeingScope scope(memory_->context());
    memory_->context().wait_idle_to_free();
  }
  memory_->give_back(data_, reserved_bytes_);
}

void SmallBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  check_growth(*this, size_bytes);
  memory_->context().throw_if_lost();
  size_bytes_ = size_bytes;
}

void SmallBuffer::wait_clear(size_t offset_bytes, size_t bytes) {
  Context& context = memory_->context();
  context.throw_if_lost();
  const Context::Scope scope(context);
  context.wait_idle();
  context.wait_fill(reinterpret_cast<DeviceAddress>(data_) + offset_bytes, 0, bytes);
}

void SmallBuffer::discard(size_t offset_bytes, size_t bytes) {
  check_part(*this, offset_bytes, bytes);
  wait_clear(offset_bytes, bytes);
}

void SmallBuffer::shrink(size_t size_bytes) {
  if (size_bytes >= size_bytes_) return;
  wait_clear(size_bytes, size_bytes_ - size_bytes);
  size_bytes_ = size_bytes;
}

IntrusivePtr<Buffer> make_buffer(const IntrusivePtr<SmallMemory>& small, size_t reserved_bytes,
                                 size_t initial_bytes) {
  if (std::max(reserved_bytes, initial_bytes) <= SmallMemory::kMostBytes)
    return make_intrusive<SmallBuffer>(small, reserved_bytes, initial_bytes);
  return make_intrusive<CudaBuffer>(share(&small->context()), reserved_bytes, initial_bytes);
}

}  // namespace coppice::cuda
