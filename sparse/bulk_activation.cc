// Activation of many cells at once (see bulk_activation.h).
#include "sparse/bulk_activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "runtime_activation.kernels.h"
#include "sparse/launch_errors.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::NodeKind;

namespace {

constexpr uint64_t kBatch = uint64_t{1} << 28;  // coordinates sorted at a time; indices have 32 bits

// Activates cells of one node, as many as are sorted at a time.
class BulkActivation {
 public:
  BulkActivation(InStream& s, TreeStorage& tree, uint32_t node)
      : s_(s),
        layout_(tree.layout()),
        memory_(tree.memory()),
        scratch_(tree.scratch()),
        growth_(tree.growth()),
        program_(tree.programs().in_order(s)),
        node_(node),
        path_(layout_.path_nodes(node)),
        last_(static_cast<uint32_t>(path_.size())) {
    const auto can_be_inactive = [this](uint32_t id) {
      const NodeKind kind = layout_.node(id).kind;
      return kind == NodeKind::kPointer || kind == NodeKind::kBitmasked;
    };
    while (last_ > 0 && !can_be_inactive(path_[last_ - 1])) --last_;
  }

  // Errors: kInvalidArgument.
  void check_node() const {
    if (path_.empty())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("activation of {}: a tree's root has no cells", layout_.path(node_)));
    if (layout_.key_space(path_, last_) == ~uint64_t{0})
      throw Error(ErrorCode::kInvalidArgument,
                  layout_.path(node_) + ": its keys would need more than 64 bits");
  }
  bool is_always_active() const { return last_ == 0; }
  // Sorts the coordinates by their cells. Errors: kOutOfRange.
  void sort(const int32_t* coords, uint64_t n);
  // Activates the cells that were sorted, level by level.
  void activate(const int32_t* coords, uint64_t n);

 private:
  void activate_slots(const CoppiceBulkLevel& level, uint64_t n, uint32_t allocator);

  InStream& s_;
  const TreeLayout& layout_;
  TreeMemory& memory_;
  TreeScratch& scratch_;
  TreeGrowth& growth_;
  Program& program_;
  const uint32_t node_;
  const std::vector<uint32_t> path_;
  uint32_t last_;  // levels down to the last that can be inactive
};

void BulkActivation::sort(const int32_t* coords, uint64_t n) {
  scratch_.reserve<uint64_t>(s_, scratch_.keys, n), scratch_.reserve<uint32_t>(s_, scratch_.cells, n);
  scratch_.reserve<uint32_t>(s_, scratch_.flags, n), scratch_.reserve<uint32_t>(s_, scratch_.selected, n);
  uint64_t* keys = scratch_.keys->as<uint64_t>();
  uint32_t* order = scratch_.cells->as<uint32_t>();
  uint64_t* count = &memory_.counts()->outside;
  write_value(s_, count, 0);
  run_now(s_, program_, bulk_keys, n, memory_.device_layout(node_), std::max(last_, 1u) - 1, coords, keys,
          order, count);
  if (const uint64_t outside = wait_read(s_, count); outside > 0)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("activation of {}: {} of the coordinates are outside the domain {}",
                            layout_.path(node_), outside, domain_text(layout_.node_layout(node_))));
  if (last_ > 0) primitives::sort_by_key(s_, keys, order, n);
}

void BulkActivation::activate(const int32_t* coords, uint64_t n) {
  CoppiceBulkLevel level{memory_.state(),
                         memory_.device_layout(node_),
                         nullptr,
                         0,
                         0,
                         1,
                         scratch_.keys->as<uint64_t>(),
                         scratch_.cells->as<uint32_t>(),
                         coords};
  for (; level.level < last_; ++level.level) {
    const TreeNode& d = layout_.node(path_[level.level]);
    level.at = memory_.device_layout(path_[level.level]), level.per_cell = 1;
    for (uint32_t k = level.level + 1; k < last_; ++k) level.per_cell *= layout_.node(path_[k]).num_cells;
    if (d.kind == NodeKind::kPointer) activate_slots(level, n, d.allocator);
    if (d.kind == NodeKind::kBitmasked) run_now(s_, program_, bulk_bits, n, level);
  }
}

// Makes cells for all empty slots that keys of this level name, in order of the keys.
void BulkActivation::activate_slots(const CoppiceBulkLevel& level, uint64_t n, uint32_t index) {
  run_now(s_, program_, bulk_flag_empty, n, level, scratch_.flags->as<uint32_t>());
  uint32_t* selected = scratch_.selected->as<uint32_t>();
  const uint64_t wanted = primitives::wait_select_if_flag(s_, scratch_.flags->as<uint32_t>(), selected, n);
  if (wanted == 0) return;
  const AllocatorState before = growth_.make_cells_free(s_, index, wanted, "activation");
  run_now(s_, program_, bulk_fill, wanted, level, static_cast<const uint32_t*>(selected));
  growth_.take_cells(s_, before, index, wanted);
  write_value(s_, &memory_.state()->changed, 1);
}

}  // namespace

void activate_bulk(InStream& s, TreeStorage& tree, uint32_t node, const int32_t* coords, uint64_t n) {
  for (; n > kBatch; n -= kBatch, coords += 3 * kBatch) activate_bulk(s, tree, node, coords, kBatch);
  if (n == 0) return;
  BulkActivation activation(s, tree, node);
  activation.check_node();
  activation.sort(coords, n);
  if (activation.is_always_active()) return;
  try {
    activation.activate(coords, n);
  } catch (...) {
    tree.collector().commit_topology(s);  // loops are to find the levels that there was memory for
    throw;
  }
  tree.collector().commit_topology(s);
}

}  // namespace coppice
