// Trees' memory (see tree_memory.h): what is reserved at first, limits, and what is spent.
#include "sparse/tree_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/buffer_ranges.h"
#include "gpu/host_access.h"
#include "runtime_collection.kernels.h"
#include "sparse/program.h"
#include "sparse/runtime_launch.h"

namespace coppice {

using device::AllocatorState;
using device::NodeKind;
using device::TreeState;

namespace {

// One allocator reserves this much address space at most; cells beyond it are a shortage that cannot be
// grown away.
constexpr uint64_t kMaxAllocatorBytes = uint64_t{1} << 37;

uint64_t size_of(const IntrusivePtr<Buffer>& buffer) { return buffer->size_bytes(); }

}  // namespace

TreeMemory::TreeMemory(const TreeLayout& layout, Device& device, Program& program)
    : layout_(layout), device_(device), program_(program) {
  for (const uint32_t node : layout.allocator_nodes()) allocators_.push_back({node});
  try {
    reserve_fixed();
    for (uint32_t a = 0; a < allocators_.size(); ++a) reserve_cells(a);
    shares_limit_ = is_limit_shared();
    const TreeState s = first_state();
    device.wait_copy(state(), &s, sizeof s);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("tree '{}': {}", layout.options().name, error.message()));
  }
}

// On a CPU every thread has cache lines of its own behind the lists' states.
uint64_t TreeMemory::num_workers() const {
  return device_.commits_on_touch() ? static_cast<uint64_t>(device_.threads()) : 0;
}
size_t TreeMemory::workers_at() const {
  const size_t list_bytes = layout_.nodes().size() * sizeof(device::ListState);
  return device::align_up(sizeof(TreeState) + list_bytes, alignof(device::WorkerCells));
}
size_t TreeMemory::state_bytes() const { return workers_at() + num_workers() * sizeof(device::WorkerCells); }

// Reserves what never grows.
void TreeMemory::reserve_fixed() {
  const std::vector<TreeNode>& nodes = layout_.nodes();
  uint64_t largest = 64;
  for (const TreeNode& n : nodes) largest = std::max(largest, n.container_bytes);
  // A refused data() reads its zeros as if they lay side by side.
  for (const TreeField& f : layout_.fields()) largest = std::max(largest, f.bytes * nodes[f.node].num_cells);
  ambient_ = device_.reserve(largest, largest);
  // A root of dense nodes alone is written everywhere, any other where the simulation is.
  const bool is_dense = std::all_of(nodes.begin() + 1, nodes.end(), [](const TreeNode& n) {
    return n.parent != 0 || n.kind == NodeKind::kDense;
  });
  root_ = reserve_for_fields(nodes[0].container_bytes, nodes[0].container_bytes,
                             is_dense ? Filling::kPacked : Filling::kScattered);
  state_ = device_.reserve(state_bytes(), state_bytes());
  const std::vector<device::ListState> no_lists(nodes.size(), {0, ~uint64_t{0}, ~uint64_t{0}});
  device_.wait_copy(list_state(0), no_lists.data(), no_lists.size() * sizeof(device::ListState));
  const std::span<const uint32_t> below = layout_.below();
  device_below_ = device_.reserve(below.size_bytes(), below.size_bytes());
  if (!below.empty()) device_.wait_copy(device_below_->data(), below.data(), below.size_bytes());
  const std::span<const device::NodeLayout> layouts = layout_.node_layouts();
  device_layouts_ = device_.reserve(layouts.size_bytes(), layouts.size_bytes());
  counts_ = device_.reserve(sizeof(RuntimeCounts), sizeof(RuntimeCounts));
  device_.wait_copy(device_layouts_->data(), layouts.data(), layouts.size_bytes());
}

// There is room for as many cells as there are coordinates, as often as a launch may deactivate and activate
// them anew before they are collected, and as the limits allow; one more is the ambient cell. Only address
// space is spent here.
uint64_t TreeMemory::max_cells_of(uint32_t allocator) const {
  const uint32_t node = allocators_[allocator].node;
  double possible = 1;
  for (const uint32_t p : layout_.path_nodes(node)) {
    const TreeNode& n = layout_.node(p);
    possible *= n.kind == NodeKind::kDynamic
                    ? static_cast<double>(n.max_length) / static_cast<double>(n.num_cells) + 1
                    : static_cast<double>(n.num_cells);
  }
  possible = std::max(2 * possible, 65536.0);
  const double limit = static_cast<double>(std::min(kMaxAllocatorBytes, max_bytes())) /
                       static_cast<double>(layout_.node(node).cell_bytes);
  // Where not even one cell fits, there is the ambient one alone.
  const uint64_t least = limit < 1 ? 1 : 2;
  return std::max(least, static_cast<uint64_t>(std::min({1 + possible, limit, 4294967000.0})));
}

// A pointer that leads there leads to fields.
IntrusivePtr<Buffer> TreeMemory::reserve_for_fields(uint64_t reserved_bytes, uint64_t bytes,
                                                    Filling filling) const {
  IntrusivePtr<Buffer> buffer = device_.reserve(reserved_bytes, bytes, filling);
  BufferRanges::all().note_fields(buffer->data());
  return buffer;
}

