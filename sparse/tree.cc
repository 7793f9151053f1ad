// Tree and Node handles (see tree.h): description, and host-side activation in stream order.
#include "sparse/tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "dynamic_lists.kernels.h"
#include "gpu/buffer_ranges.h"
#include "single_cells.kernels.h"
#include "sparse/bulk_activation.h"
#include "sparse/deactivation.h"
#include "sparse/launch_errors.h"
#include "sparse/memory_report.h"
#include "sparse/read_back.h"
#include "sparse/runtime_launch.h"
#include "sparse/traced_calls.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

// Returns coordinates as kernels take them: tree axes filled in from the right.
// Refuses coordinates that have more numbers than the tree has axes, but for zeros.
void check_surplus(const TreeLayout& tree, const std::vector<std::array<int32_t, 3>>& coords,
                   const std::string& what) {
  const uint32_t dims = tree.dims();
  const auto has_surplus = [dims](const std::array<int32_t, 3>& c) {
    return std::any_of(c.begin() + dims, c.end(), [](int32_t number) { return number != 0; });
  };
  const auto found = std::find_if(coords.begin(), coords.end(), has_surplus);
  if (found == coords.end()) return;
  const auto& c = *found;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: ({}, {}, {}): {}", what, c[0], c[1], c[2],
                                                       wrong_count_text(3, tree.options().name, dims)));
}

size_t count_outside(const std::vector<std::array<int32_t, 3>>& coords, const device::NodeLayout& layout) {
  const auto is_outside = [&](const std::array<int32_t, 3>& coord) {
    for (uint32_t a = 0; a < layout.dims; ++a) {
      const uint32_t d = device::kMaxDims - layout.dims + a;
      const int64_t from_origin = int64_t{coord[a]} - layout.origin[d];
      if (from_origin < 0 || from_origin >= layout.domain[d]) return true;
    }
    return false;
  };
  return static_cast<size_t>(std::count_if(coords.begin(), coords.end(), is_outside));
}

// Holds what the host asks of one coordinate, in device memory.
struct Question {
  std::array<int32_t, 3> coord;
  uint32_t is_active;
  uint64_t length;
};

// Returns a kernel's answer: ask(s, question), where the question's address is the device's.
template <class Ask>
Question wait_answer(TreeStorage& tree, std::array<int32_t, 3> coord, Ask ask) {
  const std::vector<int32_t> flat = flatten({coord}, tree.layout().dims());
  Question question{{flat[0], flat[1], flat[2]}, 0, 0};
  wait_in_order(tree.stream(), "sparse.ask", [&](InStream& s) {
    const IntrusivePtr<Buffer> buffer = tree.device().reserve(sizeof question, sizeof question);
    auto* const asked = buffer->as<Question>();
    write_value(s, asked, question);
    ask(s, asked);
    question = wait_read(s, asked);
  });
  return question;
}

}  // namespace

TreeStorage* TreeRef::get() const { return static_cast<TreeStorage*>(tree_.get()); }
TreeStorage& TreeRef::operator*() const {
  if (tree_) return *get();
  throw Error(ErrorCode::kInvalidArgument,
              "a Tree, Node or Field is used that was default-made or moved from: it names no tree");
}

namespace {
TreeRef make_tree(IntrusivePtr<Device> device, TreeOptions options, std::optional<Cluster> cluster) {
  if (!device) throw Error(ErrorCode::kInvalidArgument, fmt::format("tree '{}': no device", options.name));
  return TreeRef(make_intrusive<TreeStorage>(std::move(device), std::move(options), std::move(cluster)));
}
}  // namespace

Tree::Tree(IntrusivePtr<Device> device, TreeOptions options)
    : storage_(make_tree(std::move(device), std::move(options), std::nullopt)) {}
Tree::Tree(const Cluster& cluster, IntrusivePtr<Device> device, TreeOptions options)
    : storage_(make_tree(std::move(device), std::move(options), cluster)) {}
