// Device memory of the cpu device (see cpu_buffer.h). Pages cost memory only once they are touched.
#include "gpu/cpu/cpu_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/extents.h"
#include "gpu/buffer_ranges.h"

namespace coppice {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHeapAlignment = 256;  // as small buffers of a GPU have it

size_t page_bytes() {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}
size_t page_align(size_t bytes) { return round_up(bytes, page_bytes()); }
size_t page_floor(size_t bytes) { return bytes / page_bytes() * page_bytes(); }

}  // namespace

CpuBuffer::CpuBuffer(size_t reserved_bytes, size_t initial_bytes, Filling filling) {
  reserved_bytes_ = std::max<size_t>({reserved_bytes, initial_bytes, 1});
  if (reserved_bytes_ <= kMostHeapBytes) {
    mapped_ = static_cast<std::byte*>(allocate_zeros(reserved_bytes_ + kHeapAlignment));
    data_ = mapped_ + kHeapAlignment - reinterpret_cast<size_t>(mapped_) % kHeapAlignment;
    size_bytes_ = initial_bytes;
    return;
  }
  map(filling);
  try {
    grow(initial_bytes);
  } catch (...) {
    free_memory();
    throw;
  }
}

void CpuBuffer::map(Filling filling) {
  reserved_bytes_ = page_align(reserved_bytes_);
  has_huge_pages_ = filling == Filling::kPacked && reserved_bytes_ >= 2 * kHugePage;
  if (has_huge_pages_) reserved_bytes_ = round_up(reserved_bytes_, kHugePage);
  // The mapping has one huge page more than is used, so that the range can start at a multiple of one.
  mapped_bytes_ = reserved_bytes_ + (has_huge_pages_ ? kHugePage : 0);
  claim_.emplace(mapped_bytes_);
  // With NORESERVE and no access the range costs address space only.
  void* range = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw_out_of_memory("reserve", reserved_bytes_, errno);
  mapped_ = static_cast<std::byte*>(range);
  data_ = mapped_;
  if (has_huge_pages_) unmap_beside_data();
  advise();
}

// Unmaps what is left before and behind a range that starts at a multiple of a huge page: each part would
// be a mapping of its own. Where the system refuses, it stays.
void CpuBuffer::unmap_beside_data() {
  data_ += round_up(reinterpret_cast<size_t>(mapped_), kHugePage) - reinterpret_cast<size_t>(mapped_);
  const auto before = static_cast<size_t>(data_ - mapped_);
  if (before > 0 && munmap(mapped_, before) == 0) mapped_ = data_, mapped_bytes_ -= before;
  std::byte* const end = data_ + reserved_bytes_;
  const auto behind = static_cast<size_t>(mapped_ + mapped_bytes_ - end);
  if (behind > 0 && munmap(end, behind) == 0) mapped_bytes_ -= behind;
}

void CpuBuffer::announce(size_t most_bytes, const DeviceContext& owner) {
  BufferRanges::all().set(data_, most_bytes, 0, &owner);
  announced_to_ = &owner, announced_bytes_ = most_bytes;
}

void CpuBuffer::free_memory() {
  if (is_on_heap()) {
    std::free(mapped_);
  } else if (munmap(mapped_, mapped_bytes_) != 0) {
    // The range lies in the middle of what became one mapping, and there may be no more of them: its
    // addresses are lost.
    madvise(mapped_, mapped_bytes_, MADV_DONTNEED);
  }
}

CpuBuffer::~CpuBuffer() {
  if (announced_to_ != nullptr) BufferRanges::all().set(data_, 0);
  free_memory();
}

// This is a hint: a kernel without huge pages refuses, and nothing is lost but speed.
void CpuBuffer::advise() {
  if (has_huge_pages_) madvise(data_, reserved_bytes_, MADV_HUGEPAGE);
}

void CpuBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  if (size_bytes > reserved_bytes_) {
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("a buffer of at most {} bytes cannot grow to {}", reserved_bytes_, size_bytes));
  }
  if (!is_on_heap()) commit(size_bytes);
  size_bytes_ = size_bytes;
  // There may be some bytes more than were asked for.
  if (announced_to_ != nullptr && size_bytes > announced_bytes_) announce(size_bytes, *announced_to_);
}

void CpuBuffer::commit(size_t size_bytes) {
  // A whole huge page is committed at the end if it will be half full, else small ones: a tree has a dozen
  // buffers, and what their last huge pages lack would be resident.
  const bool huge = has_huge_pages_ && size_bytes % kHugePage > kHugePage / 2;
  const size_t end = huge ? round_up(size_bytes, kHugePage) : page_align(size_bytes);
  if (mprotect(data_, end, PROT_READ | PROT_WRITE) != 0) throw_out_of_memory("commit", end, errno);
}

void CpuBuffer::discard(size_t offset_bytes, size_t bytes) {
  if (offset_bytes > size_bytes_ || bytes > size_bytes_ - offset_bytes) {
    throw Error(ErrorCode::kOutOfRange, fmt::format("a buffer of {} bytes has no {} bytes from {} on",
                                                    size_bytes_, bytes, offset_bytes));
  }
  const size_t end = offset_bytes + bytes, first = page_align(offset_bytes), last = page_floor(end);
  // Locked pages are not returned; they read as zero nevertheless.
  if (is_on_heap() || first >= last || madvise(data_ + first, last - first, MADV_DONTNEED) != 0) {
    std::memset(data_ + offset_bytes, 0, bytes);
    return;
  }
  std::memset(data_ + offset_bytes, 0, first - offset_bytes);
  std::memset(data_ + last, 0, end - last);
}

void CpuBuffer::shrink(size_t size_bytes) {
  if (size_bytes >= size_bytes_) return;
  discard(size_bytes, size_bytes_ - size_bytes);
  if (is_on_heap()) {
    size_bytes_ = size_bytes;
    return;
  }
  // This covers all that grow() may have made accessible.
  const size_t kept = page_align(size_bytes),
               end = has_huge_pages_ ? round_up(size_bytes_, kHugePage) : page_align(size_bytes_);
  if (mprotect(data_ + kept, end - kept, PROT_NONE) != 0) throw_out_of_memory("give back", end - kept, errno);
  size_bytes_ = size_bytes;
}

void CpuBuffer::release() {
  if (is_on_heap()) return shrink(0);
  // A fresh mapping over the old one drops the pages and their contents at once.
  if (mmap(data_, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    throw_out_of_memory("release", reserved_bytes_, errno);
  }
  advise();
  size_bytes_ = 0;
}

}  // namespace coppice
