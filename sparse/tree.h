// Trees of nodes, described at run time: dense, bitmasked, pointer and dynamic nodes in
// 1 to 3 dimensions, with fields.
//
//     Tree tree(device);
//     Node leaf = tree.root().pointer({64, 64, 64}).dense({8, 8, 8});
//     Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
//
// Node and Field are small handles that share the tree. A tree is described first and used afterwards: its
// first launch (or freeze()) fixes the layout, and adding to it then is an Error. Extents need not be powers
// of two (but shifts are cheaper than divisions). Describing is not thread-safe. Using a tree is, its first
// use too; its work runs on its device's default stream, in the order in which it was given.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/intrusive_ptr.h"
#include "gpu/device.h"
#include "sparse/device/handles.h"
#include "sparse/given_coord.h"
#include "sparse/ranks/cluster.h"

namespace coppice {

class TreeStorage;
class TreeRef;
class Node;

namespace detail {
// Returns the node of a tree that a handle or a loop knows by its number. The number must be a node's.
Node node_of(TreeRef tree, uint32_t id);
}  // namespace detail

// The axes that a node can have; a node names those it divides. Fields are indexed by
// the tree's axes in this order.
enum class Axis : uint8_t { i, j, k, l, m, n, o, p };

enum class CellLayout { kStructOfArrays, kArrayOfStructs };

struct TreeOptions {
  std::string name = "tree";  // of one line
  // The lowest coordinate per axis of the tree, in axis order: a multiple of what a cell of each of its
  // nodes spans.
  std::array<int32_t, device::kMaxDims> origin{0, 0, 0};
  // All cells of the tree's pointer and dynamic nodes may take this much memory at most, one cell of zeros
  // for each of these nodes among them; more is an Error kOutOfMemory. 0: what the device has
  // (Device::memory_bytes()).
  uint64_t max_bytes = 0;
  // Keeps 8 bytes more per cell of a node with temporaries, which say what was written there, so that kernels
  // with checks find what reads before that (docs/debugging.md). COPPICE_DEBUG=checks does so for all trees.
  bool checks_temporaries = false;
};

// Says in which stages of a step a temporary field is needed, from the first up to and with the last. Stages
// are any whole numbers in the order in which the step comes to them, such as those of an enumeration.
struct Stages {
  int32_t first = INT32_MIN, last = INT32_MAX;  // all of them
  bool operator==(const Stages&) const = default;
};

// Shares a tree whose inner workings (sparse/tree_storage.h) users need not see.
class TreeRef {
 public:
  TreeRef() = default;
  TreeRef(IntrusivePtr<RefCounted> tree) : tree_(std::move(tree)) {}
  TreeStorage* get() const;
  // Errors: kInvalidArgument where there is none: of a handle that was default-made or moved from.
  TreeStorage* operator->() const { return &**this; }
  TreeStorage& operator*() const;
  explicit operator bool() const { return static_cast<bool>(tree_); }
  const IntrusivePtr<RefCounted>& counted() const { return tree_; }

