// Device memory of the cuda device (see cuda_buffer.h).
#include "gpu/cuda/cuda_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/extents.h"
#include "gpu/buffer_ranges.h"

namespace coppice::cuda {

void check_growth(const Buffer& buffer, size_t size_bytes) {
  if (size_bytes <= buffer.reserved_bytes()) return;
  throw Error(ErrorCode::kOutOfRange, fmt::format("a buffer of at most {} bytes cannot grow to {}",
                                                  buffer.reserved_bytes(), size_bytes));
}
void check_part(const Buffer& buffer, size_t offset_bytes, size_t bytes) {
  const size_t size = buffer.size_bytes();
  if (offset_bytes <= size && bytes <= size - offset_bytes) return;
  throw Error(ErrorCode::kOutOfRange,
              fmt::format("a buffer of {} bytes has no {} bytes from {} on", size, bytes, offset_bytes));
}

CudaBuffer::CudaBuffer(IntrusivePtr<Context> context, size_t reserved_bytes, size_t initial_bytes)
    : context_(std::move(context)) {
  context_->throw_if_lost();
  const Context::Scope scope(*context_);
  const Driver& driver = context_->driver();
  reserved_bytes_ =
      round_up(std::max<size_t>({reserved_bytes, initial_bytes, 1}), context_->properties().granule_bytes);
  DeviceAddress at = 0;
  const Result result = driver.mem_address_reserve(&at, reserved_bytes_, 0, 0, 0);
  if (result != Result::kSuccess) {
    Error error =
        driver_error(driver, result, fmt::format("cannot reserve {} bytes of addresses", reserved_bytes_));
    throw context_->lost_or(result,
                            is_fatal(result) ? error : Error(ErrorCode::kOutOfMemory, error.message()));
  }
  data_ = reinterpret_cast<std::byte*>(at);
  context_->add_range(at, reserved_bytes_);
  try {
    grow(initial_bytes);
  } catch (...) {
    free_range();
    throw;
  }
  BufferRanges::all().set(data_, std::max(reserved_bytes, initial_bytes), reserved_bytes_);
}

CudaBuffer::~CudaBuffer() {
  BufferRanges::all().set(data_, 0);
  const Context::FreeingScope scope(*context_);
  context_->wait_idle_to_free();  // a lost device answers at once
  while (!chunks_.empty()) unmap_last_chunk();
  free_range();
}

void CudaBuffer::free_range() {
  context_->remove_range(address());
  context_->driver().mem_address_free(address(), reserved_bytes_);
}

void CudaBuffer::out_of_memory(size_t bytes) {
  size_t free = 0, total = 0;
  const bool known = context_->driver().mem_get_info(&free, &total) == Result::kSuccess;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("device cuda: cannot allocate {} bytes of {}'s memory{}", bytes,
                          context_->properties().name,
                          known ? fmt::format(": {} of {} bytes are free", free, total) : ""));
}

// The chunk is zero, mapped and accessible, or not there at all.
void CudaBuffer::add_chunk(size_t bytes) {
  const Driver& driver = context_->driver();
  const DeviceAddress at = address() + mapped_bytes_;
  MemoryHandle memory = 0;
  const Result created = driver.mem_create(&memory, bytes, &context_->allocation(), 0);
  if (created == Result::kOutOfMemory) out_of_memory(bytes);
  context_->check(created, "cuMemCreate");
  bool mapped = false;
  try {
    context_->check(driver.mem_map(at, bytes, 0, memory, 0), "cuMemMap");
    mapped = true;
    const AccessDescriptor access{context_->allocation().location, AccessFlags::kReadWrite};
    context_->check(driver.mem_set_access(at, bytes, &access, 1), "cuMemSetAccess");
    context_->wait_fill(at, 0, bytes);
    chunks_.push_back({memory, bytes});
    mapped_bytes_ += bytes;
  } catch (...) {
    context_->wait_idle_to_free();  // the fill may be under way
    if (mapped) driver.mem_unmap(at, bytes);
    driver.mem_release(memory);
    throw;
  }
}

void CudaBuffer::unmap_last_chunk() {
  const Chunk chunk = chunks_.back();
  chunks_.pop_back();
  mapped_bytes_ -= chunk.bytes;
  const Result unmapped = context_->driver().mem_unmap(address() + mapped_bytes_, chunk.bytes);
  const Result released = context_->driver().mem_release(chunk.memory);
  // A lost device is noticed; nothing can be done about other failures, and the memory is not ours any
  // longer.
  for (const Result result : {unmapped, released}) {
    if (is_fatal(result)) context_->lost_or(result, driver_error(context_->driver(), result, "cuMemUnmap"));
  }
}

void CudaBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  check_growth(*this, size_bytes);
  context_->throw_if_lost();
  if (size_bytes > mapped_bytes_) {
    const Context::Scope scope(*context_);
    const size_t granule = context_->properties().granule_bytes, before = chunks_.size();
    try {
      while (size_bytes > mapped_bytes_)
        add_chunk(std::min(round_up(size_bytes - mapped_bytes_, granule), kChunkGranules * granule));
    } catch (...) {
      while (chunks_.size() > before) unmap_last_chunk();  // nobody has seen their addresses
      throw;
    }
  }
  size_bytes_ = size_bytes;
}

void CudaBuffer::discard(size_t offset_bytes, size_t bytes) {
  check_part(*this, offset_bytes, bytes);
  context_->throw_if_lost();
  const Context::Scope scope(*context_);
  context_->wait_idle();
  context_->wait_fill(address() + offset_bytes, 0, bytes);
}

void CudaBuffer::shrink(size_t size_bytes) {
  if (size_bytes >= size_bytes_) return;
  context_->throw_if_lost();
  const Context::Scope scope(*context_);
  context_->wait_idle();
  // Zeros are written first: a failure leaves everything as it is, but for values that were to go.
  size_t kept = mapped_bytes_;
  for (size_t i = chunks_.size(); i > 0 && kept - chunks_[i - 1].bytes >= size_bytes; --i)
    kept -= chunks_[i - 1].bytes;
  if (size_bytes < kept)
    context_->wait_fill(address() + size_bytes, 0, std::min(kept, size_bytes_) - size_bytes);
  while (mapped_bytes_ > kept) unmap_last_chunk();
  size_bytes_ = size_bytes;
}

void CudaBuffer::release() {
  const Context::Scope scope(*context_);
  context_->wait_idle();
  while (!chunks_.empty()) unmap_last_chunk();
  size_bytes_ = 0;
}

}  // namespace coppice::cuda
