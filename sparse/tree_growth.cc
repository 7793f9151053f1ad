// Trees' growth (see tree_growth.h).
#include "sparse/tree_growth.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/host_access.h"
#include "sparse/tree_move.h"

namespace coppice {

using device::AllocatorState;
using device::NodeKind;
using device::TreeState;

namespace {

// Returns how many of the cells the free list does not have.
uint64_t fresh_of(const AllocatorState& a, uint64_t cells) {
  const uint64_t left = a.free_size - a.free_used;
  return cells > left ? cells - left : 0;
}

}  // namespace

TreeGrowth::TreeGrowth(TreeMemory& memory, LoopLists& lists)
    : layout_(memory.layout()), memory_(memory), lists_(lists) {}

std::string TreeGrowth::path_of(uint32_t allocator) const {
  return layout_.path(layout_.allocator_nodes()[allocator]);
}

std::string TreeGrowth::limit_text(uint32_t allocator) const {
  return memory_.is_cut(allocator) ? "the process had no addresses for more (ulimit -v)"
                                   : fmt::format("TreeOptions::max_bytes is {}", memory_.max_bytes());
}

void TreeGrowth::throw_full(uint32_t allocator, std::string_view who, const std::string& what) const {
  throw Error(ErrorCode::kOutOfMemory, fmt::format("{}: {} is full: {}", who, path_of(allocator), what));
}

void TreeGrowth::grow(InStream& s, const AllocatorState& a, uint32_t allocator, Wish wish,
                      std::string_view who) {
  const uint64_t largest = memory_.largest_capacity(a, allocator);
  if (wish.least > largest) {
    const uint64_t now = memory_.device().commits_on_touch() ? largest : a.capacity;
    throw_full(allocator, who,
               fmt::format("{} cells of {} bytes are all it may have, and at least {} more are needed; {}",
                           largest - 1, a.cell_bytes, wish.least - now, limit_text(allocator)));
  }
  if (!memory_.has_full_ranges()) {
    take_full_ranges(s, who);  // which may have turned out smaller
    return grow(s, wait_read(s, memory_.allocator_state(allocator)), allocator, wish, who);
  }
  if (wish.least <= a.capacity) return;
  const uint64_t cells = std::min(largest, std::max({wish.least, wish.wished, 2 * uint64_t{a.capacity}}));
  memory_.grow(allocator, cells);
  write_value(s, &memory_.allocator_state(allocator)->capacity, static_cast<uint32_t>(cells));
  log_debug("{} grows to {} cells", path_of(allocator), cells - 1);
}

// A launch that is repeated asks again for what it lacks then.
TreeGrowth::Wish TreeGrowth::wish_of_shortage(const AllocatorState& a) const {
  const uint64_t capacity = a.capacity, shortage = a.shortage;
  // The move to full ranges, which is what growth is there, gives all that there is.
  if (memory_.device().commits_on_touch()) return {capacity, capacity};
  // Threads that want one cell are all counted, so the shortage may be far more than what is missing; growing
  // by a factor keeps the number of repeats logarithmic.
  return {capacity + 1, std::clamp(capacity + shortage, 2 * capacity, 8 * capacity)};
}

void TreeGrowth::refuse_repetition(uint32_t allocator, uint64_t capacity, std::string_view who,
                                   std::string_view why_not) const {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{}: {} ran out of its {} cells, and the kernel cannot be repeated, since it {}; "
                          "make room before it by reserve(n) of that node",
                          who, path_of(allocator), capacity - 1, why_not));
}

// A tree with its full ranges has nothing to grow to.
void TreeGrowth::require_growing(const TreeState& now, uint32_t allocator, std::string_view who) const {
  if (!memory_.device().commits_on_touch() || !memory_.has_full_ranges()) return;
  const AllocatorState& a = now.allocators[allocator];
  throw_full(allocator, who,
             fmt::format("its {} cells of {} bytes are all it may have; {}", handed_out(a) - 1, a.cell_bytes,
                         limit_text(allocator)));
}

