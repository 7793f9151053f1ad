// Launching kernels over trees and ranges (see program.h): specializing once, growth, what
// is to be done behind a launch.
#include "sparse/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>

#include "core/error.h"
#include "core/hash.h"
#include "gpu/buffer_ranges.h"
#include "gpu/kernel_store.h"
#include "gpu/kernel_versions.h"
#include "gpu/messages.h"
#include "gpu/wait_for_code.h"
#include "sparse/binding.h"
#include "sparse/bound_launches.h"
#include "sparse/launch_errors.h"
#include "sparse/memory_uses.h"
#include "sparse/program_ptx.h"
#include "sparse/tree_storage.h"
#include "sparse/uses.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::TreeState;

namespace {

// Returns whether what pointers reach is compared with the launch's uses. Code for stepping keeps its
// functions apart, and in these it is not known whether a pointer is to a variable.
bool guards_memory(const LaunchRequest& r, const CodegenOptions& options) {
  return options.checks && !options.step && r.argument_bytes <= kMemoryUsesAt;
}

jit::SpecializeRequest specialization(const LaunchRequest& r, const Binding& b, const CodegenOptions& options,
                                      bool makes_room = false) {
  jit::SpecializeRequest s;
  s.id = kernel_id(r) + (makes_room ? "_room" : "");
  s.makes_room = makes_room;
  s.guards_memory = guards_memory(r, options);
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

// Returns the launch as a version of its kernel's file would have it (null: the program's own). A kernel
// that stayed as it was has the code that there is, unless lines are part of it.
LaunchRequest at_version(LaunchRequest r, const KernelVersion* version, const CodegenOptions& options) {
  if (version == nullptr) return r;
  const KernelVersion::Facts& facts = version->facts.find(r.name)->second;
  const auto before = version->as_before.find(r.name);
  const bool is_new = before == version->as_before.end() || lines_count(options);
  r.file = is_new ? &version->code : before->second;
  r.active_only = facts.active_only, r.effects = facts.effects;
  return r;
}
LaunchRequest at_current_version(const LaunchRequest& r, const CodegenOptions& options) {
  return at_version(r, current_kernel_version(*r.file), options);
}

// Holds what stays the same from launch to launch of one specialization.
struct Prepared final : public RefCounted {
  std::string name;
  std::vector<HandleUse> handles;
  std::string loop_path;  // of the node looped over
  Binding binding;
  IntrusivePtr<LaunchUses> uses;
  // Says why the launch must not be repeated, and what stands against making room for it; empty where it
  // may be.
  std::string why_not_repeatable;
  // This code makes room before the launch; it is null where no room is to be made, or where it cannot be.
  AsyncValueRef<LoadedCodeRef> room_code;
  // This is true on a CPU where the launch may run short of cells, and what it does must not happen twice.
  bool needs_full_ranges = false;
  std::vector<std::weak_ptr<const void>> livenesses;  // of the binding's trees
  AsyncValueRef<LoadedCodeRef> code;
  LaunchBlock block{};
  bool checks = false;
  const KernelVersion* version = nullptr;  // of the kernel's file
  uint64_t generation = 0;                 // when that was known to stand for it

  LaunchedKernel kernel() const { return {name, handles, loop_path, *uses, binding.trees}; }
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

// Returns the bytes that an item of a loop over a node must move of the values on that node, each cell
// once. A profile compares that with the device's own copying. Neighbours come from caches, and other
// nodes' values are not counted.
uint64_t item_bytes(const LaunchRequest& r) {
  const TreeStorage& tree = *r.loop.tree;
  const bool by_element = r.item == LaunchRequest::LoopItem::kEntry;
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
    launch.grain = r.item == LaunchRequest::LoopItem::kTeam ? 8 : 1024;
    return;
  }
  TreeStorage* tree = r.loop.tree.get();
  const uint32_t node = r.loop.node;
  if (!r.loop.box) launch.item_bytes = item_bytes(r);
  const bool neighbours = p.binding.needs_neighbours;
  launch.before_loop = [tree = r.loop.tree, node, neighbours](InStream& s, LaunchBlock& block) {
    LoopList& list = tree->update_list(s, node, neighbours);
    block.elements = list.elements->data();
    block.neighbours = neighbours ? list.neighbours->as<uint32_t>() : nullptr;
    block.count = &tree->list_state(list.number)->count;
  };
  launch.block.pieces = std::max(1u, p.binding.loop.pieces);
  // A task has about a thousand cells; its start costs a few hundred nanoseconds.
  launch.grain = static_cast<uint32_t>(
      std::clamp<uint64_t>(1024 / std::max<uint64_t>(1, tree->node(node).num_cells), 1, 64));
}

// Checks that what arguments lead to belongs to the program's device, as trees do (check_node() in
// binding.cc).
void check_pointers(const LaunchRequest& r, Device& device) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel {}: {} is in memory of another device", kernel_id(r), what));
  };
  for (const detail::PointerUse& pointer : std::span(r.pointers, r.num_pointers)) {
    const void* address = nullptr;
    std::memcpy(&address, r.arguments + pointer.offset, sizeof address);
    if (is_of_another_device(device.context(), address))
      refuse(fmt::format("what argument {} leads to", pointer.argument));
  }
  if (is_of_another_device(device.context(), r.loop.device_count)) refuse("the count of its range");
}

