// Returning memory that no active cell needs to the system (Tree::trim; see tree_memory.h).
//
// Cells whose numbers are in a free list are zero and stay so: a page of theirs that is dropped reads as
// zero. Behind the last cell in use everything is given back, and the allocator hands those cells out
// again as if for the first time.
#include <algorithm>
#include <vector>

#include "gpu/host_access.h"
#include "sparse/tree_memory.h"

namespace coppice {

using device::AllocatorState;

void TreeMemory::trim(InStream& s) {
  const device::TreeState now = wait_read_state(s);
  for (uint32_t a = 0; a < allocators_.size(); ++a) trim_allocator(s, now.allocators[a], a);
  if (shares_limit_) write_value(s, &state()->fresh_bytes, used_bytes(wait_read_state(s)));
}

void TreeMemory::trim_allocator(InStream& s, AllocatorState a, uint32_t index) {
  AllocatorStorage& storage = allocators_[index];
  const uint32_t handed_out = device::handed_out(a), used = std::min(a.free_used, a.free_size);
  std::vector<uint32_t> free_cells = wait_read(s, a.free_list + used, a.free_size - used);
  std::vector<bool> is_free(handed_out);
  for (const uint32_t cell : free_cells) is_free[cell] = true;
  uint32_t end = handed_out;  // cell 0 is never free
  while (is_free[end - 1]) --end;
  for (uint32_t first = 1; first < end;) {
    uint32_t last = first;
    while (is_free[last]) ++last;  // ends at end - 1, which is in use
    if (last > first) storage.cells->discard(first * a.cell_bytes, (last - first) * a.cell_bytes);
    first = last + 1;
  }
  std::erase_if(free_cells, [end](uint32_t cell) { return cell >= end; });
  if (!free_cells.empty()) s.wait_copy(a.free_list, free_cells.data(), free_cells.size() * sizeof(uint32_t));
  a.free_size = static_cast<uint32_t>(free_cells.size()), a.free_used = 0, a.num_cells = end;
  if (device_.commits_on_touch()) {
    write_value(s, &state()->allocators[index], a);
    storage.cells->discard(end * a.cell_bytes, (handed_out - end) * a.cell_bytes);
    storage.free_list->discard(free_cells.size() * sizeof(uint32_t),
                               (handed_out - free_cells.size()) * sizeof(uint32_t));
    storage.recycled_list->discard(0, handed_out * sizeof(uint32_t));
    return;
  }
  // It keeps no less than a new tree has, since a launch that cannot be repeated needs some room.
  a.capacity =
      static_cast<uint32_t>(std::min<uint64_t>(a.capacity, std::max<uint64_t>(end, first_cells(index))));
  write_value(s, &state()->allocators[index], a);
  storage.capacity = a.capacity;
  storage.cells->discard(end * a.cell_bytes, (a.capacity - end) * a.cell_bytes);
  storage.cells->shrink(a.capacity * a.cell_bytes);
  storage.free_list->shrink(a.capacity * sizeof(uint32_t));
  storage.recycled_list->shrink(a.capacity * sizeof(uint32_t));
}

}  // namespace coppice
