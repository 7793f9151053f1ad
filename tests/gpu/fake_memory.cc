// The memory of a fake GPU (see fake_memory.h): a file in memory, parts of which are mapped.
#include "tests/gpu/fake_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/check.h"
#include "core/extents.h"

namespace coppice::fake {
namespace {

using cuda::Result;

constexpr unsigned char kGarbage = 0xA5;  // in fresh memory

Result refuse(std::string& problem, std::string text) {
  problem = std::move(text);
  return Result::kInvalidValue;
}

}  // namespace

FakeMemory::FakeMemory(size_t granule_bytes, size_t total_bytes)
    : granule_(granule_bytes), total_(total_bytes), file_(memfd_create("fake_gpu", 0)) {
  COPPICE_CHECK(file_ >= 0);
}

FakeMemory::~FakeMemory() {
  for (const auto& [at, bytes] : ranges_) munmap(reinterpret_cast<void*>(at), bytes);
  close(file_);
}

Result FakeMemory::reserve(uintptr_t* at, size_t bytes) {
  if (bytes % granule_ != 0) return Result::kInvalidValue;
  const size_t mapped = bytes + granule_;  // of which the part that starts at a multiple of a granule is kept
  void* const range = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return Result::kInvalidValue;
  const auto start = reinterpret_cast<uintptr_t>(range);
  *at = round_up(start, granule_);
  if (*at > start) munmap(range, *at - start);
  if (start + mapped > *at + bytes)
    munmap(reinterpret_cast<void*>(*at + bytes), start + mapped - *at - bytes);
  ranges_[*at] = bytes;
  return Result::kSuccess;
}

Result FakeMemory::free_range(uintptr_t at, size_t bytes, std::string& problem) {
  const auto range = ranges_.find(at);
  if (range == ranges_.end() || range->second != bytes)
    return refuse(problem, "frees addresses never reserved");
  const auto mapped = mappings_.lower_bound(at);
  if (mapped != mappings_.end() && mapped->first < at + bytes)
    return refuse(problem, "frees addresses that are mapped");
  munmap(reinterpret_cast<void*>(at), bytes);
  ranges_.erase(range);
  return Result::kSuccess;
}

Result FakeMemory::create(uint64_t* handle, size_t bytes, std::string& problem) {
  if (bytes == 0 || bytes % granule_ != 0)
    return refuse(problem, "creates memory that is no multiple of a granule");
  if (used_ + bytes > total_) return Result::kOutOfMemory;
  const std::vector<unsigned char> garbage(bytes, kGarbage);
  COPPICE_CHECK(pwrite(file_, garbage.data(), bytes, static_cast<off_t>(file_bytes_)) ==
                static_cast<ssize_t>(bytes));
  *handle = next_handle_++;
  memories_[*handle] = {file_bytes_, bytes};
  file_bytes_ += bytes;
  used_ += bytes;
  return Result::kSuccess;
}

void FakeMemory::forget_if_unused(uint64_t handle) {
  const Physical& memory = memories_.at(handle);
  if (memory.is_mapped || !memory.is_released) return;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(memory.offset),
            static_cast<off_t>(memory.bytes));
  used_ -= memory.bytes;
  memories_.erase(handle);
}

Result FakeMemory::release(uint64_t handle, std::string& problem) {
  const auto memory = memories_.find(handle);
  if (memory == memories_.end() || memory->second.is_released)
    return refuse(problem, "releases memory twice");
  memory->second.is_released = true;
  forget_if_unused(handle);
  return Result::kSuccess;
}

Result FakeMemory::map(uintptr_t at, size_t bytes, uint64_t handle, std::string& problem) {
  const auto memory = memories_.find(handle);
  if (memory == memories_.end() || memory->second.is_released || memory->second.bytes != bytes)
    return refuse(problem, "maps memory that is not there, or of another size");
  if (memory->second.is_mapped) return refuse(problem, "maps memory that is mapped elsewhere");
  if (at % granule_ != 0 || !is_reserved(at) || !is_reserved(at + bytes - 1))
    return refuse(problem, "maps memory at addresses that are not reserved");
  auto behind = mappings_.lower_bound(at);
  if (behind != mappings_.end() && behind->first < at + bytes) return refuse(problem, "maps addresses twice");
  if (behind != mappings_.begin() && (--behind)->first + behind->second.bytes > at)
    return refuse(problem, "maps addresses twice");
  void* const to = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file_,
                        static_cast<off_t>(memory->second.offset));
  COPPICE_CHECK(to != MAP_FAILED);
  memory->second.is_mapped = true;
  mappings_[at] = {bytes, handle};
  return Result::kSuccess;
}

Result FakeMemory::unmap(uintptr_t at, size_t bytes, std::string& problem) {
  const auto mapping = mappings_.find(at);
  if (mapping == mappings_.end() || mapping->second.bytes != bytes)
    return refuse(problem, "unmaps what is not mapped as a whole");
  void* const to = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  COPPICE_CHECK(to != MAP_FAILED);
  const uint64_t handle = mapping->second.handle;
  mappings_.erase(mapping);
  memories_.at(handle).is_mapped = false;
  forget_if_unused(handle);
  return Result::kSuccess;
}

Result FakeMemory::allow(uintptr_t at, size_t bytes, std::string& problem) {
  const auto mapping = mappings_.find(at);
  if (mapping == mappings_.end() || mapping->second.bytes != bytes)
    return refuse(problem, "sets the access of what is not mapped");
  mapping->second.is_accessible = true;
  return Result::kSuccess;
}

bool FakeMemory::is_reserved(uintptr_t at) const {
  auto behind = ranges_.upper_bound(at);
  return behind != ranges_.begin() && at - (--behind)->first < behind->second;
}

bool FakeMemory::is_accessible(uintptr_t at, size_t bytes) const {
  const uintptr_t end = at + bytes;
  auto mapping = mappings_.upper_bound(at);
  if (mapping == mappings_.begin()) return false;
  for (--mapping; at < end; ++mapping) {
    if (mapping == mappings_.end() || mapping->first > at || mapping->first + mapping->second.bytes <= at ||
        !mapping->second.is_accessible)
      return false;
    at = mapping->first + mapping->second.bytes;
  }
  return true;
}

void FakeMemory::protect(bool is_accessible) {
  for (const auto& [at, mapping] : mappings_) {
    if (mapping.is_accessible)
      mprotect(reinterpret_cast<void*>(at), mapping.bytes,
               is_accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

std::string FakeMemory::leaks() const {
  std::string text;
  if (!mappings_.empty()) text += fmt::format("{} mappings are left\n", mappings_.size());
  if (!memories_.empty()) text += fmt::format("{} allocations are left\n", memories_.size());
  if (!ranges_.empty()) text += fmt::format("{} reserved ranges are left\n", ranges_.size());
  return text;
}

}  // namespace coppice::fake
