// Launching kernels over trees and ranges (see program.h): binding handles, checking roles, specializing once.
#include "sparse/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "core/error.h"
#include "core/hash.h"
#include "gpu/kernel_store.h"
#include "gpu/messages.h"
#include "sparse/launch_errors.h"
#include "sparse/role_table.h"
#include "sparse/tree_storage.h"
#include "sparse/uses.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::FieldBinding;
using device::LoopLayout;
using device::NodeKind;
using device::NodeLayout;
using device::TreeState;

namespace {

TreeStorage* tree_of(const FieldId& id) { return static_cast<TreeStorage*>(id.tree); }

std::string kernel_id(const LaunchRequest& r) { return fmt::format("{}.{}", r.file->name, r.name); }
[[noreturn]] void refuse(const LaunchRequest& r, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("kernel {}: {}", kernel_id(r), why));
}

// The constants of a specialization and what its launches need besides.
struct Binding {
  std::vector<NodeLayout> nodes;
  std::vector<FieldBinding> fields;
  LoopLayout loop{};
  std::vector<TreeStorage*> trees;
  bool needs_neighbours = false;
  uint32_t shared_bytes = 0;  // of all tiles
  bool names_a_field_twice = false;

  uint32_t tree_slot(const LaunchRequest& r, TreeStorage* tree) {
    const auto found = std::find(trees.begin(), trees.end(), tree);
    if (found != trees.end()) return static_cast<uint32_t>(found - trees.begin());
    if (trees.size() >= kMaxTreesPerKernel)
      refuse(r, fmt::format("it touches more than {} trees", kMaxTreesPerKernel));
    trees.push_back(tree);
    return static_cast<uint32_t>(trees.size() - 1);
  }
  std::vector<std::pair<TreeStorage*, uint32_t>> node_keys;
  uint32_t node_slot(const LaunchRequest& r, TreeStorage* tree, uint32_t node) {
    const std::pair key(tree, node);
    const auto found = std::find(node_keys.begin(), node_keys.end(), key);
    if (found != node_keys.end()) return static_cast<uint32_t>(found - node_keys.begin());
    if (node_keys.size() >= device::kMaxNodesPerKernel)
      refuse(r, fmt::format("it touches more than {} nodes", device::kMaxNodesPerKernel));
    node_keys.push_back(key), nodes.push_back(tree->layout(node));
    return static_cast<uint32_t>(node_keys.size() - 1);
  }
};

// Lists are appended to and read; other roles mean one value per cell.
void check_list_role(const LaunchRequest& r, const HandleUse& h) {
  const bool is_list = tree_of(h.id)->node(h.id.node).kind == NodeKind::kDynamic;
  if (h.role == Role::kAppend && !is_list)
    refuse(r, fmt::format("it appends to field {}, which is not on a dynamic node", field_name(h)));
  if (is_list && h.id.field != kNoField && (h.role == Role::kGrow || h.role == Role::kAccumulate))
    refuse(r, fmt::format("field {} has lists of values; use Append, or Read", field_name(h)));
}

bool is_over_blocks(const LaunchRequest& r) {
  return r.place == LaunchRequest::Place::kBlock || r.place == LaunchRequest::Place::kBlockTeam;
}

// What is looped over is what the kernel's place is of.
void check_loop(const LaunchRequest& r) {
  using Place = LaunchRequest::Place;
  TreeStorage* tree = r.loop.tree.get();
  if (r.place == Place::kItem || r.place == Place::kTeam) {
    if (tree == nullptr) return;
    refuse(r, fmt::format("it takes {} and loops over a range: range(n)",
                          r.place == Place::kItem ? "an Item" : "a Team"));
  }
  const bool entries = r.place == Place::kEntry;
  const bool lists = tree != nullptr && tree->node(r.loop.node).kind == NodeKind::kDynamic;
  if (entries && !lists)
    refuse(r, fmt::format("it takes an Entry and loops over a dynamic node: over(lists){}",
                          tree == nullptr ? "" : fmt::format("; {} is none", tree->path(r.loop.node))));
  if (tree == nullptr) refuse(r, "it takes a Cell or Block and loops over a node: over(node)");
  if (lists && !entries)
    refuse(r, fmt::format(
                  "it takes a Cell or Block, and {} is a dynamic node, which is looped over with an Entry",
                  tree->path(r.loop.node)));
}

