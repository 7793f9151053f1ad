// Implements Tree, Node and Field: holds the description, the fixed layout, the memory, lists and
// collection.
//
// Phases: describe (add_node, add_field), on one thread -> freeze -> use, by any number of threads. In
// use, everything that touches memory takes an InStream and so runs on one thread at a time. Memory is the
// device's: the host reads its state once per decision (wait_read_state()) and writes single fields.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/host_access.h"
#include "gpu/memory_uses.h"
#include "sparse/program.h"
#include "sparse/tree.h"

struct CoppiceBulkLevel;  // runtime_activation.kernels.cc

namespace coppice {

struct RuntimeCounts;  // runtime_counts.h

inline constexpr uint32_t kNoField = ~0u;  // of a Topology handle: a node without a value

const char* node_kind_name(device::NodeKind kind);  // "pointer"

struct NodeDescription {
  device::NodeKind kind = device::NodeKind::kDense;
  uint32_t parent = 0;
  std::vector<uint32_t> children;
  std::array<uint32_t, device::kMaxDims> extent{1, 1, 1};  // by tree dimension
  std::vector<Axis> axes;
  bool names_axes = false;       // by its author; else they are all of the tree's
  std::vector<int32_t> extents;  // as given, for messages
  CellLayout layout = CellLayout::kStructOfArrays;
  std::vector<uint32_t> fields;
  // Fixed by freeze():
  uint32_t allocator = 0;
  uint64_t num_cells = 1;   // of a container; dynamic: of a chunk
  uint32_t max_length = 0;  // dynamic: of a list
  uint64_t container_bytes = 0;
  uint64_t container_alignment = 8;
  uint64_t cell_offset =
      0;  // dense, bitmasked: of the child containers' cells; pointer, dynamic: where a cell's fields end
  uint64_t cell_bytes = 0;
  uint64_t offset_in_cell = 0;  // of this node's container in its parent's cell
};

struct FieldDescription {
  std::string name;
  uint32_t node = 0;
  uint64_t bytes = 0, alignment = 1;
  uint64_t offset = 0;  // fixed by freeze(): from the container (pointer: the cell) to cell 0's value
  uint32_t stride = 0;
};

// Describes the list that a loop over a node runs through; valid while the topology's version is the
// tree's. The device has the same numbers in a ListState.
struct LoopList {
  uint32_t number = 0;                        // of its ListState: the node
  IntrusivePtr<Buffer> elements, neighbours;  // LoopElement[n], u32[n][3^D]
  uint64_t items = 0;
  uint64_t version = ~uint64_t{0};  // of a dynamic node: the lists' version
  uint64_t neighbour_version = ~uint64_t{0};
};

// Names lists that a recording takes to be up to date: {node, with its neighbour table}.
using NeededLists = std::vector<std::pair<uint32_t, bool>>;

struct AllocatorStorage {
  uint32_t node = 0;
  uint64_t max_cells = 0;
  uint64_t capacity = 0;  // as the state has it
  IntrusivePtr<Buffer> cells, free_list, recycled_list;
};

// Describes memory that was moved, and by how much (full_ranges.cc).
struct AddressMove {
  uint64_t begin, end;  // addresses before
  uint64_t distance;    // modulo 2^64
};
// Holds elements of a list whose containers were moved, and where they are to be written.
struct MovedElements {
  device::LoopElement* to;
  std::vector<device::LoopElement> elements;
};

class TreeStorage : public RefCounted {
 public:
  TreeStorage(IntrusivePtr<Device> device, TreeOptions options);

  uint64_t serial() const { return serial_; }  // unique in the process
  // Expires with the tree; unlike a weak reference to the tree it keeps no memory of it.
  std::weak_ptr<const void> liveness() const { return liveness_; }

