// Topology tools (see topology_tools.h; the kernels are in runtime/topology_tools.kernels.cc).
#include "sparse/topology_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "sparse/launch_errors.h"
#include "sparse/program.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"
#include "topology_tools.kernels.h"

namespace coppice {
namespace {

using device::NodeKind;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

// Names a node whose cells are active one by one, and says how many of the given node's cells each of them
// is.
struct Unit {
  TreeRef tree;
  uint32_t node;
  CoppiceBox box{{1, 1, 1}};
};

Unit unit_of(const Node& node, const char* tool) {
  node.storage().freeze();
  node.storage().refuse_over_ranks(tool);
  const TreeLayout& tree = node.storage().layout();
  Unit unit{node.tree(), node.id()};
  if (unit.node == 0)
    refuse(fmt::format("{}: the root {} has no cells; name a node below it", tool, node.path()));
  if (tree.node(unit.node).kind == NodeKind::kDynamic)
    refuse(fmt::format("{}: {} has lists, whose elements are no active cells; name the node above it", tool,
                       node.path()));
  while (unit.node != 0 && tree.node(unit.node).kind == NodeKind::kDense) {
    const TreeNode& n = tree.node(unit.node);
    for (int d = 0; d < device::kMaxDims; ++d) unit.box.size[d] *= static_cast<int32_t>(n.extent[d]);
    unit.node = n.parent;
  }
  if (unit.node == 0) {
    refuse(fmt::format("{}: {} is always active: there is no bitmasked or pointer node on the way to it",
                       tool, node.path()));
  }
  return unit;
}

// Holds the containers of a node with a mask for each; keeps the memory that the view points to.
struct Containers {
  CoppiceContainers view;
  uint64_t count = 0;
  IntrusivePtr<Buffer> elements, masks;
  int64_t words() const { return static_cast<int64_t>(count * view.words); }
};

Containers containers_of(InStream& s, TreeStorage& tree, uint32_t node, bool with_masks = true) {
  Containers c;
  const LoopList& list = tree.lists().update(s, node, false);
  c.count = list.items;
  c.elements = list.elements;
  const uint32_t words = static_cast<uint32_t>((tree.layout().node(node).num_cells + 63) / 64);
  if (with_masks) {
    const size_t bytes = std::max<uint64_t>(c.count * words, 1) * sizeof(uint64_t);
    c.masks = tree.device().reserve(bytes, bytes);
  }
  c.view = {tree.memory().state(), tree.memory().device_layout(node), c.elements->as<device::LoopElement>(),
            with_masks ? c.masks->as<uint64_t>() : nullptr, words};
  return c;
}

Field<unsigned char> topology_of(const TreeRef& tree, uint32_t node) {
  return detail::node_of(tree, node).topology();
}

// Items are whole leaves here.
template <class... Args, class... Given>
void run(InStream& s, Program& program, const Kernel<void(Args...)>& kernel, uint64_t count,
         const Given&... given) {
  run_now_by(s, 4, program, kernel, count, given...);
}

AsyncValueRef<Chain> enqueue(const TreeRef& tree, const char* name,
                             std::function<void(InStream&, Program&)> work) {
  return tree->stream().enqueue(
      name, [tree, work = std::move(work)](InStream& s) { work(s, tree->programs().in_order(s)); });
}

void check_morphology(const Node& node, Neighbourhood neighbourhood, int steps, const char* tool) {
  if (steps < 0) refuse(fmt::format("{}: {}: {} steps, expected 0 or more", tool, node.path(), steps));
  const int axes = static_cast<int>(neighbourhood);
  if (axes < 1 || axes > 3)
    refuse(fmt::format("{}: {}: there is no neighbourhood {}", tool, node.path(), axes));
}

// Runs step(s, program, unit) up to `steps` times; a step that changes nothing is the last.
template <class Step>
AsyncValueRef<Chain> repeat(const Unit& unit, const char* name, int steps, Step step) {
  return enqueue(unit.tree, name, [unit, steps, step](InStream& s, Program& program) {
    for (int i = 0; i < steps; ++i) {
      const uint64_t before = unit.tree->lists().version(s);
      step(s, program, unit);
      if (unit.tree->lists().version(s) == before) return;
    }
  });
}

}  // namespace

AsyncValueRef<Chain> dilate(const Node& node, Neighbourhood neighbourhood, int steps) {
  check_morphology(node, neighbourhood, steps, "dilate");
  const CoppiceReach reach{static_cast<int32_t>(neighbourhood)};
  return repeat(unit_of(node, "dilate"), "sparse.dilate", steps,
                [reach](InStream& s, Program& program, const Unit& unit) {
                  const Containers c = containers_of(s, *unit.tree, unit.node);
                  run(s, program, snapshot_masks, c.words(), c.view);
                  run(s, program, dilate_masks, c.words(), topology_of(unit.tree, unit.node), c.view, reach);
                });
}

AsyncValueRef<Chain> erode(const Node& node, Neighbourhood neighbourhood, int steps) {
  check_morphology(node, neighbourhood, steps, "erode");
  const CoppiceReach reach{static_cast<int32_t>(neighbourhood)};
  return repeat(unit_of(node, "erode"), "sparse.erode", steps,
                [reach](InStream& s, Program& program, const Unit& unit) {
                  const Containers c = containers_of(s, *unit.tree, unit.node);
                  run(s, program, find_border, c.words(), c.view, reach);
                  run(s, program, deactivate_marked, c.words(), topology_of(unit.tree, unit.node), c.view);
                });
}

// ---- pruning

namespace {

void check_prune_fields(const Node& node, const std::vector<FieldId>& fields, double tolerance) {
  if (!(tolerance >= 0))
    refuse(fmt::format("prune: {}: tolerance {}, expected 0 or more", node.path(), tolerance));
  if (!fields.empty() && node.storage().description().node(node.id()).kind == NodeKind::kDynamic)
    refuse(fmt::format(
        "prune: {} has lists: their values are not compared; prune(node) drops cells without elements",
        node.path()));
  for (const FieldId& field : fields) {
    if (field.tree == &node.storage() && field.node == node.id()) {
      const FieldDescription& f = node.storage().description().fields()[field.field];
      if (f.stages)
        refuse(fmt::format("prune: '{}' on {} is a temporary: it keeps no values", f.name, node.path()));
      continue;
    }
    refuse(fmt::format("prune: a field to compare is not on {}", node.path()));
  }
}

uint64_t run_prune(InStream& s, Program& program, TreeStorage& tree, uint32_t node, uint32_t pointer,
                   double tolerance, const std::vector<FieldId>& fields) {
  const device::AllocatorState* a = tree.memory().allocator_state(tree.layout().node(pointer).allocator);
  const int64_t cells = static_cast<int64_t>(wait_read(s, &a->num_cells)) - 1;
  const size_t kept_bytes = (static_cast<size_t>(cells) / 64 + 1) * sizeof(uint64_t);
  // The count lies before the bits.
  const IntrusivePtr<Buffer> scratch = tree.device().reserve(8 + kept_bytes, 8 + kept_bytes);
  uint64_t *dropped = scratch->as<uint64_t>(), *kept = dropped + 1;
  if (fields.empty()) run(s, program, keep_with_bytes, cells, a, kept);
  for (const FieldId& field : fields) {
    const TreeField& f = tree.layout().field(field.field);
    const Containers c = containers_of(s, tree, node, false);
    const CoppiceValues values{f.offset, f.stride, static_cast<uint32_t>(f.bytes), tolerance};
    run(s, program, keep_with_values, static_cast<int64_t>(c.count), c.view, values, kept);
  }
  run(s, program, drop_unkept, cells, topology_of(TreeRef(share<RefCounted>(&tree)), pointer), a,
      tree.memory().device_layout(pointer), kept, dropped);
  return wait_read(s, dropped);
}

AsyncValueRef<uint64_t> start_prune(const Node& node, double tolerance, std::vector<FieldId> fields) {
  const TreeDescription& tree = node.storage().description();
  if (node.id() == 0)
    refuse(fmt::format("prune: the root {} has no cells; name a node below it", node.path()));
  uint32_t pointer = tree.node(node.id()).parent;
  while (pointer != 0 && tree.node(pointer).kind != NodeKind::kPointer) pointer = tree.node(pointer).parent;
  if (pointer == 0) refuse(fmt::format("prune: there is no pointer node above {}", node.path()));
  check_prune_fields(node, fields, tolerance);
  node.storage().freeze();
  node.storage().refuse_over_ranks("prune");
  if (fields.empty() && node.storage().layout().node(pointer).zeroes_temporaries)
    refuse(fmt::format("prune: temporaries lie between other values in cells of {}; name fields to compare",
                       node.storage().layout().path(pointer)));
  auto dropped = std::make_shared<uint64_t>(0);
  auto done = enqueue(node.tree(), "sparse.prune",
                      [=, ref = node.tree(), id = node.id()](InStream& s, Program& program) {
                        *dropped = run_prune(s, program, *ref, id, pointer, tolerance, fields);
                      });
  return done.map([dropped](Chain&) { return *dropped; });
}

}  // namespace

AsyncValueRef<uint64_t> prune(const Node& node) { return start_prune(node, 0, {}); }
AsyncValueRef<uint64_t> detail::prune_within(const Node& node, double tolerance,
                                             std::vector<FieldId> fields) {
  return start_prune(node, tolerance, std::move(fields));
}

// ---- set operations

namespace {

struct SetOperation {
  const char* tool;   // for messages
  const char* name;   // for profilers
  bool keeps_all;     // cells of `to` stay whatever `from` says
  bool keeps_active;  // otherwise: those stay that are active in `from`, or those that are not
  bool adds;          // the active cells of `from` become active
};

bool has_domain_within(const device::NodeLayout& node, const device::NodeLayout& other) {
  for (int d = 0; d < device::kMaxDims; ++d) {
    const int64_t low = node.origin[d], other_low = other.origin[d];
    if (low < other_low || low + node.domain[d] > other_low + other.domain[d]) return false;
  }
  return true;
}

// Throws where a cell that is marked to become active in `to` is outside its domain.
void check_inside(InStream& s, Program& program, const Containers& marked, const Node& from, const Node& to,
                  const char* tool) {
  TreeStorage& target = to.storage();
  const device::NodeLayout& domain = target.layout().node_layout(to.id());
  if (has_domain_within(from.storage().layout().node_layout(from.id()), domain)) return;
  const IntrusivePtr<Buffer> count = target.device().reserve(sizeof(uint64_t), sizeof(uint64_t));
  run(s, program, count_outside, marked.words(), marked.view, target.memory().device_layout(to.id()),
      count->as<uint64_t>());
  const uint64_t outside = wait_read(s, count->as<uint64_t>());
  if (outside == 0) return;
  throw Error(ErrorCode::kOutOfRange,
              fmt::format("{}: {} of the active cells of {} are outside the domain {} of {}", tool, outside,
                          from.path(), domain_text(domain), to.path()));
}

AsyncValueRef<Chain> combine(const Node& from, const Node& to, SetOperation operation) {
  unit_of(from, operation.tool);
  const Unit unit = unit_of(to, operation.tool);
  if (from.storage().layout().dims() != to.storage().layout().dims()) {
    refuse(fmt::format("{}: {} has {} dimensions, {} has {}", operation.tool, from.path(),
                       from.storage().layout().dims(), to.path(), to.storage().layout().dims()));
  }
  if (&from.storage().device() != &to.storage().device())
    refuse(fmt::format("{}: {} and {} are on different devices", operation.tool, from.path(), to.path()));
  return enqueue(to.tree(), operation.name, [from, to, unit, operation](InStream& s, Program& program) {
    // All that is read is read before anything changes: both nodes may be in one tree.
    TreeStorage& source = from.storage();
    Containers added, leaving;
    if (operation.adds) {
      added = containers_of(s, source, from.id());
      run(s, program, snapshot_masks, added.words(), added.view);
      check_inside(s, program, added, from, to, operation.tool);
    }
    if (!operation.keeps_all) {
      leaving = containers_of(s, *unit.tree, unit.node);
      run(s, program, find_leaving, leaving.words(), leaving.view, unit.box, source.memory().state(),
          source.memory().device_layout(from.id()), operation.keeps_active ? 1 : 0);
      run(s, program, deactivate_marked, leaving.words(), topology_of(unit.tree, unit.node), leaving.view);
    }
    if (operation.adds) run(s, program, activate_marked, added.words(), to.topology(), added.view);
  });
}

}  // namespace

AsyncValueRef<Chain> copy_topology(const Node& from, const Node& to) {
  return combine(from, to, {"copy_topology", "sparse.copy_topology", false, true, true});
}
AsyncValueRef<Chain> merge_topology(const Node& from, const Node& to) {
  return combine(from, to, {"merge_topology", "sparse.merge_topology", true, true, true});
}
AsyncValueRef<Chain> intersect_topology(const Node& from, const Node& to) {
  return combine(from, to, {"intersect_topology", "sparse.intersect_topology", false, true, false});
}
AsyncValueRef<Chain> subtract_topology(const Node& from, const Node& to) {
  return combine(from, to, {"subtract_topology", "sparse.subtract_topology", false, false, false});
}

}  // namespace coppice