void check_roles(const LaunchRequest& r) {
  TreeStorage* loop_tree = r.loop.tree.get();
  using Place = LaunchRequest::Place;
  const bool cells = r.place == Place::kCell, blocks = is_over_blocks(r);
  check_loop(r);
  if (loop_tree != nullptr && static_cast<int>(loop_tree->dims()) != r.place_dims) {
    refuse(r, fmt::format("it loops in {} dimensions, tree '{}' has {}", r.place_dims,
                          loop_tree->options().name, loop_tree->dims()));
  }
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const HandleUse& h = r.handles[i];
    const bool own = h.role == Role::kWrite || h.role == Role::kUpdate;
    check_list_role(r, h);
    if (h.role == Role::kGrow || h.role == Role::kAccumulate || h.role == Role::kAppend) continue;
    const bool same_node = tree_of(h.id) == loop_tree && h.id.node == r.loop.node;
    if ((cells || r.place == Place::kEntry) && own && !same_node)
      refuse(r, fmt::format("it writes field {}, which is not on the node looped over, {}", field_name(h),
                            loop_tree->path(r.loop.node)));
    if ((r.place == Place::kItem || r.place == Place::kTeam) && own)
      refuse(r, fmt::format("a range has no own cell to write in field {}; use Accumulate or Grow",
                            field_name(h)));
    if (blocks && own && !same_node) {
      const bool sibling = tree_of(h.id) == loop_tree &&
                           loop_tree->node(h.id.node).parent == loop_tree->node(r.loop.node).parent;
      if (!sibling)
        refuse(r, fmt::format("it writes field {}, which is neither on {} nor beside it", field_name(h),
                              loop_tree->path(r.loop.node)));
    }
  }
}

bool is_same_field(const HandleUse& a, const HandleUse& b) {
  return a.id.tree == b.id.tree && a.id.field == b.id.field && a.id.field != kNoField;
}
RoleUse use_of(const HandleUse& h) { return {h.role, h.radius}; }

// Two handles of one field. A field that its own cells change is marked, so that reading others of it is an error.
void check_pairs(const LaunchRequest& r, Binding& b) {
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    for (uint32_t j = i + 1; j < r.num_handles; ++j) {
      const HandleUse &one = r.handles[i], &other = r.handles[j];
      if (!is_same_field(one, other)) continue;
      const std::string_view why = why_not_together(use_of(one), use_of(other));
      if (!why.empty()) refuse(r, fmt::format("field {} {}", field_name(one), why));
      b.names_a_field_twice = true;
      if (changes_own_cells(use_of(one))) b.fields[j].access |= device::kChangedHere;
      if (changes_own_cells(use_of(other))) b.fields[i].access |= device::kChangedHere;
    }
  }
}

// Which handles get tiles and whether rows are blended: both need the storage to suffice. What blending computes
// of inactive cells is dropped, but a check could not drop its complaints.
void choose_tiles(const LaunchRequest& r, Binding& b, bool checks) {
  TreeStorage& tree = *r.loop.tree;
  const NodeDescription& n = tree.node(r.loop.node);
  const std::array<uint32_t, 3>& e = n.extent;
  // A pointer node's values are in its cells, not in rows of its container.
  const bool table = tree.has_neighbour_table(r.loop.node) && n.kind != NodeKind::kPointer;
  uint64_t row_bytes = 0;
  // Two handles of one field would not see each other's private rows.
  bool blend = n.kind == NodeKind::kBitmasked && !r.active_only && !checks && !b.names_a_field_twice;
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const HandleUse& h = r.handles[i];
    if (h.role == Role::kWrite)
      row_bytes += device::align_up(uint64_t{e[2]} * h.value_bytes, 64);
    else if (h.role != Role::kRead)
      blend = false;
    if (h.radius == 0 || tree_of(h.id) != &tree || h.id.node != r.loop.node || !table) continue;
    bool fits = true;
    for (int d = 3 - static_cast<int>(tree.dims()); d < 3; ++d)
      fits = fits && e[d] >= static_cast<uint32_t>(h.radius);
    const int32_t extent[3] = {static_cast<int32_t>(e[0]), static_cast<int32_t>(e[1]),
                               static_cast<int32_t>(e[2])};
    if (!fits) continue;
    const auto bytes_of = h.role == Role::kRead ? device::tile_bytes : device::sum_tile_bytes;
    const uint32_t bytes = bytes_of(extent, tree.dims() > 2, tree.dims() > 1, h.radius, h.value_bytes);
    const bool tiled = b.shared_bytes + bytes <= device::kTileBytes;
    if (!tiled && h.role != Role::kRead) continue;
    if (tiled) b.shared_bytes += bytes;
    (tiled ? b.loop.tiled : b.loop.tabled) |= 1u << i;
    b.needs_neighbours = true;
  }
  b.loop.blend = blend && row_bytes > 0 && row_bytes <= device::kRowBytes;
  // A tile is filled once for all of its leaf.
  b.loop.pieces = 1;
  if (b.loop.tiled == 0 && n.num_cells > device::kPieceCells)
    device::cut_into_pieces(b.loop, b.nodes[b.loop.node].level[b.nodes[b.loop.node].depth - 1].extent);
}