// Lets a run that makes room count from nothing.
void begin_room(InStream& s, const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kChangesTopology)) tree->begin_making_room(s);
  }
}

// Returns whether the run is to be repeated: it went as far as memory allowed. In a recording the launch
// behind it finds out whether that was enough.
bool finish_room(InStream& s, const Prepared& p) {
  bool again = false;
  for (TreeStorage* tree : p.binding.trees) {
    if (!p.uses->does_to(tree, effect::kChangesTopology)) continue;
    tree->want_what_is_removed(s);
    if (!s.is_recording()) again |= tree->resolve_shortage(s, tree->wait_read_state(s), p.name, "");
    // Only what a launch appends to has chunks that nothing is in yet.
    if (!again && p.uses->does_to(tree, effect::kAppends)) tree->hide_room(s);
  }
  if (again) begin_room(s, p);
  return again;
}

// Is called after a run that could not make all the room, or a launch that failed: loops find what it
// activated, and lists keep no chunk that nothing is in, such as those on the way to an element that was
// written by index and found no memory.
void give_up_room(InStream& s, const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kAppends)) tree->drop_room(s);
    tree->commit_topology(s);
  }
}

// Makes room in the launch's place and with its number, by which it draws the same
// random numbers, when its turn comes.
void make_room_first(Launch& launch, const IntrusivePtr<Prepared>& shared) {
  launch.room_code = shared->room_code;
  launch.make_room = [shared, grain = launch.grain, shared_bytes = launch.shared_bytes](InStream& s,
                                                                                        LaunchBlock& block) {
    // The kernel may turn out not to be one that can be run so; then the launch takes the room that there
    // is.
    wait_for_code(shared->room_code);
    if (shared->room_code.is_error()) return;
    begin_room(s, *shared);
    Launch room;
    room.name = shared->name;
    room.code = shared->room_code;
    room.block = block;
    room.grain = grain, room.shared_bytes = shared_bytes;
    room.skip_on_status = false;
    room.needs_repeat = [shared](InStream& inner, LaunchBlock&) { return finish_room(inner, *shared); };
    try {
      s.run(room);
    } catch (...) {
      if (!s.is_recording()) give_up_room(s, *shared);
      throw;
    }
    block.flags |= kNeedsRoom;
  };
}

