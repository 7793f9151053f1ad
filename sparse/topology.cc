// A tree's memory in use: growth, loop lists, neighbour tables and collection (see tree_storage.h). All in stream order.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "gpu/kernel_store.h"
#include "gpu/primitives.h"
#include "sparse/program.h"
#include "sparse/tree_storage.h"
#include "topology.kernels.h"

namespace coppice {

using device::AllocatorState;
using device::Element;
using device::NodeKind;
using device::TreeState;

namespace {

// The most address space one allocator reserves; cells beyond it are a shortage that cannot be grown away.
constexpr uint64_t kMaxAllocatorBytes = uint64_t{1} << 37;

template <class T>
void ensure(Device& device, IntrusivePtr<Buffer>& buffer, uint64_t items) {
  const uint64_t bytes = std::max<uint64_t>(items * sizeof(T), 64);
  if (!buffer || buffer->reserved_bytes() < bytes) {
    buffer = device.reserve(std::max<uint64_t>(bytes * 2, 4096), bytes);
  } else if (buffer->size_bytes() < bytes) {
    buffer->grow(bytes);
  }
}

// Runs one of the runtime's kernels now, over `count` items.
template <class... Args, class... Given>
void run(Program& program, const Kernel<void(Args...)>& kernel, uint64_t count, const Given&... args) {
  Launch launch = program.make_launch(kernel, range(static_cast<int64_t>(count)), args...);
  launch.grain = 256;
  launch.skip_on_status = false;
  program.device().default_stream().run_inline(launch);
}

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
  state_ = d.reserve(sizeof(TreeState), sizeof(TreeState));
  device_layouts_ =
      d.reserve(layouts_.size() * sizeof(device::NodeLayout), layouts_.size() * sizeof(device::NodeLayout));
  counts_ = d.reserve(4096, 4096);
  std::memcpy(device_layouts_->data(), layouts_.data(), layouts_.size() * sizeof(device::NodeLayout));
  TreeState* s = state();
  s->root = root_->as<unsigned char>();
  s->ambient = ambient_->as<unsigned char>();
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    AllocatorStorage& storage = allocators_[a];
    const NodeDescription& n = nodes_[storage.node];
    // As many cells as there are coordinates, as often as a launch may deactivate and activate them anew before they are
    // collected, and as the limits allow; one more for the ambient cell. Only address space is spent here.
    double possible = 1;
    for (uint32_t p : path_nodes(storage.node)) possible *= static_cast<double>(nodes_[p].num_cells);
    possible = std::max(2 * possible, 65536.0);
    const double limit = static_cast<double>(std::min(kMaxAllocatorBytes, options_.max_bytes)) /
                         static_cast<double>(n.cell_bytes);
    storage.max_cells = 1 + static_cast<uint64_t>(std::min({possible, limit, 4294967000.0}));
    storage.cells = d.reserve(storage.max_cells * n.cell_bytes, n.cell_bytes);
    storage.free_list = d.reserve(storage.max_cells * 4, 4);
    storage.recycled_list = d.reserve(storage.max_cells * 4, 4);
    AllocatorState& allocator = s->allocators[a];
    allocator.cells = storage.cells->as<unsigned char>();
    allocator.free_list = storage.free_list->as<uint32_t>();
    allocator.recycled_list = storage.recycled_list->as<uint32_t>();
    allocator.cell_bytes = n.cell_bytes;
    allocator.num_cells = 1;
    grow_allocator(
        a, std::min<uint64_t>(storage.max_cells, 1 + std::max<uint64_t>(1, (64 << 10) / n.cell_bytes)));
  }
}

void TreeStorage::grow_allocator(uint32_t a, uint64_t cells) {
  AllocatorStorage& storage = allocators_[a];
  storage.cells->grow(cells * nodes_[storage.node].cell_bytes);
  storage.free_list->grow(cells * 4);
  storage.recycled_list->grow(cells * 4);
  state()->allocators[a].capacity = static_cast<uint32_t>(cells);
}

uint64_t TreeStorage::live_cells(uint32_t node) const {
  const AllocatorState& a = state()->allocators[nodes_[node].allocator];
  const uint64_t handed_out = std::min(a.num_cells, a.capacity) - 1;
  return handed_out - (a.free_size - std::min(a.free_used, a.free_size)) - a.recycled_size;
}