// What of a block's values a kernel can have by pointer, and whether its node has the loop's cells.
uint32_t block_access(const LaunchRequest& r, const HandleUse& h) {
  TreeStorage* tree = tree_of(h.id);
  const NodeDescription& n = tree->node(h.id.node);
  uint32_t access = 0;
  if (tree == r.loop.tree.get() && n.parent == tree->node(r.loop.node).parent) access |= device::kBlockData;
  if (tree->has_neighbour_table(h.id.node)) access |= device::kNeighbourData;
  if (tree == r.loop.tree.get() && has_same_cells(tree->layout(h.id.node), tree->layout(r.loop.node)))
    access |= device::kSameCells;
  if (n.kind != NodeKind::kPointer && tree->field(h.id.field).stride == h.value_bytes)
    access |= device::kContiguous;
  return access;
}

FieldBinding bind_field(const LaunchRequest& r, const HandleUse& h) {
  TreeStorage* tree = tree_of(h.id);
  const FieldDescription& d = tree->field(h.id.field);
  if (d.bytes != h.value_bytes)
    refuse(r, fmt::format("field {} has values of {} bytes, the handle's have {}", field_name(h), d.bytes,
                          h.value_bytes));
  FieldBinding f{};
  f.offset = d.offset, f.stride = d.stride, f.value_bytes = h.value_bytes;
  f.num_values = static_cast<uint32_t>(tree->node(h.id.node).num_cells);
  f.access = block_access(r, h);
  const bool own = h.role == Role::kWrite || h.role == Role::kUpdate;
  if (is_over_blocks(r) && own && !(f.access & device::kContiguous))
    refuse(r,
           fmt::format(
               "it writes field {} by data(), which needs values side by side, not those of a pointer node "
               "or an array of structs",
               field_name(h)));
  return f;
}

// Memory of another device, and nodes without cells, are told before anything is prepared.
void check_node(const LaunchRequest& r, const TreeStorage& tree, uint32_t node, const Device& device,
                std::string_view what) {
  if (&tree.device() != &device)
    refuse(r, fmt::format("{} {}, on another device than the program", what, tree.path(node)));
  if (node == 0) refuse(r, fmt::format("{} {}, a tree's root, which has no cells", what, tree.path(node)));
}

Binding make_binding(const LaunchRequest& r, const Device& device, bool checks) {
  Binding b;
  if (r.loop.tree) {
    check_node(r, *r.loop.tree, r.loop.node, device, "the node looped over is");
    r.loop.tree->freeze();
    b.loop.tree = b.tree_slot(r, r.loop.tree.get());
    b.loop.node = b.node_slot(r, r.loop.tree.get(), r.loop.node);
  }
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const HandleUse& h = r.handles[i];
    TreeStorage* tree = tree_of(h.id);
    if (tree == nullptr) refuse(r, fmt::format("handle {} names no field", i + 1));
    check_node(r, *tree, h.id.node, device, fmt::format("handle {} is on", i + 1));
    tree->freeze();
    FieldBinding f = h.id.field == kNoField ? FieldBinding{} : bind_field(r, h);
    f.tree = b.tree_slot(r, tree);
    f.node = b.node_slot(r, tree, h.id.node);
    b.fields.push_back(f);
  }
  b.loop.box = r.box_at;
  check_roles(r);
  check_pairs(r, b);
  if (r.place == LaunchRequest::Place::kCell) choose_tiles(r, b, checks);
  if (is_over_blocks(r)) {
    b.shared_bytes = r.fast_bytes;
    b.needs_neighbours = r.loop.tree->has_neighbour_table(r.loop.node);
  }
  return b;
}