// Gives the trees that the launch grows all memory that they may have, if they have little when its turn
// comes; all trees of the launch, if it was told where their cells will lie (`every_one`).
void take_full_ranges_first(Launch& launch, const IntrusivePtr<Prepared>& shared, bool every_one) {
  const std::vector<TreeStorage*>& trees = shared->binding.trees;
  if (std::all_of(trees.begin(), trees.end(), [](const TreeStorage* t) { return t->has_full_ranges(); }))
    return;
  launch.make_room = [shared, every_one](InStream& s, LaunchBlock&) {
    for (TreeStorage* tree : shared->binding.trees) {
      if (every_one || shared->uses->does_to(tree, effect::kActivates | effect::kAppends))
        tree->take_full_ranges(s, "kernel " + shared->name);
    }
  };
}

// Whether trees of the launch have grown, so that it is to be repeated; `now` are their states then. What
// stands against growing is told where nothing else was wrong.
bool resolve_shortages(InStream& s, const Prepared& p, bool lacked_room, const std::optional<Error>& wrong,
                       TreeState* now) {
  bool again = false;
  try {
    for (size_t t = 0; t < p.binding.trees.size(); ++t) {
      TreeStorage* const tree = p.binding.trees[t];
      now[t] = tree->wait_read_state(s);
      again |= tree->resolve_shortage(s, now[t], p.name, lacked_room ? "" : p.why_not_repeatable);
    }
  } catch (const Error&) {
    if (wrong) throw *wrong;
    throw;
  }
  return again;
}

// Nothing is collected before it is known that the launch is not repeated: it would
// miss what the first round read.
bool finish(InStream& s, const Prepared& p, Device& device, const LaunchBlock& block) {
  const Binding& b = p.binding;
  for (TreeStorage* tree : b.trees) {
    if (p.room_code && p.uses->does_to(tree, effect::kAppends)) tree->show_room(s);
  }
  if (s.is_recording()) {
    for (TreeStorage* tree : b.trees) {
      if (p.uses->does_to(tree, effect::kChangesTopology)) tree->commit_topology(s);
    }
    return false;
  }
  TreeState now[kMaxTreesPerKernel];
  bool again = false;
  try {
    bool lacked_room = false;  // in a recording: the launch itself has not run
    std::optional<Error> wrong;
    try {
      lacked_room = throw_kernel_error(s, device, p.kernel()) == DeviceStatus::kNoRoom;
      if (p.checks) check_topology_uses(s, p.kernel());
    } catch (const Error& error) {
      // One item's error hides that others found no cell. These get theirs, and the error comes again.
      if (!p.why_not_repeatable.empty()) throw;
      wrong = error;
    }
    again = resolve_shortages(s, p, lacked_room, wrong, now);
    if (wrong && !again) throw *wrong;
  } catch (...) {
    give_up_room(s, p);
    throw;
  }
  if (!again) {
    for (size_t t = 0; t < b.trees.size(); ++t) b.trees[t]->commit_topology(s, now[t]);
  } else if (device.message_log() != nullptr) {
    device.message_log()->forget(block);  // it prints all that again
  }
  return again;
}

}  // namespace

struct Program::State {
  IntrusivePtr<Device> device;
  CodegenOptions options;
  std::unordered_map<LaunchKey, IntrusivePtr<Prepared>, LaunchKeyHash> prepared;
  MemoryUseTables memory_uses;  // of launches with checks
  size_t launches_until_pruning = 0;

  IntrusivePtr<Prepared> make(const LaunchRequest& r, const KernelVersion* version);
  IntrusivePtr<Prepared> wait_make_good(const LaunchRequest& r, const KernelVersion* version);
  void renew(const LaunchRequest& r, IntrusivePtr<Prepared>& prepared);
  Launch launch_of(const LaunchRequest& r, const IntrusivePtr<Prepared>& prepared);

  // Launches of trees that are gone can never come again; without this, whoever rebuilds trees would pile
  // them up, and with them machine code. With n live entries there are at most 2n + 1 of them, and a
  // launch looks at two on average.
  void prune() {
    if (launches_until_pruning-- > 0) return;
    const size_t gone = std::erase_if(prepared, [](const auto& entry) {
      const auto& livenesses = entry.second->livenesses;
      return std::any_of(livenesses.begin(), livenesses.end(),
                         [](const auto& tree) { return tree.expired(); });
    });
    launches_until_pruning = prepared.size();
    if (gone > 0) device->kernels().release_unused();
  }
};