 private:
  IntrusivePtr<RefCounted> tree_;
};

namespace detail {
// Names nothing once it was moved from, as the tree beside it.
struct MovableFieldId : FieldId {
  MovableFieldId() = default;
  MovableFieldId(const FieldId& id) : FieldId(id) {}
  MovableFieldId(const MovableFieldId&) = default;
  MovableFieldId& operator=(const MovableFieldId&) = default;
  MovableFieldId(MovableFieldId&& other) noexcept : FieldId(std::exchange(other.named(), {})) {}
  MovableFieldId& operator=(MovableFieldId&& other) noexcept {
    named() = std::exchange(other.named(), {});
    return *this;
  }
  FieldId& named() { return *this; }
};
}  // namespace detail

// Names a field of values of type T. Copies name the same field.
template <class T>
struct Field {
  using Value = T;
  detail::MovableFieldId id;
  TreeRef tree;
};

// Says what a node's memory is spent on.
struct NodeUsage {
  uint64_t active_cells = 0;  // of dynamic nodes: chunks
  uint64_t capacity_cells =
      0;               // that there is memory for; on the cpu, where it comes with the first use: ever used
  uint64_t bytes = 0;  // of these; the sum of the three below
  uint64_t existing_cells = 0;  // of containers whose ancestors are active; pointer nodes: their active cells
  // Pointer nodes: of all their cells, with what is below. Others: their containers, which lie in the cells
  // of the nearest pointer node above, or in the root.
  uint64_t cell_bytes = 0;
  uint64_t list_bytes = 0;          // pointer nodes: of free and of recycled cells
  uint64_t element_list_bytes = 0;  // of its loop list and neighbour table
  // Pointer and dynamic nodes: cells that were deactivated and are zero again, ready for use; those that wait
  // for the next collection; how many all collections so far have made free; and how many of these found any.
  uint64_t free_cells = 0, recycled_cells = 0, collected_cells = 0, collections = 0;
};
struct MemoryReport;  // sparse/memory_report.h

class Tree {
 public:
  // Errors: kInvalidArgument without a device, or for a name with control characters.
  explicit Tree(IntrusivePtr<Device> device, TreeOptions options = {});
  // Makes a tree that is cut over the ranks of a job (docs/ranks.md): all ranks describe it alike. Errors: as
  // above.
  Tree(const Cluster& cluster, IntrusivePtr<Device> device, TreeOptions options = {});
  Node root() const;
  // Fixes the layout now, so that a mistake in it is an Error here. Errors: kInvalidArgument.
  void freeze();
  // Starts compiling the runtime's own kernels, so that the first launches need not wait for them.
  void compile_runtime();
  // Deactivates every cell and keeps the memory; in stream order.
  AsyncValueRef<Chain> deactivate_all();
  // Returns memory that no active cell needs to the system, in stream order: free cells at the end of
  // an allocator's range with its capacity, whole pages inside other free cells, loop lists (the next
  // loop makes its own again). Cost: a pass over the free lists on the host, with a bit of scratch
  // per cell that was ever in use.
  AsyncValueRef<Chain> trim();
  // Blocks the host until the stream has answered.
  MemoryReport wait_memory_report() const;
  TreeStorage& storage() const { return *storage_; }

 private:
  TreeRef storage_;
};

class Node {
 public:
  // Add a child; extents are cells per axis. Without axes the child divides i, then j, then k, as many as
  // the nodes above have, and all others that name none. Errors: kInvalidArgument (extent below 1, another
  // number of axes, more than 3 axes in a tree, too deep, below a place that cannot have children, the
  // tree is in use already).
  Node dense(std::initializer_list<int32_t> extents) const {
    return child(device::NodeKind::kDense, {}, extents);
  }
  Node bitmasked(std::initializer_list<int32_t> extents) const {
    return child(device::NodeKind::kBitmasked, {}, extents);
  }
  Node pointer(std::initializer_list<int32_t> extents) const {
    return child(device::NodeKind::kPointer, {}, extents);
  }
  Node dense(std::initializer_list<Axis> axes, std::initializer_list<int32_t> extents) const {
    return child(device::NodeKind::kDense, axes, extents);
  }
  Node bitmasked(std::initializer_list<Axis> axes, std::initializer_list<int32_t> extents) const {
    return child(device::NodeKind::kBitmasked, axes, extents);
  }
  Node pointer(std::initializer_list<Axis> axes, std::initializer_list<int32_t> extents) const {
    return child(device::NodeKind::kPointer, axes, extents);
  }
  // Adds lists, one per cell of this node, that grow where a kernel appends (Append, list_handles.h): at
  // most `max_length` elements in chunks of `chunk_cells`, a power of two. A list is named by its cell's
  // coordinate; its own axis, when named, must be none that a node above has. Fields are all that can be
  // placed on it. Errors: as above.
  Node dynamic(int32_t max_length, int32_t chunk_cells = 64) const {
    return lists({}, max_length, chunk_cells);
  }
  Node dynamic(Axis axis, int32_t max_length, int32_t chunk_cells = 64) const {
    return lists(axis, max_length, chunk_cells);
  }
  // Chooses how the node's own fields lie in memory; struct of arrays unless said otherwise (array of
  // structs took twice as long in stencils).
  Node layout(CellLayout layout) const;

  // Adds a field with one T per cell of this node; zero at first and whenever a cell is activated again.
  template <class T>
  Field<T> place(std::string name) const {
    static_assert(device::is_value<T>, "a field's values must be trivially copyable");
    return {place_bytes(std::move(name), sizeof(T), alignof(T), {}), tree_};
  }
  // Adds a field with one T per cell of this node, for values that are needed within a step alone. Those of
  // the node that no stage needs together have the same bytes (sparse/cell_memory.h says how many): a launch
  // that stores to one ends the life of the values that shared its bytes. Whoever needs these later, by
  // reading, adding or changing in place, gets an Error of the launch or function, kInvalidArgument, which
  // names both fields and who stored. Nothing zeroes its values: a cell has none until they are stored there,
  // and on a bitmasked node those of inactive cells are anything, too (below an inactive pointer cell they
  // read as zero). The checks find reads of these. Cost: nothing but its bytes. Errors: kInvalidArgument for
  // stages of which the last comes before the first; as place().
  template <class T>
  Field<T> temporary(std::string name, Stages stages = {}) const {
    static_assert(device::is_value<T>, "a field's values must be trivially copyable");
    return {place_bytes(std::move(name), sizeof(T), alignof(T), stages), tree_};
  }