jit::SpecializeRequest specialization(const LaunchRequest& r, const Binding& b,
                                      const jit::CodegenOptions& options, bool makes_room = false) {
  jit::SpecializeRequest s;
  s.id = kernel_id(r) + (makes_room ? "_room" : "");
  s.makes_room = makes_room;
  s.file = r.file;
  s.entry = fmt::format("coppice_kernel_{}", r.name);
  s.shared_bytes = b.shared_bytes;
  s.options = options;
  std::vector<HandleFacts> handles;
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) handles.push_back(facts_of(h, r.loop));
  s.why_misused = [handles = std::move(handles),
                   loop = r.loop.tree ? r.loop.tree->path(r.loop.node) : std::string("a range")](
                      uint32_t what, uint32_t binding, uint32_t given) {
    return binding < handles.size()
               ? misuse_text(static_cast<DeviceStatus>(what), handles[binding], given, loop)
               : std::string();
  };
  s.constants = {{"coppice_nodes", std::as_bytes(std::span(b.nodes))},
                 {"coppice_fields", std::as_bytes(std::span(b.fields))},
                 {"coppice_loop", std::as_bytes(std::span(&b.loop, 1))}};
  return s;
}

// What stays the same from launch to launch of one specialization.
struct Prepared final : public RefCounted {
  std::string name;
  std::vector<HandleUse> handles;
  std::string loop_path;  // of the node looped over
  Binding binding;
  IntrusivePtr<LaunchUses> uses;
  // Empty where it may be repeated; and what stands against making room for it, where something does.
  std::string why_not_repeatable;
  // Of the code that makes room before the launch; null where none is to be made, or where it cannot.
  AsyncValueRef<LoadedCodeRef> room_code;
  std::vector<std::weak_ptr<const void>> lives;  // of the binding's trees
  AsyncValueRef<LoadedCodeRef> code;
  LaunchBlock block{};
};

using LaunchKey = std::vector<uint64_t>;
struct LaunchKeyHash {
  size_t operator()(const LaunchKey& key) const { return hash64(std::as_bytes(std::span(key))); }
};

LaunchKey key_of(const LaunchRequest& r) {
  // Trees count by serial number: an address may be used again by a later tree.
  LaunchKey key{reinterpret_cast<uint64_t>(r.file), reinterpret_cast<uint64_t>(r.name.data()),
                r.loop.tree ? r.loop.tree->serial() : 0, r.loop.node, r.box_at};
  if (const LaunchRequest* other = r.makes_room_for) {
    key.push_back(reinterpret_cast<uint64_t>(other->file));
    key.push_back(reinterpret_cast<uint64_t>(other->name.data()));
  }
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    key.push_back(r.handles[i].id.tree != nullptr ? tree_of(r.handles[i].id)->serial() : 0);
    key.push_back(uint64_t{r.handles[i].id.node} << 32 | r.handles[i].id.field);
  }
  return key;
}

// What an item of a loop over a node must move of the values on that node, each cell once: what a profile compares with
// the device's own copying. Neighbours come from caches, and other nodes' values are not counted.
uint64_t item_bytes(const LaunchRequest& r) {
  const TreeStorage& tree = *r.loop.tree;
  const bool by_element = r.place == LaunchRequest::Place::kEntry;
  const uint64_t cells = by_element ? 1 : tree.node(r.loop.node).num_cells;
  uint64_t bytes = 0;
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) {
    if (tree_of(h.id) != &tree || h.id.node != r.loop.node) continue;
    const bool moves_twice = h.role == Role::kUpdate || h.role == Role::kAccumulate;
    bytes += (moves_twice ? 2 : 1) * cells * h.value_bytes;
  }
  return bytes;
}

// Loops are filled in when the launch's turn comes: earlier launches may have changed the topology.
void set_loop(Launch& launch, const LaunchRequest& r, const Prepared& p) {
  if (!r.loop.tree) {
    launch.block.loop_begin = r.loop.begin;
    launch.block.item_count = r.loop.count;
    launch.block.count = r.loop.device_count;
    launch.grain = r.place == LaunchRequest::Place::kTeam ? 8 : 1024;
    return;
  }
  TreeStorage* tree = r.loop.tree.get();
  const uint32_t node = r.loop.node;
  if (!r.loop.box) launch.item_bytes = item_bytes(r);
  const bool neighbours = p.binding.needs_neighbours;
  launch.prepare = [tree = r.loop.tree, node, neighbours](LaunchBlock& block) {
    ElementList& list = tree->update_list(node, neighbours);
    block.elements = list.elements->data();
    block.neighbours = neighbours ? list.neighbours->as<uint32_t>() : nullptr;
    block.count = &tree->list_state(list.number)->count;
  };
  launch.block.pieces = std::max(1u, p.binding.loop.pieces);
  // About a thousand cells per task; a task's start costs a few hundred nanoseconds.
  launch.grain = static_cast<uint32_t>(
      std::clamp<uint64_t>(1024 / std::max<uint64_t>(1, tree->node(node).num_cells), 1, 64));
}

