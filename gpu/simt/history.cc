#include "gpu/simt/history.h"

#include <algorithm>
#include <utility>

namespace coppice::simt {
namespace {

// Histories that carry a release's view stay for some turns: without them it would go to everyone.
constexpr uint32_t kTurnsKept = 4;

uint32_t home_of(uintptr_t address) {
  return static_cast<uint32_t>((address >> 3) * 0x9e3779b97f4a7c15 >> 51);
}

}  // namespace

void History::begin(uintptr_t address, uint64_t value, View view) {
  address_ = address;
  size_ = 1;
  next_number_ = 1;
  messages_[0] = {.value = value, .number = 0, .view = std::move(view)};
}

void History::drop() {
  for (uint32_t i = 0; i < size_; ++i) messages_[i].view = nullptr;
  std::vector<Floor>().swap(floors_);
}

Message& History::add(Message message) {
  if (size_ == kDepth) {
    Message& base = messages_[1];
    base.view = both(messages_[0].view, base.view);
    base.writer = kNoThread;
    base.bytes = 0xff;
    std::move(messages_.begin() + 1, messages_.end(), messages_.begin());
    --size_;
  }
  message.number = next_number_++;
  messages_[size_] = std::move(message);
  return messages_[size_++];
}

Floor& History::make_floor(uint32_t thread, uint32_t half, size_t threads) {
  if (floors_.empty()) floors_.resize(2 * threads);
  return floors_[2 * size_t{thread} + half];
}

bool History::has_view() const {
  return std::any_of(messages_.begin(), messages_.begin() + size_,
                     [](const Message& m) { return m.view != nullptr; });
}

View History::all_views() const {
  View all;
  for (uint32_t i = 0; i < size_; ++i) all = both(all, messages_[i].view);
  return all;
}

void Histories::begin(uint32_t capacity) {
  clear();
  capacity_ = capacity;
}

uint32_t Histories::entry_of(uintptr_t address) const {
  uint32_t at = home_of(address);
  while (table_[at] != 0 && histories_[table_[at] - 1u].address() != address) at = (at + 1) % kTableSize;
  return at;
}

History* Histories::find(uintptr_t address) {
  if (used_ == 0) return nullptr;
  const uint16_t entry = table_[entry_of(address)];
  return entry == 0 ? nullptr : &histories_[entry - 1u];
}

History& Histories::make(uintptr_t address, uint64_t value) {
  if (used_ == capacity_) drop_one();
  if (free_.empty()) {
    histories_.emplace_back();
    free_.push_back(static_cast<uint32_t>(histories_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  History& history = histories_[index];
  history.begin(address, value, of_gone_);
  table_[entry_of(address)] = static_cast<uint16_t>(index + 1);
  order_.push_back(index);
  ++used_;
  return history;
}

void Histories::drop_one() {
  for (uint32_t turn = 0; turn < kTurnsKept && histories_[order_.front()].has_view(); ++turn) {
    order_.push_back(order_.front());
    order_.pop_front();
  }
  const uint32_t index = order_.front();
  order_.pop_front();
  of_gone_ = both(of_gone_, histories_[index].all_views());
  unlink(index);
  histories_[index].drop();
  free_.push_back(index);
  --used_;
}

// Whoever was pushed on by the one that left moves back, so that searches may end at an empty entry.
void Histories::unlink(uint32_t index) {
  uint32_t hole = entry_of(histories_[index].address());
  for (uint32_t at = (hole + 1) % kTableSize; table_[at] != 0; at = (at + 1) % kTableSize) {
    const uint32_t home = home_of(histories_[table_[at] - 1u].address());
    if ((at - home) % kTableSize < (at - hole) % kTableSize) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = 0;
}

void Histories::clear() {
  of_gone_ = nullptr;
  if (used_ == 0) return;
  for (const uint32_t index : order_) {
    histories_[index].drop();
    free_.push_back(index);
  }
  order_.clear();
  used_ = 0;
  std::fill(table_.begin(), table_.end(), 0);
}

}  // namespace coppice::simt
