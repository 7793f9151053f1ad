// A tree's memory: what it reserves, how it grows, and what it takes (see tree_storage.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "dynamic_lists.kernels.h"
#include "gpu/kernel_store.h"
#include "loop_lists.kernels.h"
#include "runtime_collection.kernels.h"
#include "sparse/program.h"
#include "sparse/runtime_counts.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::LoopElement;
using device::NodeKind;
using device::TreeState;

namespace {

// One allocator reserves this much address space at most; cells beyond it are a shortage that cannot be
// grown away.
constexpr uint64_t kMaxAllocatorBytes = uint64_t{1} << 37;

}  // namespace

void TreeStorage::allocate_memory() {
  Device& d = *device_;
  uint64_t largest = 64;
  for (const NodeDescription& n : nodes_) largest = std::max(largest, n.container_bytes);
  // A refused data() reads its zeros as if they lay side by side.
  for (const FieldDescription& f : fields_) largest = std::max(largest, f.bytes * nodes_[f.node].num_cells);
  ambient_ = d.reserve(largest, largest);
  // A root of dense nodes alone is written everywhere, any other where the simulation is.
  const bool is_dense = std::all_of(nodes_.begin() + 1, nodes_.end(), [](const NodeDescription& n) {
    return n.parent != 0 || n.kind == NodeKind::kDense;
  });
  root_ = d.reserve(nodes_[0].container_bytes, nodes_[0].container_bytes,
                    is_dense ? Filling::kPacked : Filling::kScattered);
  std::vector<device::ListState> no_lists(nodes_.size(), {0, ~uint64_t{0}, ~uint64_t{0}});
  const size_t list_bytes = no_lists.size() * sizeof(device::ListState);
  // On a CPU every thread has cache lines of its own behind the lists' states.
  const uint64_t workers = d.commits_on_touch() ? static_cast<uint64_t>(d.threads()) : 0;
  const size_t workers_at = device::align_up(sizeof(TreeState) + list_bytes, alignof(device::WorkerCells));
  const size_t state_bytes = workers_at + workers * sizeof(device::WorkerCells);
  state_ = d.reserve(state_bytes, state_bytes);
  d.wait_copy(list_state(0), no_lists.data(), list_bytes);
  const size_t below_bytes = below_.size() * sizeof(uint32_t);
  device_below_ = d.reserve(below_bytes, below_bytes);
  if (below_bytes > 0) d.wait_copy(device_below_->data(), below_.data(), below_bytes);
  device_layouts_ =
      d.reserve(layouts_.size() * sizeof(device::NodeLayout), layouts_.size() * sizeof(device::NodeLayout));
  counts_ = d.reserve(sizeof(RuntimeCounts), sizeof(RuntimeCounts));
  d.wait_copy(device_layouts_->data(), layouts_.data(), layouts_.size() * sizeof(device::NodeLayout));
  TreeState s{};
  s.root = root_->as<unsigned char>();
  s.ambient = ambient_->as<unsigned char>();
  s.layouts = device_layouts_->as<device::NodeLayout>();
  s.below = device_below_->as<uint32_t>();
  s.workers = reinterpret_cast<device::WorkerCells*>(state_->as<unsigned char>() + workers_at);
  s.num_workers = workers;
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    AllocatorStorage& storage = allocators_[a];
    const NodeDescription& n = nodes_[storage.node];
    // There is room for as many cells as there are coordinates, as often as a launch may deactivate and
    // activate them anew before they are collected, and as the limits allow; one more is the ambient cell.
    // Only address space is spent here.
    double possible = 1;
    for (uint32_t p : path_nodes(storage.node)) {
      possible *=
          nodes_[p].kind == NodeKind::kDynamic
              ? static_cast<double>(nodes_[p].max_length) / static_cast<double>(nodes_[p].num_cells) + 1
              : static_cast<double>(nodes_[p].num_cells);
    }
    possible = std::max(2 * possible, 65536.0);
    const double limit =
        static_cast<double>(std::min(kMaxAllocatorBytes, max_bytes())) / static_cast<double>(n.cell_bytes);
    // Where not even one cell fits, there is the ambient one alone.
    const uint64_t least = limit < 1 ? 1 : 2;
    storage.max_cells = std::max(least, static_cast<uint64_t>(std::min({1 + possible, limit, 4294967000.0})));
    if (d.commits_on_touch()) {
      reserve_first_range(a);
    } else {
      storage.cells = d.reserve(storage.max_cells * n.cell_bytes, n.cell_bytes);
      storage.free_list = d.reserve(storage.max_cells * 4, 4);
      storage.recycled_list = d.reserve(storage.max_cells * 4, 4);
      grow_memory(a, std::min(storage.max_cells, first_cells(a)));
    }
    AllocatorState& allocator = s.allocators[a];
    allocator.cells = storage.cells->as<unsigned char>();
    allocator.free_list = storage.free_list->as<uint32_t>();
    allocator.recycled_list = storage.recycled_list->as<uint32_t>();
    allocator.cell_bytes = n.cell_bytes;
    allocator.num_cells = 1;
    allocator.capacity = static_cast<uint32_t>(storage.capacity);
  }
  shares_limit_ = is_limit_shared();
  if (shares_limit_) s.shared_limit = max_bytes(), s.fresh_bytes = used_bytes(s);
  d.wait_copy(state(), &s, sizeof s);
}

