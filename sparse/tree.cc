// Tree and Node handles (see tree.h): description, and host-side activation in stream order.
#include "sparse/tree.h"

#include <memory>

#include "core/error.h"
#include "runtime_lists.kernels.h"
#include "sparse/memory_report.h"
#include "sparse/program.h"
#include "sparse/tree_storage.h"
#include "topology.kernels.h"

namespace coppice {
namespace {

// Coordinates as kernels take them: tree axes filled in from the right.
std::shared_ptr<std::vector<int32_t>> flatten(const std::vector<std::array<int32_t, 3>>& coords,
                                              uint32_t dims) {
  auto flat = std::make_shared<std::vector<int32_t>>(3 * coords.size(), 0);
  for (size_t i = 0; i < coords.size(); ++i) {
    for (uint32_t a = 0; a < dims; ++a) (*flat)[3 * i + 3 - dims + a] = coords[i][a];
  }
  return flat;
}

}  // namespace

TreeStorage* TreeRef::get() const { return static_cast<TreeStorage*>(tree_.get()); }

Tree::Tree(IntrusivePtr<Device> device, TreeOptions options)
    : storage_(make_intrusive<TreeStorage>(std::move(device), std::move(options))) {}
Node Tree::root() const { return Node(storage_, 0); }
void Tree::freeze() { storage_->freeze(); }
void Tree::compile_runtime() { storage_->compile_runtime(); }
AsyncValueRef<Chain> Tree::deactivate_all() { return root().deactivate_all(); }
AsyncValueRef<Chain> Tree::trim() {
  storage_->freeze();
  return storage_->device().default_stream().enqueue("sparse.trim", [tree = storage_] { tree->trim(); });
}
MemoryReport Tree::wait_memory_report() const {
  storage_->freeze();
  MemoryReport report;
  auto done = storage_->device().default_stream().enqueue("sparse.memory_report",
                                                          [&] { report = storage_->memory_report(); });
  wait(done);
  if (done.is_error()) throw done.error();
  return report;
}

Node Node::child(device::NodeKind kind, std::vector<Axis> axes, std::vector<int32_t> extents) const {
  return Node(tree_, tree_->add_node(id_, kind, std::move(axes), std::move(extents)));
}
Node Node::layout(CellLayout layout) const {
  tree_->set_layout(id_, layout);
  return *this;
}
Node Node::lists(std::optional<Axis> axis, int32_t max_length, int32_t chunk_cells) const {
  return Node(tree_, tree_->add_lists(id_, axis, max_length, chunk_cells));
}
FieldId Node::place_bytes(std::string name, size_t bytes, size_t alignment) const {
  return {tree_.get(), id_, tree_->add_field(id_, std::move(name), bytes, alignment)};
}
Field<unsigned char> Node::topology() const { return {{tree_.get(), id_, kNoField}, tree_}; }
std::string Node::path() const { return tree_->path(id_); }

AsyncValueRef<Chain> Node::activate(std::vector<std::array<int32_t, 3>> coords) const {
  tree_->freeze();
  auto flat = flatten(coords, tree_->dims());
  return tree_->device().default_stream().enqueue("sparse.activate", [tree = tree_, id = id_, flat] {
    tree->activate_bulk(id, flat->data(), flat->size() / 3);
  });
}
AsyncValueRef<Chain> Node::activate(const int32_t* coords, uint64_t n) const {
  tree_->freeze();
  return tree_->device().default_stream().enqueue(
      "sparse.activate", [tree = tree_, id = id_, coords, n] { tree->activate_bulk(id, coords, n); });
}
AsyncValueRef<Chain> Node::deactivate(std::vector<std::array<int32_t, 3>> coords) const {
  tree_->freeze();
  auto flat = flatten(coords, tree_->dims());
  Launch launch = tree_->program().make_launch(deactivate_coords, range(static_cast<int64_t>(coords.size())),
                                               topology(), flat->data());
  launch.prepare = [flat](LaunchBlock&) {};
  return tree_->device().default_stream().launch(std::move(launch));
}
AsyncValueRef<Chain> Node::deactivate_all() const {
  tree_->freeze();
  return tree_->device().default_stream().enqueue("sparse.deactivate_all", [tree = tree_, id = id_] {
    tree->recycle_below(id);
    tree->settle();
  });
}

bool Node::wait_is_active(std::array<int32_t, 3> coord) const {
  tree_->freeze();
  auto flat = flatten({coord}, tree_->dims());
  uint32_t active = 0;
  auto done = tree_->program().launch(test_coords, range(1), topology(), flat->data(), &active);
  wait(done);
  if (done.is_error()) throw done.error();
  return active != 0;
}

uint64_t Node::wait_length(std::array<int32_t, 3> coord) const {
  tree_->freeze();
  if (tree_->node(id_).kind != device::NodeKind::kDynamic)
    throw Error(ErrorCode::kInvalidArgument, path() + " has no lists: wait_length() is for dynamic nodes");
  auto flat = flatten({coord}, tree_->dims());
  uint64_t length = 0;
  auto done = tree_->program().launch(list_length_at, range(1), tree_->state(), tree_->device_layout(id_),
                                      flat->data(), &length);
  wait(done);
  if (done.is_error()) throw done.error();
  return length;
}

uint64_t Node::wait_num_active_blocks() const {
  tree_->freeze();
  uint64_t count = 0;
  auto done = tree_->device().default_stream().enqueue(
      "sparse.count", [&] { count = *tree_->update_list(id_, false).count->as<uint64_t>(); });
  wait(done);
  if (done.is_error()) throw done.error();
  return count;
}

NodeUsage Node::wait_usage() const {
  tree_->freeze();
  NodeUsage usage;
  auto done =
      tree_->device().default_stream().enqueue("sparse.usage", [&] { usage = tree_->full_usage(id_); });
  wait(done);
  if (done.is_error()) throw done.error();
  return usage;
}

}  // namespace coppice