Node detail::node_of(TreeRef tree, uint32_t id) { return Node(std::move(tree), id); }
Node Tree::root() const { return Node(storage_, 0); }
void Tree::freeze() { storage_->freeze(); }
void Tree::compile_runtime() {
  storage_->freeze();
  storage_->programs().with_host(
      [this](Program& program) { compile_runtime_kernels(program, storage_->memory().state()); });
}
AsyncValueRef<Chain> Tree::deactivate_all() { return root().deactivate_all(); }
AsyncValueRef<Chain> Tree::trim() {
  storage_->freeze();
  return storage_->stream().enqueue("sparse.trim",
                                    [tree = storage_](InStream& s) { coppice::trim(s, *tree); });
}
MemoryReport Tree::wait_memory_report() const { return coppice::wait_memory_report(storage_); }

Node Node::child(device::NodeKind kind, std::vector<Axis> axes, std::vector<int32_t> extents) const {
  return Node(tree_, tree_->describe("add a node").add_node(id_, kind, std::move(axes), std::move(extents)));
}
Node Node::layout(CellLayout layout) const {
  tree_->describe("change a layout").set_layout(id_, layout);
  return *this;
}
Node Node::lists(std::optional<Axis> axis, int32_t max_length, int32_t chunk_cells) const {
  return Node(tree_, tree_->describe("add a node").add_lists(id_, axis, max_length, chunk_cells));
}
FieldId Node::place_bytes(std::string name, size_t bytes, size_t alignment,
                          std::optional<Stages> stages) const {
  return {tree_.get(), id_,
          tree_->describe("place a field").add_field(id_, std::move(name), bytes, alignment, stages)};
}
Field<unsigned char> Node::topology() const { return {FieldId{tree_.get(), id_, kNoField}, tree_}; }
std::string Node::path() const { return tree_->description().path(id_); }

std::vector<std::array<int32_t, 3>> Node::checked(std::initializer_list<detail::GivenCoord> coords) const {
  std::vector<std::array<int32_t, 3>> all;
  for (const detail::GivenCoord& coord : coords) {
    detail::check_count(*tree_, coord);
    all.push_back(coord.at);
  }
  return all;
}
std::vector<int32_t> flatten(const std::vector<std::array<int32_t, 3>>& coords, uint32_t dims) {
  std::vector<int32_t> flat(3 * coords.size(), 0);
  for (size_t i = 0; i < coords.size(); ++i) {
    for (uint32_t a = 0; a < dims; ++a) flat[3 * i + 3 - dims + a] = coords[i][a];
  }
  return flat;
}

Launch make_deactivation(const TreeRef& tree, uint32_t node,
                         const std::vector<std::array<int32_t, 3>>& coords) {
  auto flat = wait_device_copy(tree->device(), flatten(coords, tree->layout().dims()));
  Launch launch = tree->programs().with_host([&](Program& program) {
    return program.make_launch(deactivate_coords, range(static_cast<int64_t>(coords.size())),
                               detail::node_of(tree, node).topology(), flat->as<int32_t>());
  });
  launch.keep_alive.emplace_back(flat);
  return launch;
}