uint64_t TreeStorage::max_bytes() const {
  return options_.max_bytes != 0 ? options_.max_bytes : device_->memory_bytes();
}

// Returns the fewest cells that it has where memory is mapped before a launch: some 64 KiB, and one.
uint64_t TreeStorage::first_cells(uint32_t allocator) const {
  return 1 + std::max<uint64_t>(1, (64 << 10) / nodes_[allocators_[allocator].node].cell_bytes);
}

// Returns whether cells are counted across allocators, as these could take more than the tree may have.
bool TreeStorage::is_limit_shared() const {
  if (!device_->commits_on_touch()) return false;  // what is committed is counted by the host
  double together = 0;
  for (const AllocatorStorage& a : allocators_)
    together += static_cast<double>(a.max_cells) * static_cast<double>(nodes_[a.node].cell_bytes);
  return allocators_.size() > 1 && together > static_cast<double>(max_bytes());
}

TreeState TreeStorage::wait_read_state(InStream& s) {
  give_back_held_cells(s);
  return wait_read(s, state());
}

// Frees what workers still hold after a launch, before anybody counts.
void TreeStorage::give_back_held_cells(InStream& s) {
  if (!device_->commits_on_touch() || wait_read(s, &state()->holds_cells) == 0) return;
  run_now(s, program_, give_back_cells, 1, state(), static_cast<uint32_t>(allocators_.size()));
}

uint64_t TreeStorage::used_bytes(const TreeState& now) const {
  uint64_t bytes = 0;
  for (uint32_t a = 0; a < allocators_.size(); ++a)
    bytes += handed_out(now.allocators[a]) * now.allocators[a].cell_bytes;
  return bytes;
}

// Returns how many cells an allocator's memory is spent on.
uint64_t TreeStorage::paid_cells(const AllocatorState& a) const {
  return device_->commits_on_touch() ? handed_out(a) : a.capacity;
}

void TreeStorage::grow_memory(uint32_t a, uint64_t cells) {
  AllocatorStorage& storage = allocators_[a];
  storage.cells->grow(cells * nodes_[storage.node].cell_bytes);
  storage.free_list->grow(cells * 4);
  storage.recycled_list->grow(cells * 4);
  storage.capacity = cells;
  ++generation_;
}

uint64_t TreeStorage::committed_bytes() const {
  uint64_t bytes = 0;
  for (const AllocatorStorage& a : allocators_) bytes += a.cells->size_bytes();
  return bytes;
}

uint64_t TreeStorage::live_cells(const TreeState& now, uint32_t node) const {
  const AllocatorState& a = now.allocators[nodes_[node].allocator];
  return device::handed_out(a) - 1 - (a.free_size - std::min(a.free_used, a.free_size)) - a.recycled_size;
}

void TreeStorage::compile_runtime() {
  freeze();
  with_host_program([this](Program& program) { compile_runtime(program); });
}