  // ---- description
  uint32_t add_node(uint32_t parent, device::NodeKind kind, std::vector<Axis> axes,
                    std::vector<int32_t> extents);
  // Adds a dynamic node; `axis` must be none that an ancestor has.
  uint32_t add_lists(uint32_t parent, std::optional<Axis> axis, int32_t max_length, int32_t chunk_cells);
  uint32_t add_field(uint32_t node, std::string name, size_t bytes, size_t alignment);
  void set_layout(uint32_t node, CellLayout layout);
  void freeze();  // idempotent; of several threads that come first, one does it and the others wait
  bool frozen() const { return frozen_.load(std::memory_order_acquire); }

  const TreeOptions& options() const { return options_; }
  Device& device() const { return *device_; }
  // Returns f(program) with the program of the runtime's own kernels for threads that give launches; these
  // threads come one after another.
  template <class F>
  auto with_host_program(F&& f) {
    const std::lock_guard lock(host_program_mutex_);
    return f(host_program_);
  }
  Program& stream_program(InStream&) { return program_; }
  const NodeDescription& node(uint32_t id) const { return nodes_[id]; }
  const FieldDescription& field(uint32_t id) const { return fields_[id]; }
  std::string path(uint32_t node) const;
  // Returns the number of its coordinates; a tree of one list has one, with a single coordinate.
  uint32_t dims() const { return std::max<uint32_t>(1, static_cast<uint32_t>(axes_.size())); }
  const device::NodeLayout& layout(uint32_t node) const { return layouts_[node]; }
  const device::NodeLayout* device_layout(uint32_t node) const {
    return device_layouts_->as<device::NodeLayout>() + node;
  }
  device::TreeState* state() const { return state_->as<device::TreeState>(); }  // an address of the device
  device::ListState* list_state(uint32_t number) const {
    return reinterpret_cast<device::ListState*>(state() + 1) + number;
  }
  void compile_runtime();
  bool has_neighbour_table(uint32_t node) const;  // right below a pointer node

  Stream& stream() const { return device_->default_stream(); }

