// States of a search that are known to lead nowhere, by 128 bits of their hash.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace coppice::plan {

class Nogoods {
 public:
  // Sums of hashes, so that the order of what a state consists of does not matter. That two states among
  // 10^8 have the same key has a chance of 10^-22.
  struct Key {
    uint64_t first = 0, second = 0;
    bool operator==(const Key&) const = default;
    void add(uint64_t item, uint64_t value);
  };

  bool contains(const Key& key) const;
  void insert(const Key& key);  // none beyond half a million, 16 MiB
  void clear();

 private:
  size_t find(const Key& key) const;  // where it is, or an empty slot

  std::vector<Key> slots_;  // a power of two; {0, 0} is empty
  size_t size_ = 0;
};

}  // namespace coppice::plan