// Lets a run that makes room count from nothing.
void begin_room(const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kChangesTopology)) tree->begin_making_room();
  }
}

// It went as far as memory allowed. In a recording the launch behind it finds out whether that was enough.
bool finish_room(const Prepared& p, Device& device) {
  const bool is_recording = device.default_stream().is_recording();
  bool again = false;
  for (TreeStorage* tree : p.binding.trees) {
    if (!p.uses->does_to(tree, effect::kChangesTopology)) continue;
    tree->want_what_is_removed();
    if (!is_recording) again |= tree->resolve_shortage(tree->wait_read_state(), p.name, "");
    // Only what a launch appends to has chunks that nothing is in yet.
    if (!again && p.uses->does_to(tree, effect::kAppends)) tree->hide_room();
  }
  if (again) begin_room(p);
  return again;
}

// After a run that could not make all of it, or a launch that failed: loops find what it activated, and lists keep no chunk
// that nothing is in, such as those on the way to an element that was written by index and found no memory.
void give_up_room(const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kAppends)) tree->drop_room();
    tree->settle();
  }
}

// Makes room in the launch's place and with its number, by which it draws the same random numbers, when its turn comes.
void make_room_first(Launch& launch, const IntrusivePtr<Prepared>& shared, Device* device) {
  launch.make_room = [shared, device, grain = launch.grain,
                      shared_bytes = launch.shared_bytes](LaunchBlock& block) {
    // Where the kernel turns out not to be one that can be run so, the launch takes the room that there is.
    wait(shared->room_code);
    if (shared->room_code.is_error()) return;
    begin_room(*shared);
    Launch room;
    room.name = shared->name;
    room.code = shared->room_code;
    room.block = block;
    room.grain = grain, room.shared_bytes = shared_bytes;
    room.skip_on_status = false;
    room.finish = [shared, device](LaunchBlock&) { return finish_room(*shared, *device); };
    try {
      device->default_stream().run_inline(room);
    } catch (...) {
      if (!device->default_stream().is_recording()) give_up_room(*shared);
      throw;
    }
    block.flags |= kNeedsRoom;
  };
}

// Nothing is collected before it is known that the launch is not repeated: it would miss what the first round read.
bool finish(const Prepared& p, Device& device, const LaunchBlock& block) {
  const Binding& b = p.binding;
  for (TreeStorage* tree : b.trees) {
    if (p.room_code && p.uses->does_to(tree, effect::kAppends)) tree->show_room();
  }
  if (device.default_stream().is_recording()) {
    for (TreeStorage* tree : b.trees) {
      if (p.uses->does_to(tree, effect::kChangesTopology)) tree->record_settling();
    }
    return false;
  }
  TreeState now[kMaxTreesPerKernel];
  bool again = false;
  try {
    // Of a recording: the launch itself has not run.
    const bool lacked_room =
        throw_kernel_error(device, p.name, p.handles, p.loop_path) == DeviceStatus::kNoRoom;
    for (size_t t = 0; t < b.trees.size(); ++t) {
      now[t] = b.trees[t]->wait_read_state();
      again |= b.trees[t]->resolve_shortage(now[t], p.name, lacked_room ? "" : p.why_not_repeatable);
    }
  } catch (...) {
    give_up_room(p);
    throw;
  }
  if (!again) {
    for (size_t t = 0; t < b.trees.size(); ++t) b.trees[t]->settle(now[t]);
  } else if (device.message_log() != nullptr) {
    device.message_log()->forget(block);  // it prints all that again
  }
  return again;
}

}  // namespace

struct Program::State {
  IntrusivePtr<Device> device;
  jit::CodegenOptions options;
  std::unordered_map<LaunchKey, IntrusivePtr<Prepared>, LaunchKeyHash> prepared;
  size_t launches_until_pruning = 0;