  // ---- memory: all of it takes the InStream that the stream hands out when its turn comes
  device::TreeState wait_read_state(InStream& s);
  // Brings a node's list (and its neighbour table) up to date; at most one select and sort per topology
  // change. In a recording: whether there is anything to do is found out by the device, each time.
  LoopList& update_list(InStream& s, uint32_t node, bool with_neighbours);
  // Is called after a launch that could change topology, first, for every tree of the launch. Returns
  // whether the tree ran out of cells: then the allocators have grown, and the launch is to be repeated.
  // `now` is the state after the launch, `why_not` says what stands against a repetition, empty where
  // nothing does. Errors: kOutOfMemory when it may not grow further or must not be repeated.
  bool resolve_shortage(InStream& s, const device::TreeState& now, std::string_view kernel,
                        std::string_view why_not);
  // These go before and behind a run that makes room for a launch (device::makes_room()). Behind it, cells
  // that it would deactivate are wanted again; then shortages are resolved as behind a launch that may be
  // repeated. When there is room, lists hide their new chunks from the launch, and show them behind it.
  // Cost: a pass over the cells of dynamic nodes each.
  void begin_making_room(InStream& s);
  void want_what_is_removed(InStream& s);
  void hide_room(InStream& s);
  void show_room(InStream& s);
  // Makes lists give back the chunks that hold nothing: instead of hide_room() where there is no room, and
  // behind a launch that failed.
  void drop_room(InStream& s);
  // On a CPU a tree begins with little memory, and its cells move once, when it outgrows that, to ranges
  // of addresses for all that it may ever have (full_ranges.cc). Returns false until then; always true
  // elsewhere.
  bool has_full_ranges() const { return has_full_ranges_.load(std::memory_order_acquire); }
  // Reserves the ranges where its cells will lie, for callers that need these addresses before the move.
  // May be called on any thread. Errors: kOutOfMemory.
  void reserve_full_ranges();
  // Moves its cells to these ranges, before a launch that may run short and must not be repeated. Errors:
  // kOutOfMemory, in the name of `who`; then nothing has changed.
  void take_full_ranges(InStream& s, std::string_view who);
  // Makes room for so many cells of a pointer or dynamic node in all. Errors: kInvalidArgument, kOutOfMemory.
  void reserve_cells(InStream& s, uint32_t node, uint64_t cells);
  // Collects what was deactivated and advances the version, after a launch that is not to be repeated,
  // even if it failed.
  void commit_topology(InStream& s, const device::TreeState& now);
  // Does the same where the host has not read the state yet. In a recording the device finds out what
  // there is to do.
  void commit_topology(InStream& s);
  void recycle_below(InStream& s, uint32_t node);
  // Activates the cells at `n` coordinates of a node, i32[n][3], missing leading axes 0. Coordinates
  // may repeat; cells get their numbers in coordinate order, so that nothing depends on threads.
  // Errors: kOutOfRange when a coordinate is outside the domain, kOutOfMemory; then nothing has been
  // activated, or only nodes above.
  void activate_bulk(InStream& s, uint32_t node, const int32_t* coords, uint64_t n);
  // Appends `n` values of a field on a dynamic node, one to the list at each of the coordinates, i32[n][3],
  // in the order in which they are given; activates what lies above. Errors: kOutOfRange when a coordinate is
  // outside the domain or a list would be too long, kOutOfMemory; then nothing has been appended, and in the
  // latter case cells above lists may have been activated.
  void append_bulk(InStream& s, uint32_t field, const int32_t* coords, const void* values, uint64_t n);
  uint64_t version(InStream&) const { return version_; }
  // Recordings hold addresses and sizes: one of another generation than the tree's is made anew.
  uint64_t generation(InStream&) const { return generation_; }
  // Begins a recording in which launches can change the topology, or none can. In the latter case it needs
  // lists that are up to date whenever it is replayed.
  void begin_recording(InStream& s, bool can_change);
  const NeededLists& needed_lists(InStream&) const { return needed_lists_; }
  void update_lists(InStream& s, const NeededLists& needed);
  // Adds to `kept` what recordings use of the tree's memory and the tree itself may replace.
  void keep_for_recording(InStream& s, std::vector<IntrusivePtr<RefCounted>>& kept);
  // Is called before a recording is replayed: lists whose memory it replaced are to be made anew.
  void forget_lost_lists(InStream& s);
  // Is called after replays: reads back what they did to the topology and the lists.
  void wait_sync_after_replays(InStream& s);
  // These serve the checks of pointers (memory_uses.cc). memory_of() returns where a field's values lie;
  // in an array of structs, with what lies between them. zeros() returns the zeros that refused reads get,
  // buffers() all memory of the tree.
  MemoryUse memory_of(uint32_t field) const;
  MemoryUse zeros() const;
  std::vector<KnownBuffer> buffers() const;
  // Returns "'now' on grid.pointer[64].dense[8]", or "the tree 'grid'"; empty for an address that is not
  // in the tree's memory.
  std::string name_of_address(uint64_t address) const;
  uint64_t live_cells(const device::TreeState& now, uint32_t node) const;
  // Returns the usage of any node (memory_report.cc).
  NodeUsage full_usage(InStream& s, uint32_t node) { return full_usage(s, node, wait_read_state(s)); }
  MemoryReport memory_report(InStream& s);
  void trim(InStream& s);  // trim.cc