AsyncValueRef<Chain> Node::activate(std::vector<std::array<int32_t, 3>> coords) const {
  tree_->freeze();
  check_surplus(tree_->layout(), coords, "activation of " + path());
  tree_->note_topology_change();
  auto flat = wait_device_copy(tree_->device(), flatten(coords, tree_->layout().dims()));
  return tree_->stream().enqueue("sparse.activate",
                                 [tree = tree_, id = id_, flat, n = coords.size()](InStream& s) {
                                   activate_bulk(s, *tree, id, flat->as<int32_t>(), n);
                                 });
}
AsyncValueRef<Chain> Node::activate(const int32_t* coords, uint64_t n) const {
  tree_->freeze();
  check_array(tree_->device().context(), coords, n, 3 * sizeof(int32_t), "the coordinates to activate");
  tree_->note_topology_change();
  return tree_->stream().enqueue("sparse.activate", [tree = tree_, id = id_, coords, n](InStream& s) {
    activate_bulk(s, *tree, id, coords, n);
  });
}
AsyncValueRef<Chain> Node::deactivate(std::vector<std::array<int32_t, 3>> coords) const {
  tree_->freeze();
  check_surplus(tree_->layout(), coords, "deactivation of " + path());
  tree_->note_topology_change();
  if (id_ != 0 && tree_->layout().node(id_).kind == device::NodeKind::kDense)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("deactivation of {}: cells of a dense node are active as long as what is above them",
                    path()));
  if (const size_t outside = id_ == 0 ? 0 : count_outside(coords, tree_->layout().node_layout(id_));
      outside > 0) {
    const std::string why = fmt::format("deactivation of {}: {} of the coordinates are outside the domain {}",
                                        path(), outside, domain_text(tree_->layout().node_layout(id_)));
    return tree_->stream().enqueue("sparse.deactivate",
                                   [why](InStream&) { throw Error(ErrorCode::kOutOfRange, why); });
  }
  return tree_->stream().launch(make_deactivation(tree_, id_, coords));
}
AsyncValueRef<Chain> Node::deactivate_all() const {
  tree_->freeze();
  if (TracedCalls* const traced = TracedCalls::current()) {
    tree_->refuse_over_ranks("a traced deactivate_all()");
    return traced->deactivate_all(*this);
  }
  tree_->note_topology_change();
  return bind_deactivate_all(*this).launch();
}

AsyncValueRef<Chain> Node::reserve(uint64_t cells) const {
  tree_->freeze();
  return tree_->stream().enqueue("sparse.reserve", [tree = tree_, id = id_, cells](InStream& s) {
    tree->growth().reserve_cells(s, id, cells);
  });
}

bool Node::wait_is_active(const detail::GivenCoord& coord) const {
  detail::check_count(*tree_, coord);
  const auto ask = [&](InStream& s, Question* q) {
    run_now(s, tree_->programs().in_order(s), test_coords, 1, topology(), q->coord.data(), &q->is_active);
  };
  tree_->refuse_above_cut(id_, "wait_is_active");
  tree_->wait_sync_over_ranks();
  if (!tree_->is_over_ranks()) return wait_answer(*tree_, coord.at, ask).is_active != 0;
  bool is_active = false;
  tree_->cut().wait_agreed([&] { is_active = wait_answer(*tree_, coord.at, ask).is_active != 0; });
  return tree_->cut().cluster().wait_max(is_active && tree_->cut().owns(id_, coord.at) ? 1 : 0) != 0;
}

uint64_t Node::wait_length(const detail::GivenCoord& coord) const {
  detail::check_count(*tree_, coord);
  if (tree_->layout().node(id_).kind != device::NodeKind::kDynamic)
    throw Error(ErrorCode::kInvalidArgument, path() + " has no lists: wait_length() is for dynamic nodes");
  const auto ask = [&](InStream& s, Question* q) {
    run_now(s, tree_->programs().in_order(s), list_length_at, 1, tree_->memory().state(),
            tree_->memory().device_layout(id_), q->coord.data(), &q->length);
  };
  return wait_answer(*tree_, coord.at, ask).length;
}

uint64_t Node::wait_num_active_blocks() const {
  tree_->freeze();
  tree_->refuse_above_cut(id_, "wait_num_active_blocks");
  tree_->wait_sync_over_ranks();
  uint64_t count = 0;
  wait_in_order(tree_->stream(), "sparse.count",
                [&](InStream& s) { count = tree_->lists().update(s, id_, false).items; });
  return count;
}

uint64_t Node::wait_topology_version() const {
  tree_->freeze();
  if (tree_->is_over_ranks()) {
    tree_->wait_sync_over_ranks();
    return tree_->cut().num_changes();
  }
  uint64_t version = 0;
  wait_in_order(tree_->stream(), "sparse.version", [&](InStream& s) { version = tree_->lists().version(s); });
  return version;
}

NodeUsage Node::wait_usage() const {
  tree_->freeze();
  NodeUsage usage;
  wait_in_order(tree_->stream(), "sparse.usage",
                [&](InStream& s) { usage = detail::usage_of(s, *tree_, id_); });
  return usage;
}

}  // namespace coppice
