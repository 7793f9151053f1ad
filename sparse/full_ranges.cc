// The ranges of addresses that a tree's cells lie in (see tree_storage.h): small ones at first on a CPU,
// where a full range is all that an allocator may ever have, and the move to those.
//
// A tree moves once, with all its allocators, when one of them is to have more cells than its first range
// holds. Cells keep their numbers, so what changes is what has addresses: the allocators' states, the slots
// that cells' headers lead back to, and the containers in loops' lists. Nothing else keeps an address of a
// cell from one operation to the next.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::CellHeader;
using device::LoopElement;
using device::TreeState;

namespace {

// A tree's first ranges have this many bytes of cells at most, together and each: a buffer of the latter
// size takes no mapping.
constexpr uint64_t kFirstBytes = 512 << 10, kFirstBytesEach = 64 << 10;

// Changes an address to where it lies now; returns false where it lies where it was.
template <class T>
bool follow(const std::vector<AddressMove>& moves, T*& address) {
  const auto at = reinterpret_cast<uint64_t>(address);
  const auto move = std::find_if(moves.begin(), moves.end(),
                                 [at](const AddressMove& m) { return at >= m.begin && at < m.end; });
  if (move == moves.end()) return false;
  address = reinterpret_cast<T*>(at + move->distance);
  return true;
}

}  // namespace

// Returns how many cells an allocator has room for at first: the ambient one at least.
uint64_t TreeStorage::first_range_cells(uint32_t allocator) const {
  const uint64_t bytes = std::min(kFirstBytesEach, kFirstBytes / allocators_.size());
  const AllocatorStorage& storage = allocators_[allocator];
  return std::clamp<uint64_t>(bytes / nodes_[storage.node].cell_bytes, 1, storage.max_cells);
}

void TreeStorage::reserve_first_range(uint32_t allocator) {
  AllocatorStorage& storage = allocators_[allocator];
  const uint64_t cells = first_range_cells(allocator);
  storage.capacity = reserve_range(storage, cells);
  if (cells < storage.max_cells) has_full_ranges_ = false;
}

// Reserves memory for so many cells, all of which can be used.
uint64_t TreeStorage::reserve_range(AllocatorStorage& storage, uint64_t cells) const {
  const uint64_t bytes = cells * nodes_[storage.node].cell_bytes, list_bytes = cells * sizeof(uint32_t);
  storage.cells = device_->reserve(bytes, bytes);
  storage.free_list = device_->reserve(list_bytes, list_bytes);
  storage.recycled_list = device_->reserve(list_bytes, list_bytes);
  return cells;
}

// Reserves all that an allocator may ever have: no launch runs out of cells because the host has yet to
// make room. A system that promises no more than it has (its overcommit mode 2), or has few addresses
// left, refuses that; then it is as much as it allows.
AllocatorStorage TreeStorage::full_range(uint32_t allocator) const {
  AllocatorStorage full{.node = allocators_[allocator].node, .max_cells = allocators_[allocator].max_cells};
  const uint64_t least = std::min(full.max_cells, first_cells(allocator));
  for (;; full.max_cells = std::max(least, full.max_cells / 2)) {
    try {
      full.capacity = reserve_range(full, full.max_cells);
      return full;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory || full.max_cells <= least) throw;
    }
  }
}

void TreeStorage::reserve_full_ranges() {
  const std::lock_guard lock(full_mutex_);
  if (has_full_ranges() || !full_.empty()) return;
  std::vector<AllocatorStorage> full;
  for (uint32_t a = 0; a < allocators_.size(); ++a) full.push_back(full_range(a));
  full_ = std::move(full);
}

std::vector<AllocatorStorage> TreeStorage::storages_to_be() const {
  const std::lock_guard lock(full_mutex_);
  return full_.empty() ? allocators_ : full_;
}

void TreeStorage::take_full_ranges(InStream& s, std::string_view who) {
  if (has_full_ranges()) return;
  try {
    reserve_full_ranges();
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: the tree '{}' cannot grow: {}", who, options_.name, error.message()));
  }
  const TreeState now = wait_read(s, state());
  std::vector<AddressMove> moves;
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    const AllocatorStorage &from = allocators_[a], &to = full_[a];
    const uint64_t bytes = device::handed_out(now.allocators[a]) * now.allocators[a].cell_bytes;
    s.wait_copy(to.cells->data(), from.cells->data(), bytes);
    s.wait_copy(to.free_list->data(), from.free_list->data(), from.free_list->size_bytes());
    s.wait_copy(to.recycled_list->data(), from.recycled_list->data(), from.recycled_list->size_bytes());
    const auto begin = reinterpret_cast<uint64_t>(from.cells->data());
    moves.push_back({begin, begin + bytes, reinterpret_cast<uint64_t>(to.cells->data()) - begin});
  }
  // Whatever may fail comes before the first change of the tree's state.
  std::vector<MovedElements> moved_elements;
  for (const std::unique_ptr<LoopList>& list : lists_) {
    if (list && list->elements) find_moved(s, *list, moves, moved_elements);
  }
  for (uint32_t a = 0; a < allocators_.size(); ++a) move_slots(s, now.allocators[a], full_[a], moves);
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    AllocatorState moved = now.allocators[a];
    moved.cells = full_[a].cells->as<unsigned char>();
    moved.free_list = full_[a].free_list->as<uint32_t>();
    moved.recycled_list = full_[a].recycled_list->as<uint32_t>();
    moved.capacity = static_cast<uint32_t>(full_[a].capacity);
    write_value(s, &state()->allocators[a], moved);
  }
  for (const MovedElements& list : moved_elements)
    s.wait_copy(list.to, list.elements.data(), list.elements.size() * sizeof(LoopElement));
  ++generation_;
  {
    const std::lock_guard lock(full_mutex_);  // buffers() may be asked for on another thread
    allocators_ = std::move(full_);
    full_.clear();
    has_full_ranges_.store(true, std::memory_order_release);
  }
  log_debug("the tree '{}' has its full ranges", options_.name);
}

// Moves the slots that its cells' headers lead to; those of recycled cells, too, which are looked at once
// more.
void TreeStorage::move_slots(InStream& s, const AllocatorState& a, const AllocatorStorage& now,
                             const std::vector<AddressMove>& moves) {
  for (uint64_t cell = 1; cell < device::handed_out(a); ++cell) {
    auto* const header = reinterpret_cast<CellHeader*>(now.cells->data() + cell * a.cell_bytes);
    uint32_t* slot = wait_read(s, &header->slot);
    if (follow(moves, slot)) write_value(s, &header->slot, slot);
  }
}

void TreeStorage::find_moved(InStream& s, const LoopList& list, const std::vector<AddressMove>& moves,
                             std::vector<MovedElements>& found) {
  auto* const in_memory = list.elements->as<LoopElement>();
  std::vector<LoopElement> elements = wait_read(s, in_memory, list.items);
  bool has_moved = false;
  for (LoopElement& element : elements) has_moved |= follow(moves, element.container);
  if (has_moved) found.push_back({in_memory, std::move(elements)});
}

}  // namespace coppice