void TreeMemory::reserve_cells(uint32_t allocator) {
  AllocatorStorage& storage = allocators_[allocator];
  storage.max_cells = max_cells_of(allocator);
  if (device_.commits_on_touch()) {
    reserve_first_range(allocator);
    return;
  }
  storage.cells =
      reserve_for_fields(storage.max_cells * cell_bytes(storage), cell_bytes(storage), Filling::kPacked);
  storage.free_list = device_.reserve(storage.max_cells * 4, 4);
  storage.recycled_list = device_.reserve(storage.max_cells * 4, 4);
  grow(allocator, std::min(storage.max_cells, first_cells(allocator)));
}

TreeState TreeMemory::first_state() const {
  TreeState s{};
  s.root = root_->as<unsigned char>();
  s.ambient = ambient_->as<unsigned char>();
  s.layouts = device_layouts_->as<device::NodeLayout>();
  s.below = device_below_->as<uint32_t>();
  s.workers = reinterpret_cast<device::WorkerCells*>(state_->as<unsigned char>() + workers_at());
  s.num_workers = num_workers();
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    const AllocatorStorage& storage = allocators_[a];
    AllocatorState& allocator = s.allocators[a];
    allocator.cells = storage.cells->as<unsigned char>();
    allocator.free_list = storage.free_list->as<uint32_t>();
    allocator.recycled_list = storage.recycled_list->as<uint32_t>();
    allocator.cell_bytes = cell_bytes(storage);
    allocator.zeroed_bytes = layout_.node(storage.node).cell_zeroed;
    allocator.num_cells = 1;
    allocator.capacity = static_cast<uint32_t>(storage.capacity);
  }
  if (shares_limit_) s.shared_limit = max_bytes(), s.fresh_bytes = used_bytes(s);
  return s;
}

uint64_t TreeMemory::max_bytes() const {
  return layout_.options().max_bytes != 0 ? layout_.options().max_bytes : device_.memory_bytes();
}

// Returns the fewest cells that it has where memory is mapped before a launch: some 64 KiB, and one.
uint64_t TreeMemory::first_cells(uint32_t allocator) const {
  return 1 + std::max<uint64_t>(1, (64 << 10) / cell_bytes(allocators_[allocator]));
}

// Returns whether cells are counted across allocators, as these could take more than the tree may have.
bool TreeMemory::is_limit_shared() const {
  if (!device_.commits_on_touch()) return false;  // what is committed is counted by the host
  double together = 0;
  for (const AllocatorStorage& a : allocators_)
    together += static_cast<double>(a.max_cells) * static_cast<double>(cell_bytes(a));
  return allocators_.size() > 1 && together > static_cast<double>(max_bytes());
}

TreeState TreeMemory::wait_read_state(InStream& s) {
  if (device_.commits_on_touch() && wait_read(s, &state()->holds_cells) != 0)
    run_now(s, program_, give_back_cells, 1, state(), layout_.num_allocators());
  return wait_read(s, state());
}

uint64_t TreeMemory::used_bytes(const TreeState& now) const {
  uint64_t bytes = 0;
  for (uint32_t a = 0; a < allocators_.size(); ++a)
    bytes += handed_out(now.allocators[a]) * now.allocators[a].cell_bytes;
  return bytes;
}

uint64_t TreeMemory::paid_cells(const AllocatorState& a) const {
  return device_.commits_on_touch() ? handed_out(a) : a.capacity;
}

void TreeMemory::grow(uint32_t a, uint64_t cells) {
  AllocatorStorage& storage = allocators_[a];
  storage.cells->grow(cells * cell_bytes(storage));
  storage.free_list->grow(cells * 4);
  storage.recycled_list->grow(cells * 4);
  storage.capacity = cells;
  ++generation_;
}

uint64_t TreeMemory::committed_bytes() const {
  uint64_t bytes = 0;
  for (const AllocatorStorage& a : allocators_) bytes += a.cells->size_bytes();
  return bytes;
}

uint64_t TreeMemory::live_cells(const TreeState& now, uint32_t node) const {
  const AllocatorState& a = now.allocators[layout_.nodes()[node].allocator];
  return device::handed_out(a) - 1 - (a.free_size - std::min(a.free_used, a.free_size)) - a.recycled_size;
}

uint64_t TreeMemory::largest_capacity(const AllocatorState& a, uint32_t allocator) const {
  return device_.commits_on_touch() ? allocators_[allocator].max_cells : most_cells(allocator, a.capacity);
}

uint64_t TreeMemory::most_cells(uint32_t allocator, uint64_t capacity) const {
  const AllocatorStorage& storage = allocators_[allocator];
  const uint64_t left = max_bytes() - std::min(max_bytes(), committed_bytes());
  return std::min(storage.max_cells, capacity + left / cell_bytes(storage));
}

uint64_t TreeMemory::bookkeeping_bytes() const {
  return size_of(state_) + size_of(device_layouts_) + size_of(device_below_) + size_of(counts_);
}

std::vector<IntrusivePtr<Buffer>> TreeMemory::buffers() const {
  std::vector<IntrusivePtr<Buffer>> all{state_, root_, ambient_, device_layouts_, device_below_, counts_};
  for (const AllocatorStorage& a : storages_to_be()) {
    for (const IntrusivePtr<Buffer>& buffer : {a.cells, a.free_list, a.recycled_list}) all.push_back(buffer);
  }
  return all;
}

}  // namespace coppice
