#include "gpu/simt/views.h"

#include <algorithm>
#include <cstring>

// A line may hold other objects' bytes and bytes of none, which sanitizers would report.
#if defined(__GNUC__)
#define COPPICE_UNCHECKED __attribute__((noinline, no_sanitize("address", "thread", "undefined")))
#endif

namespace coppice::simt {
namespace {

using Word = volatile uint64_t __attribute__((may_alias));
constexpr uint32_t kMaxLines = 512;
constexpr uint32_t kTableSize = 2 * kMaxLines;

uint64_t bits(size_t first, size_t count) {
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

uint32_t home_of(uintptr_t line) {
  return static_cast<uint32_t>((line >> 6) * 0x9e3779b97f4a7c15 >> 32) % kTableSize;
}

COPPICE_UNCHECKED void read_words(uintptr_t from, unsigned char* to) {
  for (size_t i = 0; i < 64; i += 8) {
    *reinterpret_cast<Word*>(to + i) = *reinterpret_cast<const Word*>(from + i);
  }
}

COPPICE_UNCHECKED void write_bytes(uintptr_t to, const unsigned char* from, uint64_t mask) {
  for (size_t i = 0; i < 64; i += 8, mask >>= 8) {
    if ((mask & 255) == 255) {
      *reinterpret_cast<Word*>(to + i) = *reinterpret_cast<const Word*>(from + i);
      continue;
    }
    for (size_t j = 0; j < 8; ++j) {
      if ((mask >> j & 1) != 0) *reinterpret_cast<volatile unsigned char*>(to + i + j) = from[i + j];
    }
  }
}

// Calls part(address, offset from the first, bytes) for what lies in each line.
template <class Part>
void for_each_line(uintptr_t address, size_t bytes, Part&& part) {
  for (size_t done = 0; done < bytes;) {
    const size_t n = std::min(bytes - done, 64 - (address + done) % 64);
    part(address + done, done, n);
    done += n;
  }
}

}  // namespace

void View::begin(uint64_t seed, bool weak) {
  random_ = Random(seed);
  weak_ = weak;
  capacity_ = 8u << (3 * random_.below(3));
  keep_one_in_ = 1 + random_.below(3);
  evict_one_in_ = 4u << (3 * random_.below(3));
  dirty_lines_ = 0;
  lines_.clear();
  lines_.reserve(kMaxLines);
  table_.assign(kTableSize, 0);
}

void View::load(const void* address, void* to, size_t bytes) {
  if (!weak_) {
    std::memcpy(to, address, bytes);
    return;
  }
  for_each_line(reinterpret_cast<uintptr_t>(address), bytes, [&](uintptr_t at, size_t offset, size_t n) {
    load_part(at, static_cast<unsigned char*>(to) + offset, n);
  });
}

bool View::store(void* address, const void* from, size_t bytes) {
  if (!weak_) {
    const bool changed = std::memcmp(address, from, bytes) != 0;
    std::memcpy(address, from, bytes);
    return changed;
  }
  bool changed = false;
  for_each_line(reinterpret_cast<uintptr_t>(address), bytes, [&](uintptr_t at, size_t offset, size_t n) {
    changed |= store_part(at, static_cast<const unsigned char*>(from) + offset, n);
  });
  if (random_.one_in(evict_one_in_)) drop(random_.below(static_cast<uint32_t>(lines_.size())));
  return changed;
}

void View::load_part(uintptr_t address, unsigned char* to, size_t bytes) {
  const size_t first = address % kLineBytes;
  Line* line = get(address - first);
  const uint64_t wanted = bits(first, bytes);
  const uint64_t has = line == nullptr ? 0 : line->valid & wanted;
  if (has == wanted) {
    std::memcpy(to, line->bytes + first, bytes);
    return;
  }
  alignas(8) unsigned char fresh[kLineBytes];
  read_words(address - first, fresh);
  if (line != nullptr) {
    for (size_t i = 0; i < kLineBytes; ++i) {
      if ((line->valid >> i & 1) != 0) fresh[i] = line->bytes[i];
    }
  }
  std::memcpy(to, fresh + first, bytes);
  if (!random_.one_in(keep_one_in_)) return;
  if (line == nullptr) line = &make(address - first);
  std::memcpy(line->bytes, fresh, kLineBytes);
  line->valid = ~uint64_t{0};
}

bool View::store_part(uintptr_t address, const unsigned char* from, size_t bytes) {
  const size_t first = address % kLineBytes;
  Line* line = get(address - first);
  if (line == nullptr) line = &make(address - first);
  const uint64_t stored = bits(first, bytes);
  const bool has = (line->valid & stored) == stored;
  const bool changed =
      std::memcmp(has ? line->bytes + first : reinterpret_cast<const unsigned char*>(address), from, bytes) !=
      0;
  std::memcpy(line->bytes + first, from, bytes);
  if (line->dirty == 0) ++dirty_lines_;
  line->valid |= stored;
  line->dirty |= stored;
  return changed;
}

void View::settle(const void* address, size_t bytes) {
  if (lines_.empty()) return;
  for_each_line(reinterpret_cast<uintptr_t>(address), bytes, [&](uintptr_t at, size_t, size_t) {
    if (Line* line = get(at - at % kLineBytes)) drop(static_cast<uint32_t>(line - lines_.data()));
  });
}

void View::release() {
  if (dirty_lines_ == 0) return;
  for (Line& line : lines_) write_back(line);
}

void View::acquire() {
  if (lines_.empty()) return;
  // Stores may reach memory at any time: both ways must be seen, and those that stay cost a scan each time.
  if (dirty_lines_ == 0 || random_.one_in(2)) return end();
  for (uint32_t i = 0; i < lines_.size();) {
    lines_[i].valid = lines_[i].dirty;
    if (lines_[i].dirty == 0) {
      drop(i);
    } else {
      ++i;
    }
  }
}

void View::end() {
  release();
  std::fill(table_.begin(), table_.end(), 0);
  lines_.clear();
}

void View::write_back(Line& line) {
  if (line.dirty == 0) return;
  write_bytes(line.address, line.bytes, line.dirty);
  line.dirty = 0;
  --dirty_lines_;
}

uint32_t View::find(uintptr_t line) const {
  uint32_t at = home_of(line);
  while (table_[at] != 0 && lines_[table_[at] - 1].address != line) at = (at + 1) % kTableSize;
  return at;
}

View::Line* View::get(uintptr_t line) {
  if (lines_.empty()) return nullptr;
  const uint32_t entry = table_[find(line)];
  return entry == 0 ? nullptr : &lines_[entry - 1];
}

View::Line& View::make(uintptr_t line) {
  if (lines_.size() == capacity_) drop(random_.below(capacity_));
  lines_.push_back({line, 0, 0, {}});
  const uint32_t at = find(line);
  table_[at] = static_cast<uint16_t>(lines_.size());
  return lines_.back();
}

void View::drop(uint32_t index) {
  write_back(lines_[index]);
  uint32_t hole = find(lines_[index].address);
  if (index + 1 != lines_.size()) {
    table_[find(lines_.back().address)] = static_cast<uint16_t>(index + 1);
    lines_[index] = lines_.back();
  }
  lines_.pop_back();
  // Whoever was pushed on by the one that left moves back, so that searches may end at an empty entry.
  for (uint32_t at = (hole + 1) % kTableSize; table_[at] != 0; at = (at + 1) % kTableSize) {
    const uint32_t home = home_of(lines_[table_[at] - 1].address);
    if ((at - home) % kTableSize < (at - hole) % kTableSize) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = 0;
}

}  // namespace coppice::simt