void TreeStorage::compile_runtime(Program& program) {
  const device::NodeLayout* layout = nullptr;
  uint32_t* words = nullptr;
  uint64_t* counts = nullptr;
  AllocatorState* a = nullptr;
  LoopElement* elements = nullptr;
  program.compile(select_live, range(1), state(), CoppiceSelection{}, static_cast<void*>(nullptr), words,
                  counts);
  const uint32_t* const begins = nullptr;
  const CoppiceSlots slots{};
  program.compile(count_slots, range(1), slots, words);
  program.compile(write_slots, range(1), slots, begins, words);
  program.compile(write_elements, range(1), static_cast<const TreeState*>(state()), slots, begins, layout,
                  layout, elements);
  program.compile(flag_elements, range(1), state(), layout, 0, words, uint64_t{1}, words);
  program.compile(fill_elements, range(1), state(), layout, 0, words, uint64_t{1}, words, elements);
  program.compile(fill_neighbours, range(1), state(), layout, elements, layout, words);
  program.compile(recycle_all_cells, range(1), state(), 0u, 1u);
  program.compile(count_batches, range(1), a, 1u, counts);
  program.compile(count_recycled, range(1), a, counts);
  program.compile(count_version, range(1), state());
  program.compile(mark_changed, range(1), state());
  program.compile(give_back_cells, range(1), state(), 1u);
  program.compile(collect_below, range(1), state(), 0u, layout);
  program.compile(collect_begin, range(1), a, counts);
  program.compile(collect_move_free, range(1), a);
  program.compile(collect_bookkeep, range(1), a);
  program.compile(collect_refill, range(1), a);
}

bool TreeStorage::resolve_shortage(InStream& s, const TreeState& now, std::string_view kernel,
                                   std::string_view why_not) {
  // Shortages count, not the status: that names one tree, and several may be short.
  bool is_short = false;
  for (uint32_t i = 0; i < allocators_.size(); ++i) is_short |= now.allocators[i].shortage != 0;
  if (!is_short) return false;
  uint32_t* const status = &device_->context().status;
  if (is_shortage(status_of(wait_read(s, status)))) write_value(s, status, 0);
  if (!device_->commits_on_touch()) {
    grow_short_allocators(s, now, kernel, why_not);
    return true;
  }
  if (has_full_ranges()) throw_full(now, fmt::format("kernel {}", kernel));
  COPPICE_CHECK(why_not.empty(), "a launch that must not be repeated began without the full ranges");
  for (uint32_t i = 0; i < allocators_.size(); ++i) write_value(s, &state()->allocators[i].shortage, 0);
  take_full_ranges(s, fmt::format("kernel {}", kernel));
  return true;
}

// An allocator that has all that it may have is short.
void TreeStorage::throw_full(const TreeState& now, std::string_view who) const {
  uint32_t i = 0;
  while (now.allocators[i].shortage == 0) ++i;
  const AllocatorState& a = now.allocators[i];
  throw Error(
      ErrorCode::kOutOfMemory,
      fmt::format(
          "{}: {} is full: its {} cells of {} bytes are all it may have; TreeOptions::max_bytes is {}", who,
          path(allocators_[i].node), handed_out(a) - 1, a.cell_bytes, max_bytes()));
}

uint64_t TreeStorage::largest_capacity(const AllocatorState& a, uint32_t allocator) const {
  return device_->commits_on_touch() ? allocators_[allocator].max_cells : most_cells(allocator, a.capacity);
}

// Returns how many cells an allocator may have at most, where it has `capacity` of them now.
uint64_t TreeStorage::most_cells(uint32_t allocator, uint64_t capacity) const {
  const AllocatorStorage& storage = allocators_[allocator];
  const uint64_t left = max_bytes() - std::min(max_bytes(), committed_bytes());
  return std::min(storage.max_cells, capacity + left / nodes_[storage.node].cell_bytes);
}

