// Preparing launches (see prepared_launch.h): what is bound, compiled, looped over and handed on.
#include "sparse/prepared_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/error.h"
#include "gpu/buffer_ranges.h"
#include "gpu/kernel_versions.h"
#include "gpu/wait_for_code.h"
#include "sparse/launch_growth.h"
#include "sparse/specialization.h"
#include "sparse/tree_storage.h"
#include "sparse/uses.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;

namespace {

// Returns the bytes that an item of a loop over a node must move of the values on that node, each cell
// once. A profile compares that with the device's own copying. Neighbours come from caches, and other
// nodes' values are not counted.
uint64_t item_bytes(const LaunchRequest& r) {
  const TreeStorage* const looped = r.loop.tree.get();
  const bool by_element = r.item == LaunchRequest::LoopItem::kEntry;
  const uint64_t cells = by_element ? 1 : looped->layout().node(r.loop.node).num_cells;
  uint64_t bytes = 0;
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) {
    if (tree_of(h.id) != looped || h.id.node != r.loop.node) continue;
    const bool moves_twice =
        h.role == Role::kUpdate || h.role == Role::kAccumulate || h.role == Role::kAtomic;
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
    LoopList& list = tree->lists().update(s, node, neighbours);
    block.elements = list.elements->data();
    block.neighbours = neighbours ? list.neighbours->as<uint32_t>() : nullptr;
    block.count = &tree->memory().list_state(list.number)->count;
  };
  launch.block.pieces = std::max(1u, p.binding.loop.pieces);
  // A task has about a thousand cells; its start costs a few hundred nanoseconds.
  launch.grain = static_cast<uint32_t>(
      std::clamp<uint64_t>(1024 / std::max<uint64_t>(1, tree->layout().node(node).num_cells), 1, 64));
}

// Checks that what arguments lead to belongs to the program's device, as trees do (check_node() in
// binding.cc).
void check_pointers(const LaunchRequest& r, Device& device) {
  const auto refuse = [&](const std::string& what) {
    refuse_launch(r, what + " is in memory of another device");
  };
  for (const detail::PointerUse& pointer : std::span(r.pointers, r.num_pointers)) {
    const void* address = nullptr;
    std::memcpy(&address, r.arguments + pointer.offset, sizeof address);
    if (is_of_another_device(device.context(), address))
      refuse(fmt::format("what argument {} leads to", pointer.argument));
  }
  if (const uint64_t* const count = r.loop.device_count; count != nullptr) {
    if (is_of_another_device(device.context(), count)) refuse("the count of its range");
    if (const std::string why = why_no_item(count, sizeof *count); !why.empty())
      refuse_launch(r, "the count of its range " + why);
  }
  for (const detail::SlotUse& use : r.slots) {
    if (&use.slot->device() != &device) refuse(fmt::format("the slot of argument {}", use.argument));
  }
}

LaunchBlock first_block(const LaunchRequest& r, const Binding& binding) {
  LaunchBlock block{};
  block.version = kLaunchBlockVersion;
  // Blocks, too: a kernel over them says what happens once for each.
  const bool by_thread =
      r.item == LaunchRequest::LoopItem::kItem || r.item == LaunchRequest::LoopItem::kBlock;
  block.flags = by_thread ? kThreadItems : binding.loop.tiled != 0 ? kItemRuns : 0;
  for (size_t t = 0; t < binding.trees.size(); ++t) block.trees[t] = binding.trees[t]->memory().state();
  return block;
}

// Decides what is done behind the launch.
void set_end(Launch& launch, const IntrusivePtr<Prepared>& shared, Device* device, bool is_checked) {
  // Errors of the checks name them.
  std::vector<TemporaryArgument> temporaries;
  if (shared->checks) temporaries = launch.temporaries;
  if (shared->uses->does(effect::kChangesTopology)) {
    launch.needs_repeat = [shared, device, temporaries = std::move(temporaries)](InStream& s,
                                                                                 LaunchBlock& block) {
      return finish_growth(s, *shared, *device, block, temporaries);
    };
    launch.give_up = [shared](InStream& s) { give_up_room(s, *shared); };
    launch.tell_changes = [shared](InStream& s, uint64_t number) { tell_changes(s, *shared, number); };
  } else if (is_checked || shared->uses->does(effect::kAdds)) {
    launch.throw_error = [shared, device, temporaries = std::move(temporaries)](InStream& s) {
      const LaunchedKernel kernel = shared->kernel(temporaries);
      throw_kernel_error(s, *device, kernel);
      if (shared->checks) check_topology_uses(s, kernel);
    };
  }
}

// On a cpu device of one thread no two launches run at the same time, so that sums need no locked
// instructions, which take most of the time of a kernel that adds (gpu/device/cpu.device.cc).
void tell_alone(jit::SpecializeRequest& code, const LaunchRequest& r, const Device& device) {
  static constexpr uint32_t kYes = 1;
  const bool adds = std::any_of(r.handles, r.handles + r.num_handles,
                                [](const HandleUse& h) { return h.role == Role::kAccumulate; });
  if (adds && device.name() == "cpu" && device.threads() == 1)
    code.constants.push_back({"coppice_is_alone", std::as_bytes(std::span(&kYes, 1))});
}

}  // namespace

