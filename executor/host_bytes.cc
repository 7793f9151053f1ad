// Memory of host values: made in one piece with its header, grown where a place is too small.
#include "executor/host_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace coppice::executor {

using coppice::detail::RefAccess;

IntrusivePtr<HostMemory> HostMemory::create(size_t bytes, std::pmr::memory_resource& from,
                                            std::shared_ptr<std::atomic<int64_t>> copies) {
  static_assert(sizeof(HostMemory) <= kHeaderBytes);
  if (bytes > std::numeric_limits<size_t>::max() / 2)
    throw Error(ErrorCode::kOutOfRange, fmt::format("a value of {} bytes", bytes));
  void* const memory = from.allocate(kHeaderBytes + bytes, kAlignment);
  auto* const self = new (memory) HostMemory(bytes, from, std::move(copies));
  RefAccess::count(self).start();
  return IntrusivePtr<HostMemory>::reclaim(self);
}

void HostMemory::destroy(HostMemory* self) {
  std::pmr::memory_resource& from = self->from_;
  const size_t bytes = self->bytes_;
  std::destroy_at(self);
  from.deallocate(self, kHeaderBytes + bytes, kAlignment);
}

HostBytes HostBytes::view(size_t offset, size_t bytes) const {
  COPPICE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset, "a view of {} bytes at {} in {}", bytes, offset,
                bytes_);
  HostBytes part;
  part.data_ = data_ + offset, part.bytes_ = bytes, part.room_ = bytes;
  if (is_counted()) part.memory_ = memory_;
  return part;
}

HostBytes HostBytes::shared() const { return is_counted() ? view(0, bytes_) : copy_out(); }

HostBytes HostBytes::copy_out(std::pmr::memory_resource& to) const {
  HostBytes copy(bytes_, to);
  if (bytes_ > 0) std::memcpy(copy.data_, data_, bytes_);
  if (memory_) memory_->count_copy();
  return copy;
}

void OutBytes::take_memory(size_t n, size_t item_bytes) const {
  if (n > std::numeric_limits<size_t>::max() / 2 / item_bytes)
    throw Error(ErrorCode::kOutOfRange, fmt::format("a value of {} items of {} bytes", n, item_bytes));
  const size_t bytes = n * item_bytes;
  HostBytes& v = *value_;
  v.memory_ = nullptr;  // what it had is given back first
  v.data_ = nullptr, v.room_ = 0, v.bytes_ = 0;
  // It has left its place, whether there is other memory or not: the next run gives it one.
  if (v.learned_ != nullptr) *v.learned_->has_outgrown = true;
  v.memory_ = HostMemory::create(bytes, *memory_);
  v.data_ = v.memory_->data(), v.room_ = bytes;
  if (v.learned_ != nullptr) v.learned_->most_bytes = std::max(v.learned_->most_bytes, bytes);
}

}  // namespace coppice::executor