// Makes room for `needed` cells at least, and for twice as many as there were where that is allowed.
void TreeStorage::grow_to(InStream& s, const AllocatorState& a, uint32_t allocator, uint64_t needed,
                          std::string_view who) {
  const uint64_t largest = largest_capacity(a, allocator);
  if (needed > largest) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{}: {} is full: {} cells of {} bytes are all it may have, and at least {} more "
                            "are needed",
                            who, path(allocators_[allocator].node), largest - 1, a.cell_bytes,
                            needed - (device_->commits_on_touch() ? largest : a.capacity)));
  }
  if (!has_full_ranges()) {
    take_full_ranges(s, who);  // which may have turned out smaller
    return grow_to(s, wait_read(s, &state()->allocators[allocator]), allocator, needed, who);
  }
  if (needed <= a.capacity) return;
  const uint64_t cells = std::min(largest, std::max(needed, 2 * uint64_t{a.capacity}));
  grow_memory(allocator, cells);
  write_value(s, &state()->allocators[allocator].capacity, static_cast<uint32_t>(cells));
  log_debug("{} grows to {} cells", path(allocators_[allocator].node), cells - 1);
}

template <class Kernel>
void TreeStorage::run_over_chunks(InStream& s, const Kernel& kernel) {
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].kind != NodeKind::kDynamic) continue;
    uint64_t* const count = &counts()->recycled;
    run_now(s, program_, count_handed_out, 1, &state()->allocators[nodes_[id].allocator], count);
    run_now(s, program_, kernel, count, state(), device_layout(id));
  }
}

void TreeStorage::begin_making_room(InStream& s) {
  for (uint32_t a = 0; a < allocators_.size(); ++a)
    run_now(s, program_, forget_wanted, 1, &state()->allocators[a]);
  run_over_chunks(s, forget_wanted_elements);
}

void TreeStorage::want_what_is_removed(InStream& s) {
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    const NodeDescription& n = nodes_[allocators_[a].node];
    const uint64_t chunk_cells = n.kind == NodeKind::kDynamic ? n.num_cells : 0;
    const uint64_t most = most_cells(a, allocators_[a].capacity);
    run_now(s, program_, want_removed, 1, &state()->allocators[a], chunk_cells, most);
  }
}

void TreeStorage::hide_room(InStream& s) { run_over_chunks(s, hide_wanted_chunks); }
void TreeStorage::drop_room(InStream& s) { run_over_chunks(s, drop_wanted_chunks); }
void TreeStorage::show_room(InStream& s) { run_over_chunks(s, show_wanted_chunks); }

void TreeStorage::reserve_cells(InStream& s, uint32_t node, uint64_t cells) {
  const NodeKind kind = nodes_[node].kind;
  if (node == 0 || (kind != NodeKind::kPointer && kind != NodeKind::kDynamic)) {
    throw Error(ErrorCode::kInvalidArgument,
                path(node) + " has no cells of its own: reserve() is for pointer and dynamic nodes");
  }
  const uint32_t index = nodes_[node].allocator;
  const AllocatorState a = wait_read(s, &state()->allocators[index]);
  if (cells >= a.capacity)  // of 2^64 - 1, too
    grow_to(s, a, index, std::max(cells, cells + 1), fmt::format("reserve({})", cells));
}

void TreeStorage::grow_short_allocators(InStream& s, const TreeState& now, std::string_view kernel,
                                        std::string_view why_not) {
  for (uint32_t i = 0; i < allocators_.size(); ++i) {
    const AllocatorState& a = now.allocators[i];
    const uint64_t shortage = a.shortage, capacity = a.capacity;
    if (shortage == 0) continue;
    write_value(s, &state()->allocators[i].shortage, 0);
    if (!why_not.empty() && largest_capacity(a, i) > capacity) {
      throw Error(
          ErrorCode::kOutOfMemory,
          fmt::format(
              "kernel {}: {} ran out of its {} cells, and the kernel cannot be repeated, since it {}; "
              "make room before it by reserve(n) of that node",
              kernel, path(allocators_[i].node), capacity - 1, why_not));
    }
    // Threads that want one cell are all counted, so the shortage may be far more than what is
    // missing; growing by a factor keeps the number of repeats logarithmic. Every allocator that was
    // short in this round grows at once.
    uint64_t wanted = std::clamp(capacity + shortage, 2 * capacity, 8 * capacity);
    wanted = std::min(wanted, std::max(largest_capacity(a, i), capacity + 1));
    grow_to(s, a, i, wanted, fmt::format("kernel {}", kernel));
  }
}

}  // namespace coppice