LaunchMaker::LaunchMaker(IntrusivePtr<Device> device, const CodegenOptions& options)
    : device_(std::move(device)), options_(device_->codegen(options)) {}

IntrusivePtr<Prepared> LaunchMaker::prepare(const LaunchRequest& given, const KernelVersion* version) const {
  const LaunchRequest r = at_version(given, version, options_);
  auto p = make_intrusive<Prepared>();
  p->version = version;
  p->name = kernel_id(r.makes_room_for != nullptr ? *r.makes_room_for : r);
  p->handles.assign(r.handles, r.handles + r.num_handles);
  p->binding = make_binding(r, *device_, options_.checks);
  if (r.loop.tree) p->loop_path = r.loop.tree->layout().path(r.loop.node);
  p->uses = uses_of(r);
  p->checks = options_.checks;
  if (p->checks) tell_uses(p->binding, *p->uses);
  p->why_not_repeatable = why_not_repeatable(*p->uses);
  start_compiling(r, *p);
  if (r.loop.tree && r.loop.box) add_activation_by_loop(r, *p->uses);
  p->block = first_block(r, p->binding);
  for (TreeStorage* tree : p->binding.trees) p->livenesses.push_back(tree->liveness());
  return p;
}

// Room is made first for what must not happen twice.
void LaunchMaker::start_compiling(const LaunchRequest& r, Prepared& p) const {
  KernelStore& kernels = device_->kernels();
  jit::SpecializeRequest code = specialization(r, p.binding, options_, r.makes_room_for != nullptr);
  tell_alone(code, r, *device_);
  p.code = kernels.get(std::move(code));
  const bool needs_room =
      !p.why_not_repeatable.empty() && p.uses->does(effect::kActivates | effect::kAppends);
  p.needs_full_ranges = needs_room && device_->commits_on_touch();
  if (!needs_room || device_->commits_on_touch()) return;
  const std::string no_room = why_no_room(r, *p.uses);
  if (no_room.empty())
    p.room_code = kernels.get(specialization(r, p.binding, options_, true));
  else if (no_room != p.why_not_repeatable)
    p.why_not_repeatable += " and " + no_room;
}

// Compiles here and now the code that took the place of the program's own kernels: where it is refused,
// the version before stands in. Where that is refused, too, it is not the kernel that is wrong.
IntrusivePtr<Prepared> LaunchMaker::wait_prepare_good(const LaunchRequest& r,
                                                      const KernelVersion* version) const {
  if (version == nullptr) return prepare(r, nullptr);
  std::string why;
  try {
    IntrusivePtr<Prepared> p = prepare(r, version);
    wait_for_code(p->code);
    if (!p->code.is_error()) return p;
    why = p->code.error().what();
  } catch (const Error& error) {
    why = error.what();
  }
  device_->kernels().remove(kernel_id(r));  // nobody else is to meet its error
  IntrusivePtr<Prepared> last = wait_prepare_good(r, kernel_version_before(*r.file, *version));
  reject_kernel_version(*r.file, *version, why);
  return last;
}

// Gives a launch with checks the table of the memory that its pointers may reach. Its addresses are those
// that cells have once trees have grown.
void LaunchMaker::wait_guard_memory(Launch& launch, const LaunchRequest& r, const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) tree->memory().reserve_full_ranges();
  auto table = memory_uses_.wait_table(*device_, *p.uses, {r.arguments, r.argument_bytes}, r.temporaries,
                                       p.binding.trees);
  const void* const address = table->buffer->data();
  std::memcpy(launch.block.arguments + kMemoryUsesAt, &address, sizeof address);
  launch.keep_alive.emplace_back(std::move(table));
}

Launch LaunchMaker::launch_of(const LaunchRequest& r, const IntrusivePtr<Prepared>& shared) {
  const Prepared& p = *shared;
  check_pointers(r, *device_);
  Launch launch;
  launch.name = p.name;
  launch.code = p.code;
  launch.block = p.block;
  launch.shared_bytes = p.binding.shared_bytes;
  std::memcpy(launch.block.arguments, r.arguments, r.argument_bytes);
  launch.keep_alive.reserve(1 + p.binding.trees.size() + r.slots.size() + r.keep_alive.size());
  launch.keep_alive.emplace_back(shared);  // of its name, too
  for (TreeStorage* tree : p.binding.trees) launch.keep_alive.push_back(share(tree));
  for (const detail::SlotUse& use : r.slots) launch.keep_alive.push_back(use.slot);
  launch.keep_alive.insert(launch.keep_alive.end(), r.keep_alive.begin(), r.keep_alive.end());
  launch.temporaries = r.temporaries;
  launch.uses = p.uses;
  launch.has_checks = p.checks;
  const bool knows_addresses = guards_memory(r, options_);
  if (knows_addresses) wait_guard_memory(launch, r, p);
  set_loop(launch, r, p);
  if (p.room_code) make_room_first(launch, shared);
  if (p.needs_full_ranges || knows_addresses) take_full_ranges_first(launch, shared, knows_addresses);
  // The device outlives what its stream is given.
  set_end(launch, shared, device_.get(),
          options_.checks || is_over_blocks(r) || p.binding.names_a_field_twice);
  return launch;
}

}  // namespace coppice
