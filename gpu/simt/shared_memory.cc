#include "gpu/simt/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace coppice::simt {
namespace {

constexpr std::align_val_t kAlignment{128};
constexpr int kPoison = 0xA5;

}  // namespace

void AlignedDelete::operator()(unsigned char* bytes) const { ::operator delete[](bytes, kAlignment); }

void SharedMemory::begin_launch(uint32_t bytes) {
  size_ = bytes;
  bytes_.reset(static_cast<unsigned char*>(::operator new[](bytes, kAlignment)));
  if (words_.size() < (bytes + 3) / 4) words_.resize((bytes + 3) / 4);
}

void SharedMemory::begin_block() {
  if (size_ == 0) return;
  std::memset(bytes_.get(), kPoison, size_);
  written_.assign(size_, false);
  pass_barrier();
}

bool SharedMemory::is_written(uintptr_t offset, size_t bytes) const {
  const size_t end = std::min<size_t>(offset + bytes, size_);
  for (size_t at = offset; at < end; ++at) {
    if (written_[at]) return true;
  }
  return bytes == 0;
}

void SharedMemory::note_written(uintptr_t offset, size_t bytes) {
  const size_t end = std::min<size_t>(offset + bytes, size_);
  for (size_t at = offset; at < end; ++at) written_[at] = true;
}

std::optional<SharedMemory::Use> SharedMemory::find_race(uintptr_t offset, size_t bytes, const Use& use,
                                                         const WeakMemory& memory) {
  const size_t end = std::min<size_t>(offset + bytes, size_);
  for (size_t at = offset; at < end;) {
    const size_t first = at % 4, n = std::min(4 - first, end - at);
    Word& word = words_[at / 4];
    at += n;
    if (word.interval != interval_) word.uses.clear();
    word.interval = interval_;
    const auto used = static_cast<uint8_t>(((1u << n) - 1) << first);
    Use* same = nullptr;
    for (Use& other : word.uses) {
      if (other.thread == use.thread) {
        if (other.access == use.access && other.bytes == used) same = &other;
        continue;
      }
      const bool can_race = other.access == Access::kLoad
                                ? use.access != Access::kLoad
                                : other.access == Access::kStore || use.access != Access::kAtomic;
      if (can_race && (other.bytes & used) != 0 && !memory.knows(use.thread, other.thread, other.event))
        return other;
    }
    if (same == nullptr) same = &word.uses.emplace_back();
    *same = use;
    same->bytes = used;
  }
  return {};
}

}  // namespace coppice::simt