Program::Program(IntrusivePtr<Device> device, const CodegenOptions& options)
    : state_(std::make_unique<State>()) {
  if (!device) throw Error(ErrorCode::kInvalidArgument, "a program without a device");
  state_->device = std::move(device);
  state_->options = state_->device->codegen(options);
}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program::State& Program::state() const {
  if (state_) return *state_;
  throw Error(ErrorCode::kInvalidArgument, "a Program is used that was moved from");
}
Device& Program::device() const { return *state().device; }
void Program::wait() const {
  const AsyncValueRef<Chain> done = device().default_stream().barrier();
  coppice::wait(done);
  if (done.is_error()) throw done.error();
}

IntrusivePtr<Prepared> Program::State::make(const LaunchRequest& given, const KernelVersion* version) {
  const LaunchRequest r = at_version(given, version, options);
  auto p = make_intrusive<Prepared>();
  p->version = version;
  p->name = kernel_id(r.makes_room_for != nullptr ? *r.makes_room_for : r);
  p->handles.assign(r.handles, r.handles + r.num_handles);
  if (r.loop.tree) p->loop_path = r.loop.tree->path(r.loop.node);
  p->binding = make_binding(r, *device, options.checks);
  p->uses = coppice::uses_of(r);
  p->checks = options.checks;
  if (p->checks) tell_uses(p->binding, *p->uses);
  p->why_not_repeatable = why_not_repeatable(*p->uses);
  p->code = device->kernels().get(specialization(r, p->binding, options, r.makes_room_for != nullptr));
  // Room is made first for what must not happen twice.
  const bool needs_room =
      !p->why_not_repeatable.empty() && p->uses->does(effect::kActivates | effect::kAppends);
  p->needs_full_ranges = needs_room && device->commits_on_touch();
  if (needs_room && !device->commits_on_touch()) {
    const std::string no_room = why_no_room(r, *p->uses);
    if (no_room.empty())
      p->room_code = device->kernels().get(specialization(r, p->binding, options, true));
    else
      p->why_not_repeatable += " and " + no_room;
  }
  if (r.loop.box) add_activation_by_loop(r, *p->uses);
  p->block.version = kLaunchBlockVersion;
  // Blocks, too: a kernel over them says what happens once for each.
  const bool by_thread =
      r.item == LaunchRequest::LoopItem::kItem || r.item == LaunchRequest::LoopItem::kBlock;
  p->block.flags = by_thread ? kThreadItems : 0;
  for (size_t t = 0; t < p->binding.trees.size(); ++t) {
    p->block.trees[t] = p->binding.trees[t]->state();
    p->livenesses.push_back(p->binding.trees[t]->liveness());
  }
  return p;
}

// Compiles here and now the code that took the place of the program's own kernels: where it is refused,
// the version before stands in. Where that is refused, too, it is not the kernel that is wrong.
IntrusivePtr<Prepared> Program::State::wait_make_good(const LaunchRequest& r, const KernelVersion* version) {
  if (version == nullptr) return make(r, nullptr);
  std::string why;
  try {
    IntrusivePtr<Prepared> p = make(r, version);
    wait_for_code(p->code);
    if (!p->code.is_error()) return p;
    why = p->code.error().what();
  } catch (const Error& error) {
    why = error.what();
  }
  device->kernels().remove(kernel_id(r));  // nobody else is to meet its error
  IntrusivePtr<Prepared> last = wait_make_good(r, kernel_version_before(*r.file, *version));
  reject_kernel_version(*r.file, *version, why);
  return last;
}

void Program::State::renew(const LaunchRequest& r, IntrusivePtr<Prepared>& prepared) {
  const uint64_t generation = kernel_generation();
  const KernelVersion* const version = current_kernel_version(*r.file);
  if (!prepared || prepared->version != version) prepared = wait_make_good(r, version);
  prepared->generation = generation;
}

