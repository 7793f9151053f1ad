// Device memory of the cpu device (see cpu_buffer.h). Pages cost memory only once they are touched.
#include "gpu/cpu/cpu_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace coppice {
namespace {

size_t page_align(size_t bytes) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

[[noreturn]] void out_of_memory(const char* what, size_t bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("cannot {} {} bytes of memory: {}", what, bytes, std::strerror(errno)));
}

}  // namespace

CpuBuffer::CpuBuffer(size_t reserved_bytes, size_t initial_bytes) {
  reserved_bytes_ = page_align(std::max<size_t>({reserved_bytes, initial_bytes, 1}));
  // NORESERVE and no access: the range costs address space only.
  void* range = mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) out_of_memory("reserve", reserved_bytes_);
  data_ = static_cast<std::byte*>(range);
  if (initial_bytes > 0) grow(initial_bytes);
}

CpuBuffer::~CpuBuffer() { munmap(data_, reserved_bytes_); }

void CpuBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  if (size_bytes > reserved_bytes_) {
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("a buffer of at most {} bytes cannot grow to {}", reserved_bytes_, size_bytes));
  }
  const size_t end = page_align(size_bytes);
  if (mprotect(data_, end, PROT_READ | PROT_WRITE) != 0) out_of_memory("commit", end);
  size_bytes_ = size_bytes;
}

void CpuBuffer::release() {
  // A fresh mapping over the old one drops the pages and their contents at once.
  if (mmap(data_, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    out_of_memory("release", reserved_bytes_);
  }
  size_bytes_ = 0;
}

}  // namespace coppice