 private:
  void require_describing(const char* what) const;
  void require_place_below(uint32_t parent, const std::string& what) const;
  void require_axes_of_others(uint32_t parent, const std::vector<Axis>& axes, const std::string& what) const;
  uint32_t attach(NodeDescription n);
  void assign_dimensions();
  void lay_out(uint32_t node);
  void lay_out_fields(NodeDescription& n, uint64_t first, bool single_cell, uint64_t& end);
  void build_layout(uint32_t node);
  void find_below(uint32_t node, std::vector<uint32_t>& below) const;
  void build_below();
  void fix_layout();
  void allocate_memory();
  void compile_runtime(Program& program);
  void grow_memory(uint32_t allocator, uint64_t cells);  // the state's capacity is the caller's to write
  // Returns the largest capacity that its own and the tree's limits allow.
  uint64_t largest_capacity(const device::AllocatorState& a, uint32_t allocator) const;
  uint64_t most_cells(uint32_t allocator, uint64_t capacity) const;
  void grow_to(InStream& s, const device::AllocatorState& now, uint32_t allocator, uint64_t needed,
               std::string_view who);
  void trim_allocator(InStream& s, device::AllocatorState now, uint32_t allocator);
  NodeUsage full_usage(InStream& s, uint32_t node, const device::TreeState& now);
  uint64_t count_containers(InStream& s, const device::TreeState& now, uint32_t node, bool committed);
  uint64_t count_active(InStream& s, uint32_t node);
  void grow_short_allocators(InStream& s, const device::TreeState& now, std::string_view kernel,
                             std::string_view why_not);
  uint64_t committed_bytes() const;  // of all allocators' cells
  uint64_t max_bytes() const;
  uint64_t first_cells(uint32_t allocator) const;
  uint64_t first_range_cells(uint32_t allocator) const;
  void reserve_first_range(uint32_t allocator);
  uint64_t reserve_range(AllocatorStorage& storage, uint64_t cells) const;
  AllocatorStorage full_range(uint32_t allocator) const;
  std::vector<AllocatorStorage> storages_to_be() const;
  void move_slots(InStream& s, const device::AllocatorState& a, const AllocatorStorage& now,
                  const std::vector<AddressMove>& moves);
  void find_moved(InStream& s, const LoopList& list, const std::vector<AddressMove>& moves,
                  std::vector<MovedElements>& found);
  bool is_limit_shared() const;
  uint64_t used_bytes(const device::TreeState& now) const;  // of cells that were ever handed out
  uint64_t paid_cells(const device::AllocatorState& a) const;
  [[noreturn]] void throw_full(const device::TreeState& now, std::string_view who) const;
  void activate_slots(InStream& s, const CoppiceBulkLevel& level, uint64_t n, uint32_t allocator);
  device::AllocatorState make_cells_free(InStream& s, uint32_t allocator, uint64_t wanted,
                                         std::string_view who);
  void take_cells(InStream& s, const device::AllocatorState& before, uint32_t allocator, uint64_t cells);
  void take_bytes(InStream& s, uint32_t allocator, uint64_t cells, std::string_view who);
  struct AppendWork;
  AppendWork begin_append(InStream& s, uint32_t field, const int32_t* coords, uint64_t n);
  void count_elements(InStream& s, AppendWork& work);
  void sort_elements(InStream& s, AppendWork& work);
  void check_inside(InStream& s, const AppendWork& work) const;
  void plan_append(InStream& s, AppendWork& work);
  [[noreturn]] void refuse_too_long(InStream& s, const AppendWork& work);
  void allocate_chunks(InStream& s, AppendWork& work);
  void write_elements_in(InStream& s, const AppendWork& work, const void* values);
  void give_back_held_cells(InStream& s);
  void clean_cells(InStream& s);
  void collect_allocator(InStream& s, uint32_t allocator);
  void recycle_all(InStream& s, uint32_t node);
  uint64_t key_space(const std::vector<uint32_t>& path, size_t levels) const;
  struct ListWork;
  ListWork begin_list(InStream& s, uint32_t node, LoopList& list);
  void select_cells(InStream& s, ListWork& work);
  bool select_by_slots(InStream& s, ListWork& work);
  const uint32_t* expand(InStream& s, ListWork& work);
  uint64_t most_containers(uint32_t node) const;
  Count containers_in(InStream& s, const LoopList& list) const;
  uint64_t list_version(uint32_t node) const;
  void make_list(InStream& s, uint32_t node, LoopList& list);
  void make_neighbours(InStream& s, uint32_t node, LoopList& list);
  void record_list(InStream& s, LoopList& list, uint32_t node, bool with_neighbours);
  using ListKernel =
      Kernel<void(Item, device::TreeState*, const device::NodeLayout*, const device::LoopElement*)>;
  template <class Kernel>
  void run_over_chunks(InStream& s, const Kernel& kernel);
  void run_over_lists(InStream& s, const ListKernel& kernel, uint32_t node, const LoopList* parents);
  std::vector<uint32_t> path_nodes(uint32_t node) const;
  // Makes room for so many items in scratch memory, or in a list's.
  template <class T>
  void reserve_scratch(InStream& s, IntrusivePtr<Buffer>& buffer, uint64_t items);
  template <class T>
  void reserve_scratch(InStream& s, LoopList& list, IntrusivePtr<Buffer>& buffer, uint64_t items);

