// The move of trees to their full ranges (see tree_move.h).
#include "sparse/tree_move.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/host_access.h"

namespace coppice {

using device::AllocatorState;
using device::CellHeader;
using device::LoopElement;
using device::TreeState;

namespace {

// Describes memory that was moved, and by how much.
struct AddressMove {
  uint64_t begin, end;  // addresses before
  uint64_t distance;    // modulo 2^64
};
// Holds elements of a list whose containers were moved, and where they are to be written.
struct MovedElements {
  device::LoopElement* to;
  std::vector<device::LoopElement> elements;
};

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

std::vector<AddressMove> copy_cells(InStream& s, const TreeMemory& memory, const TreeState& now) {
  std::vector<AddressMove> moves;
  for (uint32_t a = 0; a < memory.allocators().size(); ++a) {
    const AllocatorStorage &from = memory.allocators()[a], &to = memory.full_ranges()[a];
    const uint64_t bytes = device::handed_out(now.allocators[a]) * now.allocators[a].cell_bytes;
    s.wait_copy(to.cells->data(), from.cells->data(), bytes);
    s.wait_copy(to.free_list->data(), from.free_list->data(), from.free_list->size_bytes());
    s.wait_copy(to.recycled_list->data(), from.recycled_list->data(), from.recycled_list->size_bytes());
    const auto begin = reinterpret_cast<uint64_t>(from.cells->data());
    moves.push_back({begin, begin + bytes, reinterpret_cast<uint64_t>(to.cells->data()) - begin});
  }
  return moves;
}

void find_moved(InStream& s, const LoopList& list, const std::vector<AddressMove>& moves,
                std::vector<MovedElements>& found) {
  auto* const in_memory = list.elements->as<LoopElement>();
  std::vector<LoopElement> elements = wait_read(s, in_memory, list.items);
  bool has_moved = false;
  for (LoopElement& element : elements) has_moved |= follow(moves, element.container);
  if (has_moved) found.push_back({in_memory, std::move(elements)});
}

// Moves the slots that its cells' headers lead to; those of recycled cells, too, which are looked at once
// more.
void move_slots(InStream& s, const AllocatorState& a, const AllocatorStorage& now,
                const std::vector<AddressMove>& moves) {
  for (uint64_t cell = 1; cell < device::handed_out(a); ++cell) {
    auto* const header = reinterpret_cast<CellHeader*>(now.cells->data() + cell * a.cell_bytes);
    uint32_t* slot = wait_read(s, &header->slot);
    if (follow(moves, slot)) write_value(s, &header->slot, slot);
  }
}

void move_state(InStream& s, const TreeMemory& memory, uint32_t allocator, AllocatorState moved) {
  const AllocatorStorage& to = memory.full_ranges()[allocator];
  moved.cells = to.cells->as<unsigned char>();
  moved.free_list = to.free_list->as<uint32_t>();
  moved.recycled_list = to.recycled_list->as<uint32_t>();
  moved.capacity = static_cast<uint32_t>(to.capacity);
  write_value(s, memory.allocator_state(allocator), moved);
}

}  // namespace

void move_to_full_ranges(InStream& s, TreeMemory& memory, const LoopLists& lists) {
  const TreeState now = wait_read(s, memory.state());
  const std::vector<AddressMove> moves = copy_cells(s, memory, now);
  std::vector<MovedElements> moved_elements;
  for (const std::unique_ptr<LoopList>& list : lists.all()) {
    if (list && list->elements) find_moved(s, *list, moves, moved_elements);
  }
  const auto allocators = static_cast<uint32_t>(memory.allocators().size());
  for (uint32_t a = 0; a < allocators; ++a) move_slots(s, now.allocators[a], memory.full_ranges()[a], moves);
  for (uint32_t a = 0; a < allocators; ++a) move_state(s, memory, a, now.allocators[a]);
  for (const MovedElements& list : moved_elements)
    s.wait_copy(list.to, list.elements.data(), list.elements.size() * sizeof(LoopElement));
  memory.adopt_full_ranges();
}

}  // namespace coppice