NodeUsage TreeStorage::usage(uint32_t node) const {
  if (nodes_[node].kind != NodeKind::kPointer || node == 0) return {};
  const AllocatorStorage& s = allocators_[nodes_[node].allocator];
  return {live_cells(node), state()->allocators[nodes_[node].allocator].capacity - 1,
          s.cells->size_bytes() + s.free_list->size_bytes() + s.recycled_list->size_bytes()};
}

void TreeStorage::compile_runtime() {
  freeze();
  const device::NodeLayout* layout = nullptr;
  uint32_t* words = nullptr;
  uint64_t* counts = nullptr;
  AllocatorState* a = nullptr;
  Element* elements = nullptr;
  program_.compile(select_live, range(1), a, layout, 0, counts, words, counts);
  program_.compile(flag_elements, range(1), state(), layout, 0, words, uint64_t{1}, words);
  program_.compile(fill_elements, range(1), state(), layout, 0, words, uint64_t{1}, words, elements);
  program_.compile(fill_neighbours, range(1), state(), layout, elements, layout, words);
  program_.compile(recycle_all_cells, range(1), state(), 0u);
  program_.compile(collect_begin, range(1), a, counts);
  program_.compile(collect_mark, range(1), a);
  program_.compile(collect_children, range(1), state(), 0u, 0u);
  program_.compile(collect_move_free, range(1), a);
  program_.compile(collect_bookkeep, range(1), a);
  program_.compile(collect_refill, range(1), a);
}

ElementList& TreeStorage::update_list(uint32_t node, bool with_neighbours) {
  if (!lists_[node]) lists_[node] = std::make_unique<ElementList>();
  ElementList& list = *lists_[node];
  Device& d = *device_;
  const device::NodeLayout* layout = device_layouts_->as<device::NodeLayout>() + node;
  if (list.version != version_) {
    const std::vector<uint32_t> path = path_nodes(node);
    int pointer_level = -1;
    uint64_t fan_out = 1;
    bool masked = false;
    for (size_t l = 0; l + 1 < path.size(); ++l) {
      const NodeDescription& n = nodes_[path[l]];
      if (n.kind == NodeKind::kPointer) {
        pointer_level = static_cast<int>(l), fan_out = 1, masked = false;
      } else {
        fan_out *= n.num_cells, masked |= n.kind == NodeKind::kBitmasked;
      }
    }
    uint64_t cells = 1;
    const uint32_t* cell_list = nullptr;
    if (pointer_level >= 0) {
      const uint32_t allocator = nodes_[path[pointer_level]].allocator;
      const uint64_t handed_out = state()->allocators[allocator].num_cells - 1;
      ensure<uint64_t>(d, scratch_keys_, handed_out), ensure<uint32_t>(d, scratch_cells_, handed_out);
      uint64_t* count = counts_->as<uint64_t>();
      *count = 0;
      run(program_, select_live, handed_out, &state()->allocators[allocator],
          device_layouts_->as<device::NodeLayout>() + path[pointer_level], pointer_level,
          scratch_keys_->as<uint64_t>(), scratch_cells_->as<uint32_t>(), count);
      cells = *count;
      primitives::sort_by_key(scratch_keys_->as<uint64_t>(), scratch_cells_->as<uint32_t>(), cells);
      cell_list = scratch_cells_->as<uint32_t>();
    }
    uint64_t items = cells * fan_out;
    const uint32_t* selected = nullptr;
    if (masked && items > 0) {
      ensure<uint32_t>(d, scratch_flags_, items), ensure<uint32_t>(d, scratch_selected_, items);
      run(program_, flag_elements, items, state(), layout, pointer_level, cell_list, fan_out,
          scratch_flags_->as<uint32_t>());
      items = primitives::select_if_flag(scratch_flags_->as<uint32_t>(), scratch_selected_->as<uint32_t>(),
                                         items);
      selected = scratch_selected_->as<uint32_t>();
    }
    ensure<Element>(d, list.elements, items), ensure<uint64_t>(d, list.count, 1);
    run(program_, fill_elements, items, state(), layout, pointer_level, cell_list, fan_out, selected,
        list.elements->as<Element>());
    *list.count->as<uint64_t>() = items;
    list.version = version_;
  }
  if (with_neighbours && has_neighbour_table(node) && list.neighbour_version != version_) {
    const uint64_t items = *list.count->as<uint64_t>();
    const uint32_t stride = dims() == 3 ? 27 : dims() == 2 ? 9 : 3;
    ensure<uint32_t>(d, list.neighbours, items * stride);
    run(program_, fill_neighbours, items, state(),
        device_layouts_->as<device::NodeLayout>() + nodes_[node].parent, list.elements->as<Element>(), layout,
        list.neighbours->as<uint32_t>());
    list.neighbour_version = version_;
  }
  return list;
}

