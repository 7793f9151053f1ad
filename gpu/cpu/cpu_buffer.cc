// Device memory of the cpu device (see cpu_buffer.h). Pages cost memory only once they are touched.
#include "gpu/cpu/cpu_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/extents.h"
#include "gpu/buffer_ranges.h"

namespace coppice {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t page_bytes() {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}
size_t page_align(size_t bytes) { return round_up(bytes, page_bytes()); }
size_t page_floor(size_t bytes) { return bytes / page_bytes() * page_bytes(); }

[[noreturn]] void out_of_memory(const char* what, size_t bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("cannot {} {} bytes of memory: {}", what, bytes, std::strerror(errno)));
}

}  // namespace

CpuBuffer::CpuBuffer(size_t reserved_bytes, size_t initial_bytes, Filling filling) {
  reserved_bytes_ = page_align(std::max<size_t>({reserved_bytes, initial_bytes, 1}));
  has_huge_pages_ = filling == Filling::kPacked && reserved_bytes_ >= 2 * kHugePage;
  if (has_huge_pages_) reserved_bytes_ = round_up(reserved_bytes_, kHugePage);
  // One huge page more than is used, so that the range can start at a multiple of one.
  mapped_bytes_ = reserved_bytes_ + (has_huge_pages_ ? kHugePage : 0);
  // NORESERVE and no access: the range costs address space only.
  void* range = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) out_of_memory("reserve", reserved_bytes_);
  mapped_ = static_cast<std::byte*>(range);
  data_ = mapped_;
  if (has_huge_pages_)
    data_ += round_up(reinterpret_cast<size_t>(mapped_), kHugePage) - reinterpret_cast<size_t>(mapped_);
  advise();
  if (initial_bytes > 0) grow(initial_bytes);
}

void CpuBuffer::announce(size_t most_bytes, const DeviceContext& owner) {
  BufferRanges::all().set(data_, most_bytes, 0, &owner);
  is_announced_ = true;
}

CpuBuffer::~CpuBuffer() {
  if (is_announced_) BufferRanges::all().set(data_, 0);
  munmap(mapped_, mapped_bytes_);
}

// A hint: a kernel without huge pages refuses, and nothing is lost but speed.
void CpuBuffer::advise() {
  if (has_huge_pages_) madvise(data_, reserved_bytes_, MADV_HUGEPAGE);
}

void CpuBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  if (size_bytes > reserved_bytes_) {
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("a buffer of at most {} bytes cannot grow to {}", reserved_bytes_, size_bytes));
  }
  // Whole huge pages as soon as one would be half full; before that small ones, since many buffers stay small.
  const bool huge = has_huge_pages_ && size_bytes > kHugePage / 2;
  const size_t end = huge ? round_up(size_bytes, kHugePage) : page_align(size_bytes);
  if (mprotect(data_, end, PROT_READ | PROT_WRITE) != 0) out_of_memory("commit", end);
  size_bytes_ = size_bytes;
}

void CpuBuffer::discard(size_t offset_bytes, size_t bytes) {
  if (offset_bytes > size_bytes_ || bytes > size_bytes_ - offset_bytes) {
    throw Error(ErrorCode::kOutOfRange, fmt::format("a buffer of {} bytes has no {} bytes from {} on",
                                                    size_bytes_, bytes, offset_bytes));
  }
  const size_t end = offset_bytes + bytes, first = page_align(offset_bytes), last = page_floor(end);
  // Locked pages are not returned; they read as zero nevertheless.
  if (first >= last || madvise(data_ + first, last - first, MADV_DONTNEED) != 0) {
    std::memset(data_ + offset_bytes, 0, bytes);
    return;
  }
  std::memset(data_ + offset_bytes, 0, first - offset_bytes);
  std::memset(data_ + last, 0, end - last);
}

void CpuBuffer::shrink(size_t size_bytes) {
  if (size_bytes >= size_bytes_) return;
  discard(size_bytes, size_bytes_ - size_bytes);
  // All that grow() may have made accessible.
  const size_t kept = page_align(size_bytes),
               end = has_huge_pages_ ? round_up(size_bytes_, kHugePage) : page_align(size_bytes_);
  if (mprotect(data_ + kept, end - kept, PROT_NONE) != 0) out_of_memory("give back", end - kept);
  size_bytes_ = size_bytes;
}

void CpuBuffer::release() {
  // A fresh mapping over the old one drops the pages and their contents at once.
  if (mmap(data_, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    out_of_memory("release", reserved_bytes_);
  }
  advise();
  size_bytes_ = 0;
}

}  // namespace coppice
