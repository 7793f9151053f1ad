// Makes what handles of trees refer to (see tree_storage.h).
#include "sparse/tree_storage.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "gpu/codegen_options.h"

namespace coppice {
namespace {

uint64_t next_serial() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

TreeParts::TreeParts(const TreeDescription& description, Device& device, RuntimePrograms& programs)
    : layout(description, description.options().checks_temporaries || codegen_options().checks),
      memory(layout, device, programs.in_order_),
      scratch(device),
      lists(memory, scratch, programs.in_order_),
      growth(memory, lists),
      room(memory, programs.in_order_),
      collector(memory, lists, programs.in_order_),
      temporary_fields(layout.fields().size()) {}

TreeStorage::TreeStorage(IntrusivePtr<Device> device, TreeOptions options, std::optional<Cluster> cluster)
    : device_(std::move(device)),
      description_(std::move(options)),
      programs_(device_),
      serial_(next_serial()),
      cluster_(std::move(cluster)) {}

TreeDescription& TreeStorage::describe(const char* what) {
  if (!frozen()) return description_;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("tree '{}': cannot {}: the tree is in use; describe all of it before its first launch",
                  options().name, what));
}

void TreeStorage::freeze() {
  if (frozen()) return;
  const std::lock_guard lock(freeze_mutex_);
  if (frozen()) return;
  parts_.emplace(description_, *device_, programs_);
  if (cluster_) {
    try {
      cut_.emplace(parts_->layout, *cluster_);
    } catch (...) {
      parts_.reset();  // as where the layout is refused
      throw;
    }
    parts_->lists.set_own_part(cut_->own_part());
  }
  frozen_.store(true, std::memory_order_release);
}

void TreeStorage::refuse_over_ranks(const std::string& what) const {
  if (is_over_ranks())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: tree '{}' is cut over ranks, which it is not for", what, options().name));
}

void TreeStorage::refuse_above_cut(uint32_t node, const std::string& what) const {
  if (is_over_ranks() && !cut_->is_below(node))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} of tree '{}', which is cut over ranks: name a node below it", what,
                            layout().path(node), options().name));
}

void trim(InStream& s, TreeStorage& tree) {
  tree.collector().commit_topology(s);
  tree.memory().trim(s);
  tree.lists().clear(s);
  tree.scratch().clear();
}

}  // namespace coppice