Launch Program::prepare(const LaunchRequest& r) {
  state().prune();
  auto [entry, fresh] = state_->prepared.try_emplace(key_of(r));
  if (fresh) note_kernel_file(*r.file);
  if (fresh || entry->second->generation != kernel_generation()) {
    try {
      state_->renew(r, entry->second);
    } catch (...) {
      state_->prepared.erase(entry);
      throw;
    }
  }
  Launch launch = state_->launch_of(r, entry->second);
  if (r.loop.box) activate_box_first(launch, r);
  return launch;
}

Launch Program::prepare_at(const LaunchRequest& r, const KernelVersion* version) {
  Launch launch = state_->launch_of(r, state_->make(r, version));
  if (r.loop.box) activate_box_first(launch, r);
  return launch;
}

BoundLaunch Program::bind_request(const LaunchRequest& r) {
  BoundLaunch bound(state().device, prepare(r));
  if (!r.file->recipe.empty()) BoundLaunches::add(bound.bound_, r, state().options);
  return bound;
}

Launch Program::State::launch_of(const LaunchRequest& r, const IntrusivePtr<Prepared>& shared) {
  const Prepared& p = *shared;
  check_pointers(r, *device);
  Launch launch;
  launch.name = p.name;
  launch.code = p.code;
  launch.block = p.block;
  launch.shared_bytes = p.binding.shared_bytes;
  std::memcpy(launch.block.arguments, r.arguments, r.argument_bytes);
  launch.keep_alive.reserve(1 + p.binding.trees.size());
  launch.keep_alive.emplace_back(shared);  // of its name, too
  for (TreeStorage* tree : p.binding.trees) launch.keep_alive.push_back(share(tree));
  launch.uses = p.uses;
  const bool knows_addresses = guards_memory(r, options);
  if (knows_addresses) {
    for (TreeStorage* tree : p.binding.trees) tree->reserve_full_ranges();
    auto table =
        memory_uses.wait_table(*this->device, *p.uses, {r.arguments, r.argument_bytes}, p.binding.trees);
    const void* const address = table->buffer->data();
    std::memcpy(launch.block.arguments + kMemoryUsesAt, &address, sizeof address);
    launch.keep_alive.emplace_back(std::move(table));
  }
  set_loop(launch, r, p);
  if (p.room_code) make_room_first(launch, shared);
  if (p.needs_full_ranges || knows_addresses) take_full_ranges_first(launch, shared, knows_addresses);
  Device* const device = this->device.get();  // outlives what its stream is given
  if (p.uses->does(effect::kChangesTopology | effect::kAdds)) {
    launch.needs_repeat = [shared, device](InStream& s, LaunchBlock& block) {
      return finish(s, *shared, *device, block);
    };
    launch.give_up = [shared](InStream& s) { give_up_room(s, *shared); };
  } else if (options.checks || is_over_blocks(r) || p.binding.names_a_field_twice) {
    launch.needs_repeat = [shared, device](InStream& s, LaunchBlock&) {
      if (s.is_recording()) return false;
      throw_kernel_error(s, *device, shared->kernel());
      if (shared->checks) check_topology_uses(s, shared->kernel());
      return false;
    };
  }
  return launch;
}

std::string ProgramPtx::of_request(Program& program, jit::PtxTarget target, const LaunchRequest& given) {
  const Program::State& s = program.state();
  const LaunchRequest r = at_current_version(given, s.options);
  Binding b = make_binding(r, *s.device, s.options.checks);
  if (s.options.checks) tell_uses(b, *coppice::uses_of(r));
  return jit::compile_ptx(specialization(r, b, s.options), target);
}

IntrusivePtr<const LaunchUses> Program::uses_of(const LaunchRequest& given) const {
  const State& s = state();
  const LaunchRequest r = at_current_version(given, s.options);
  make_binding(r, *s.device, s.options.checks);  // refuses what a launch would
  return coppice::uses_of(r);
}

std::string Program::explain(const LaunchRequest& r) const {
  return kernel_id(r) + "\n" + text_of(*uses_of(r));
}

}  // namespace coppice
