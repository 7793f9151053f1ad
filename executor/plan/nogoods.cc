// Keys of states in an open hash table (see nogoods.h).
#include "executor/plan/nogoods.h"

#include <utility>

namespace coppice::plan {
namespace {

constexpr size_t kMost = size_t{1} << 19;

// The finalizer of SplitMix64, which maps 64 bits to 64 bits.
uint64_t mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

void Nogoods::Key::add(uint64_t item, uint64_t value) {
  const uint64_t hash = mixed(value + 0x9e3779b97f4a7c15 * (item + 1));
  first += hash, second += mixed(hash ^ 0x5851f42d4c957f2d) | 1;
}

size_t Nogoods::find(const Key& key) const {
  size_t at = key.first & (slots_.size() - 1);
  while (slots_[at] != Key() && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

bool Nogoods::contains(const Key& key) const { return size_ > 0 && slots_[find(key)] == key; }

void Nogoods::insert(const Key& key) {
  if (size_ >= kMost || contains(key)) return;
  if (2 * (size_ + 1) > slots_.size()) {
    const std::vector<Key> old =
        std::exchange(slots_, std::vector<Key>(slots_.empty() ? 1024 : 2 * slots_.size()));
    for (const Key& k : old) {
      if (k != Key()) slots_[find(k)] = k;
    }
  }
  slots_[find(key)] = key;
  ++size_;
}

void Nogoods::clear() {
  slots_.clear();
  size_ = 0;
}

}  // namespace coppice::plan