  // Launches of trees that are gone can never come again; without this, whoever rebuilds trees would pile them up, and
  // with them machine code. With n live entries there are at most 2n + 1 of them, and a launch looks at two on average.
  void prune() {
    if (launches_until_pruning-- > 0) return;
    const size_t gone = std::erase_if(prepared, [](const auto& entry) {
      const auto& lives = entry.second->lives;
      return std::any_of(lives.begin(), lives.end(), [](const auto& tree) { return tree.expired(); });
    });
    launches_until_pruning = prepared.size();
    if (gone > 0) device->kernels().release_unused();
  }
};

Program::Program(IntrusivePtr<Device> device, const jit::CodegenOptions& options)
    : state_(std::make_unique<State>()) {
  state_->device = std::move(device);
  state_->options = state_->device->codegen(options);
}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Device& Program::device() const { return *state_->device; }
void Program::wait() const {
  const AsyncValueRef<Chain> done = device().default_stream().barrier();
  coppice::wait(done);
  if (done.is_error()) throw done.error();
}

Launch Program::prepare(const LaunchRequest& r) {
  state_->prune();
  auto [entry, fresh] = state_->prepared.try_emplace(key_of(r));
  if (fresh) {
    try {
      auto p = make_intrusive<Prepared>();
      p->name = kernel_id(r.makes_room_for != nullptr ? *r.makes_room_for : r);
      p->handles.assign(r.handles, r.handles + r.num_handles);
      if (r.loop.tree) p->loop_path = r.loop.tree->path(r.loop.node);
      p->binding = make_binding(r, *state_->device, state_->options.checks);
      p->uses = uses_of(r);
      p->why_not_repeatable = why_not_repeatable(*p->uses);
      p->code = state_->device->kernels().get(
          specialization(r, p->binding, state_->options, r.makes_room_for != nullptr));
      // Where memory is mapped before a launch, room is made first for what must not happen twice.
      if (!state_->device->commits_on_touch() && !p->why_not_repeatable.empty() &&
          p->uses->does(effect::kActivates | effect::kAppends)) {
        const std::string no_room = why_no_room(r, *p->uses);
        if (no_room.empty())
          p->room_code = state_->device->kernels().get(specialization(r, p->binding, state_->options, true));
        else
          p->why_not_repeatable += " and " + no_room;
      }
      if (r.loop.box) add_activation_by_loop(r, *p->uses);
      p->block.version = kLaunchBlockVersion;
      // Blocks, too: a kernel over them says what happens once for each.
      const bool by_thread =
          r.place == LaunchRequest::Place::kItem || r.place == LaunchRequest::Place::kBlock;
      p->block.flags = by_thread ? kThreadItems : 0;
      for (size_t t = 0; t < p->binding.trees.size(); ++t) {
        p->block.trees[t] = p->binding.trees[t]->state();
        p->lives.push_back(p->binding.trees[t]->life());
      }
      entry->second = std::move(p);
    } catch (...) {
      state_->prepared.erase(entry);
      throw;
    }
  }
  const IntrusivePtr<Prepared> shared = entry->second;
  const Prepared& p = *shared;
  Launch launch;
  launch.name = p.name;
  launch.code = p.code;
  launch.block = p.block;
  launch.shared_bytes = p.binding.shared_bytes;
  std::memcpy(launch.block.arguments, r.arguments, r.argument_bytes);
  launch.keep_alive.reserve(1 + p.binding.trees.size());
  launch.keep_alive.emplace_back(shared);  // of its name, too
  for (TreeStorage* tree : p.binding.trees) launch.keep_alive.emplace_back(tree);
  launch.uses = p.uses;
  set_loop(launch, r, p);
  if (p.room_code) make_room_first(launch, shared, state_->device.get());
  if (r.loop.box) activate_box_first(launch, r);
  Device* const device = state_->device.get();  // outlives what its stream is given
  if (p.uses->does(effect::kChangesTopology | effect::kAdds)) {
    launch.finish = [shared, device](LaunchBlock& block) { return finish(*shared, *device, block); };
  } else if (state_->options.checks || is_over_blocks(r) || p.binding.names_a_field_twice) {
    launch.finish = [shared, device](LaunchBlock&) {
      if (!device->default_stream().is_recording())
        throw_kernel_error(*device, shared->name, shared->handles, shared->loop_path);
      return false;
    };
  }
  return launch;
}

std::string Program::ptx_of(const LaunchRequest& r, jit::PtxTarget target) {
  const Binding b = make_binding(r, *state_->device, state_->options.checks);
  return jit::compile_ptx(specialization(r, b, state_->options), target);
}

}  // namespace coppice