bool TreeGrowth::resolve_shortage(InStream& s, const TreeState& now, std::string_view kernel,
                                  std::string_view why_not) {
  // Shortages count, not the status: that names one tree, and several may be short.
  uint32_t i = 0;
  while (i < layout_.num_allocators() && now.allocators[i].shortage == 0) ++i;
  if (i == layout_.num_allocators()) return false;
  uint32_t* const status = &memory_.device().context().status;
  if (is_shortage(status_of(wait_read(s, status)))) write_value(s, status, 0);
  const std::string who = fmt::format("kernel {}", kernel);
  require_growing(now, i, who);
  COPPICE_CHECK(why_not.empty() || !memory_.device().commits_on_touch(),
                "a launch that must not be repeated began without the full ranges");
  // Every allocator that was short in this round grows at once.
  for (; i < layout_.num_allocators(); ++i) {
    const AllocatorState& a = now.allocators[i];
    if (a.shortage == 0) continue;
    write_value(s, &memory_.allocator_state(i)->shortage, 0);
    if (!why_not.empty() && memory_.largest_capacity(a, i) > a.capacity)
      refuse_repetition(i, a.capacity, who, why_not);
    grow(s, a, i, wish_of_shortage(a), who);
  }
  return true;
}

void TreeGrowth::take_full_ranges(InStream& s, std::string_view who) {
  if (memory_.has_full_ranges()) return;
  const std::string& name = layout_.options().name;
  try {
    memory_.reserve_full_ranges();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: the tree '{}' cannot grow: {}", who, name, error.message()));
  }
  move_to_full_ranges(s, memory_, lists_);
  log_debug("the tree '{}' has its full ranges", name);
}

void TreeGrowth::reserve_cells(InStream& s, uint32_t node, uint64_t cells) {
  const NodeKind kind = layout_.node(node).kind;
  if (node == 0 || (kind != NodeKind::kPointer && kind != NodeKind::kDynamic)) {
    throw Error(ErrorCode::kInvalidArgument,
                layout_.path(node) + " has no cells of its own: reserve() is for pointer and dynamic nodes");
  }
  const uint32_t index = layout_.node(node).allocator;
  const AllocatorState a = wait_read(s, memory_.allocator_state(index));
  if (cells < a.capacity) return;
  const uint64_t with_ambient = std::max(cells, cells + 1);  // of 2^64 - 1, too
  grow(s, a, index, {with_ambient, with_ambient}, fmt::format("reserve({})", cells));
}

AllocatorState TreeGrowth::make_cells_free(InStream& s, uint32_t index, uint64_t wanted,
                                           std::string_view who) {
  AllocatorState* const in_memory = memory_.allocator_state(index);
  AllocatorState a = wait_read(s, in_memory);
  // Threads of a launch that asked at once may have counted past the end of the free list.
  if (a.free_used > a.free_size) write_value(s, &in_memory->free_used, a.free_used = a.free_size);
  const uint64_t fresh = fresh_of(a, wanted), cells = a.num_cells + fresh;
  if (cells > a.capacity) {
    grow(s, a, index, {cells, cells}, who);
    a = wait_read(s, in_memory);  // it may lie elsewhere now
  }
  if (memory_.shares_limit()) take_bytes(s, index, fresh, who);
  return a;
}

void TreeGrowth::take_cells(InStream& s, const AllocatorState& before, uint32_t index, uint64_t cells) {
  AllocatorState* const in_memory = memory_.allocator_state(index);
  const uint64_t fresh = fresh_of(before, cells);
  write_value(s, &in_memory->free_used, before.free_used + static_cast<uint32_t>(cells - fresh));
  write_value(s, &in_memory->num_cells, before.num_cells + static_cast<uint32_t>(fresh));
}

// Counts `cells` of an allocator towards the tree's limit. Errors: kOutOfMemory; then nothing is counted.
void TreeGrowth::take_bytes(InStream& s, uint32_t index, uint64_t cells, std::string_view who) {
  const uint64_t bytes = layout_.node(layout_.allocator_nodes()[index]).cell_bytes * cells;
  const uint64_t most = memory_.max_bytes(), taken = wait_read(s, &memory_.state()->fresh_bytes);
  if (taken + bytes > most) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{}: {}: {} more cells take {} bytes, and {} are left of the tree's {} "
                            "(TreeOptions::max_bytes)",
                            who, path_of(index), cells, bytes, most - taken, most));
  }
  write_value(s, &memory_.state()->fresh_bytes, taken + bytes);
}

}  // namespace coppice