bool TreeStorage::resolve_shortage(bool repeatable, std::string_view kernel) {
  // Shortages count, not the status: that names one tree, and several may be short.
  bool is_short = false;
  for (uint32_t i = 0; i < allocators_.size(); ++i) is_short |= state()->allocators[i].shortage != 0;
  if (!is_short) return false;
  DeviceContext& context = device_->context();
  if (context.status == static_cast<uint32_t>(DeviceStatus::kOutOfCells)) context.status = 0;
  grow_short_allocators(repeatable, kernel);
  return true;
}

void TreeStorage::grow_short_allocators(bool repeatable, std::string_view kernel) {
  std::vector<uint32_t> shortages;
  for (uint32_t i = 0; i < allocators_.size(); ++i)
    shortages.push_back(std::exchange(state()->allocators[i].shortage, 0));
  for (uint32_t i = 0; i < allocators_.size(); ++i) {
    const AllocatorState& a = state()->allocators[i];
    const uint64_t max_cells = allocators_[i].max_cells;
    if (shortages[i] == 0 || (repeatable && a.capacity < max_cells)) continue;
    const std::string where = path(allocators_[i].node);
    throw Error(
        ErrorCode::kOutOfMemory,
        a.capacity >= max_cells
            ? fmt::format(
                  "kernel {}: {} is full: {} cells of {} bytes are all it may have, and more are needed",
                  kernel, where, max_cells - 1, a.cell_bytes)
            : fmt::format("kernel {}: {} ran out of its {} cells, and a kernel that also updates or "
                          "accumulates cannot be repeated; activate in a launch before it",
                          kernel, where, a.capacity - 1));
  }
  // Doubling keeps the number of repeats logarithmic; every allocator that was short in this round grows at once.
  for (uint32_t i = 0; i < allocators_.size(); ++i) {
    const uint64_t capacity = state()->allocators[i].capacity;
    if (shortages[i] == 0) continue;
    const uint64_t cells =
        std::min(allocators_[i].max_cells, std::max(2 * capacity, capacity + shortages[i]));
    grow_allocator(i, cells);
    log_debug("{} grows to {} cells", path(allocators_[i].node), cells - 1);
  }
}

void TreeStorage::settle() {
  // A launch that failed may have left shortages that nobody is to grow for.
  for (uint32_t i = 0; i < allocators_.size(); ++i) state()->allocators[i].shortage = 0;
  if (state()->changed == 0) return;
  collect();
  ++version_;
  state()->changed = 0;
}

void TreeStorage::recycle_below(uint32_t id) {
  const NodeDescription& n = nodes_[id];
  if (n.kind == NodeKind::kPointer && id != 0) {
    run(program_, recycle_all_cells, state()->allocators[n.allocator].num_cells - 1, state(), n.allocator);
    state()->changed = 1;
    return;  // what is below goes with the cells
  }
  if (n.kind == NodeKind::kBitmasked) {
    ElementList& list = update_list(id, false);
    run(program_, zero_containers, *list.count->as<uint64_t>(), list.elements->as<Element>(),
        n.container_bytes);
    state()->changed = 1;
    return;
  }
  for (uint32_t child : n.children) recycle_below(child);
}

void TreeStorage::collect() {
  // Root to leaves: nodes were added parents first, so allocators are in that order already.
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    if (state()->allocators[a].recycled_size > 0) collect_allocator(a);
  }
}

void TreeStorage::collect_allocator(uint32_t index) {
  AllocatorState* a = &state()->allocators[index];
  uint64_t* counts = counts_->as<uint64_t>() + 8;
  run(program_, collect_begin, 1, a, counts);
  run(program_, collect_mark, counts[0], a);
  for (uint32_t child = index + 1; child < allocators_.size(); ++child) {
    // The nearest pointer ancestor is the one whose cells hold this child's slots.
    uint32_t up = nodes_[allocators_[child].node].parent;
    while (up != 0 && nodes_[up].kind != NodeKind::kPointer) up = nodes_[up].parent;
    if (up != allocators_[index].node) continue;
    run(program_, collect_children,
        std::min(state()->allocators[child].num_cells, state()->allocators[child].capacity) - 1, state(),
        index, child);
  }
  run(program_, collect_move_free, counts[1], a);
  run(program_, collect_bookkeep, 1, a);
  run(program_, collect_refill, counts[0], a);
}

}  // namespace coppice