  RuntimeCounts* counts() const { return counts_->as<RuntimeCounts>(); }  // an address of the device

  IntrusivePtr<Device> device_;
  TreeOptions options_;
  std::mutex host_program_mutex_;
  Program host_program_, program_;
  const uint64_t serial_;
  const std::shared_ptr<const void> liveness_ = std::make_shared<char>();
  std::mutex freeze_mutex_;
  std::atomic<bool> frozen_ = false;  // true: what freeze() made is there for every thread
  std::vector<NodeDescription> nodes_;
  std::vector<FieldDescription> fields_;
  std::vector<Axis> axes_;  // of the tree, in axis order
  std::vector<device::NodeLayout> layouts_;
  std::vector<uint32_t> below_;  // ids, by NodeLayout::below
  std::vector<AllocatorStorage> allocators_;
  mutable std::mutex full_mutex_;
  std::vector<AllocatorStorage> full_;  // what allocators_ become, once it is known where that lies
  std::atomic<bool> has_full_ranges_ = true;
  bool shares_limit_ = false;  // allocators could take more together than the tree may have
  std::vector<std::unique_ptr<LoopList>> lists_;
  IntrusivePtr<Buffer> state_, root_, ambient_, device_layouts_, device_below_, scratch_keys_, scratch_cells_,
      scratch_flags_, scratch_selected_, scratch_elements_, scratch_rows_, counts_;
  uint64_t collections_ = 0;  // that the host gave, and the time that they took it
  std::chrono::steady_clock::duration collection_time_{};
  uint64_t version_ = 0;
  uint64_t lists_version_ = 0;  // of dynamic nodes' lengths
  uint64_t generation_ = 0;
  // While recording, these hold buffers that what is recorded so far uses, and numbers of lists whose
  // buffers were replaced.
  std::vector<IntrusivePtr<Buffer>> replaced_;
  std::vector<uint32_t> lost_lists_;
  bool can_change_ = false;
  NeededLists needed_lists_;  // or, where it can change, those made since its topology was committed last
};

template <class T>
void TreeStorage::reserve_scratch(InStream& s, IntrusivePtr<Buffer>& buffer, uint64_t items) {
  const uint64_t bytes = std::max<uint64_t>(items * sizeof(T), 64);
  if (buffer && buffer->reserved_bytes() >= bytes) {
    if (buffer->size_bytes() < bytes) buffer->grow(bytes);
    return;
  }
  if (buffer && s.is_recording()) replaced_.push_back(std::move(buffer));
  buffer = device_->reserve(std::max<uint64_t>(bytes * 2, 4096), bytes);
  ++generation_;
}

template <class T>
void TreeStorage::reserve_scratch(InStream& s, LoopList& list, IntrusivePtr<Buffer>& buffer, uint64_t items) {
  const Buffer* const before = buffer.get();
  reserve_scratch<T>(s, buffer, items);
  if (buffer.get() == before || !s.is_recording()) return;
  list.version = list.neighbour_version = ~uint64_t{0};
  lost_lists_.push_back(list.number);
}

// Returns the tree that a host's handle names.
inline TreeStorage* tree_of(const FieldId& id) { return static_cast<TreeStorage*>(id.tree); }

}  // namespace coppice
