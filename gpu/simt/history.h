// Keeps the values that a launch wrote to memory, newest last, for each 8 aligned bytes of it: what a load
// may still see.
//
// Memory itself has the newest value. Memory that was not written in this launch has no history: its own
// value is the only one. Histories are bounded in length and number, and what leaves can no longer be seen
// by anybody, which only makes the machine stronger; the views that it carried stay with what is left.
// Histories leave in the order in which they came, never by address, so that a seed means the same in
// every process.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gpu/simt/clocks.h"

namespace coppice::simt {

inline constexpr uint32_t kNoThread = UINT32_MAX;
inline constexpr size_t kUnitBytes = 8;

// This is one store that reached memory.
struct Message {
  uint64_t value = 0;           // of all 8 bytes from then on
  uint32_t writer = kNoThread;  // nobody: what everyone knows of
  uint32_t event = 0;           // the writer's
  uint32_t number = 0;          // of the history's messages
  uint8_t bytes = 0xff;         // those that it wrote, a bit each
  View view;                    // what a thread that acquires it comes to know
};

// Says how far a thread has read in one half of a history, so that it never goes back.
struct Floor {
  uint32_t number : 31 = 0;
  uint32_t was_relaxed : 1 = 0;  // a later acquire there makes known what was read before
};

class History {
 public:
  static constexpr uint32_t kDepth = 8;

  void begin(uintptr_t address, uint64_t value, View view);
  uintptr_t address() const { return address_; }
  uint32_t size() const { return size_; }
  // Index 0 is the oldest value that anybody may see.
  Message& operator[](uint32_t i) { return messages_[i]; }
  Message& newest() { return messages_[size_ - 1]; }
  // Returns it, with its number.
  Message& add(Message message);
  // Returns the floor by half, 0 or 1; null where the thread has read nothing with order.
  Floor* floor(uint32_t thread, uint32_t half) {
    return floors_.empty() ? nullptr : &floors_[2 * size_t{thread} + half];
  }
  void drop();  // its memory
  Floor& make_floor(uint32_t thread, uint32_t half, size_t threads);
  bool has_view() const;
  View all_views() const;

 private:
  uintptr_t address_ = 0;
  uint32_t size_ = 0;
  uint32_t next_number_ = 0;
  std::array<Message, kDepth> messages_;
  std::vector<Floor> floors_;  // [threads][2], or none
};

// Holds the histories of a launch, by address.
class Histories {
 public:
  void begin(uint32_t capacity);
  bool empty() const { return used_ == 0; }
  History* find(uintptr_t address);
  // Makes a history for an address that has none, whose value so far is `value`. Others may leave:
  // references to them end.
  History& make(uintptr_t address, uint64_t value);
  // Returns what the messages carried whose histories left.
  const View& of_gone() const { return of_gone_; }
  void clear();

 private:
  static constexpr uint32_t kTableSize = 8192;
  uint32_t entry_of(uintptr_t address) const;  // its own, or the empty one where it would stand
  void drop_one();
  void unlink(uint32_t index);

  uint32_t capacity_ = 1;
  uint32_t used_ = 0;
  std::vector<History> histories_;
  std::vector<uint32_t> free_;
  std::deque<uint32_t> order_;                                       // in which they leave
  std::vector<uint16_t> table_ = std::vector<uint16_t>(kTableSize);  // open addressing: index + 1, or 0
  View of_gone_;
};

}  // namespace coppice::simt