  // Activate and deactivate cells in stream order; coordinates are in tree axes. Errors arrive with the
  // async value (kOutOfRange where one of them is outside the domain; then nothing has been activated or
  // deactivated); kInvalidArgument is thrown where a list as {{3, 4}, {100, 7}} has others than as many
  // numbers as the tree has axes, and where cells of a dense node are to be deactivated, which are active
  // as long as what is above them. Activation sorts, and allocates once: cells are numbered in coordinate
  // order whatever the number of threads.
  AsyncValueRef<Chain> activate(std::initializer_list<detail::GivenCoord> coords) const {
    return activate(checked(coords));
  }
  AsyncValueRef<Chain> deactivate(std::initializer_list<detail::GivenCoord> coords) const {
    return deactivate(checked(coords));
  }
  AsyncValueRef<Chain> activate(std::vector<std::array<int32_t, 3>> coords) const;
  // Takes the coordinates from memory of the device (a Buffer's), i32[n][3], missing leading axes 0, which
  // must stay until then.
  AsyncValueRef<Chain> activate(const int32_t* coords, uint64_t n) const;
  AsyncValueRef<Chain> deactivate(std::vector<std::array<int32_t, 3>> coords) const;
  // Deactivates all cells of the node, and what lies below them. Errors: kInvalidArgument for a dense node
  // with nothing below it that could be deactivated.
  AsyncValueRef<Chain> deactivate_all() const;
  // Makes room for so many cells of a pointer node, or chunks of a dynamic one, in all, in stream order.
  // Needed where memory is mapped before a launch, and only for launches that cannot be repeated and whose
  // needs cannot be found out before they run (docs/sparse.md, "Running out of memory"). Errors:
  // kInvalidArgument for other nodes, kOutOfMemory.
  AsyncValueRef<Chain> reserve(uint64_t cells) const;
  // Blocks the host until the stream has answered. Errors: kInvalidArgument for a wrong number of
  // coordinates.
  bool wait_is_active(const detail::GivenCoord& coord) const;
  // Returns the length of the list at a coordinate of a dynamic node; 0 where there is none. Errors:
  // kInvalidArgument on another node.
  uint64_t wait_length(const detail::GivenCoord& coord) const;
  // Containers of this node that a loop over it visits: of a tree over ranks this rank's own, and all ranks
  // ask together.
  uint64_t wait_num_active_blocks() const;
  // Takes a pass over the masks of a bitmasked node. Of a tree over ranks it is this rank's, with its
  // mirrors.
  NodeUsage wait_usage() const;
  uint64_t wait_num_active_cells() const { return wait_usage().active_cells; }
  // A number of the tree that is another one whenever containers that loops visit have come or gone: what was
  // derived from them stays good while it stays the same. Single bits of a bitmasked node and lengths of
  // lists may change without. Blocks the host until the stream has answered.
  uint64_t wait_topology_version() const;

  // Names the node in a kernel's Topology argument, for activation without a value.
  Field<unsigned char> topology() const;

  std::string path() const;  // "root.pointer[64,64,64].dense[8,8,8]", for messages
  uint32_t id() const { return id_; }
  TreeStorage& storage() const { return *tree_; }
  const TreeRef& tree() const { return tree_; }

 private:
  friend class Tree;
  friend Node detail::node_of(TreeRef tree, uint32_t id);
  Node(TreeRef tree, uint32_t id) : tree_(std::move(tree)), id_(id) {}
  Node lists(std::optional<Axis> axis, int32_t max_length, int32_t chunk_cells) const;
  Node child(device::NodeKind kind, std::vector<Axis> axes, std::vector<int32_t> extents) const;
  FieldId place_bytes(std::string name, size_t bytes, size_t alignment, std::optional<Stages> stages) const;
  std::vector<std::array<int32_t, 3>> checked(std::initializer_list<detail::GivenCoord> coords) const;

  TreeRef tree_;
  uint32_t id_;
};

}  // namespace coppice
