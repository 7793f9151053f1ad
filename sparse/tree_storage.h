// Implements Tree, Node and Field: what their handles refer to.
//
// Phases: describe, on one thread -> freeze -> use, by any number of threads. In use, everything that touches
// memory takes an InStream and so runs on one thread at a time.
//
//     TreeDescription   what it is to be; nothing is added to it from freeze() on
//     TreeLayout        how it lies in memory: enough for whoever reads a tree's shape
//     TreeMemory        what is reserved, how much of it may be used, and what is spent
//     TreeScratch       memory of the runtime's kernels
//     LoopLists         what loops run through
//     TreeGrowth        how it gets more cells
//     RoomMaker         room for launches that must not be repeated
//     Collector         what becomes of cells that are deactivated
//     TemporaryFieldStates  which temporaries have values
//     TreeCut           of a tree over ranks: what is this rank's
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "core/check.h"
#include "gpu/host_access.h"
#include "sparse/collector.h"
#include "sparse/loop_lists.h"
#include "sparse/ranks/cluster.h"
#include "sparse/ranks/tree_cut.h"
#include "sparse/room_maker.h"
#include "sparse/runtime_programs.h"
#include "sparse/temporary_fields.h"
#include "sparse/tree.h"
#include "sparse/tree_description.h"
#include "sparse/tree_growth.h"
#include "sparse/tree_layout.h"
#include "sparse/tree_memory.h"
#include "sparse/tree_scratch.h"

namespace coppice {

// Holds what a tree has from freeze() on; each part uses only parts before it.
struct TreeParts {
  TreeParts(const TreeDescription& description, Device& device, RuntimePrograms& programs);
  TreeLayout layout;
  TreeMemory memory;
  TreeScratch scratch;
  LoopLists lists;
  TreeGrowth growth;
  RoomMaker room;
  Collector collector;
  TemporaryFieldStates temporary_fields;
};

class TreeStorage : public RefCounted {
 public:
  TreeStorage(IntrusivePtr<Device> device, TreeOptions options, std::optional<Cluster> cluster = {});

  uint64_t serial() const { return serial_; }  // unique in the process
  // Expires with the tree; unlike a weak reference to the tree it keeps no memory of it.
  std::weak_ptr<const void> liveness() const { return liveness_; }
  Device& device() const { return *device_; }
  Stream& stream() const { return device_->default_stream(); }
  RuntimePrograms& programs() { return programs_; }

  const TreeDescription& description() const { return description_; }
  const TreeOptions& options() const { return description_.options(); }
  // Returns the description to `what`, "add a node". Errors: kInvalidArgument once the tree is frozen.
  TreeDescription& describe(const char* what);
  // Fixes the layout and reserves memory. Idempotent; of several threads that come first, one does it and the
  // others wait. Errors: kInvalidArgument, kOutOfMemory.
  void freeze();
  bool frozen() const { return frozen_.load(std::memory_order_acquire); }

  // ---- from freeze() on
  const TreeLayout& layout() const { return parts().layout; }
  TreeMemory& memory() { return parts().memory; }
  const TreeMemory& memory() const { return parts().memory; }
  TreeScratch& scratch() { return parts().scratch; }
  LoopLists& lists() { return parts().lists; }
  TreeGrowth& growth() { return parts().growth; }
  RoomMaker& room() { return parts().room; }
  Collector& collector() { return parts().collector; }
  TemporaryFieldStates& temporary_fields() { return parts().temporary_fields; }
  // This is for a tree over ranks alone.
  bool is_over_ranks() const { return cluster_.has_value(); }
  TreeCut& cut() {
    COPPICE_DCHECK(frozen() && cut_);
    return *cut_;
  }
  // Is called where the host gives what may change which cells are active.
  void note_topology_change() {
    if (is_over_ranks()) cut().note_topology_change();
  }
  // Is called where the host asks for cells: of a tree over ranks all ranks ask together.
  void wait_sync_over_ranks() {
    if (is_over_ranks()) cut().wait_asked(*this);
  }
  // Errors: kInvalidArgument for a tree over ranks and a node that is not below the cut: among its cells are
  // mirrors.
  void refuse_above_cut(uint32_t node, const std::string& what) const;
  // Errors: kInvalidArgument for a tree over ranks, that `what` is not for these.
  void refuse_over_ranks(const std::string& what) const;
  // Recordings hold addresses and sizes: one of another generation than the tree's is made anew.
  uint64_t generation(InStream& s) const {
    return parts().memory.generation(s) + parts().scratch.generation(s);
  }

 private:
  TreeParts& parts() {
    COPPICE_DCHECK(frozen());
    return *parts_;
  }
  const TreeParts& parts() const {
    COPPICE_DCHECK(frozen());
    return *parts_;
  }

  const IntrusivePtr<Device> device_;
  TreeDescription description_;
  RuntimePrograms programs_;
  const uint64_t serial_;
  const std::shared_ptr<const void> liveness_ = std::make_shared<char>();
  std::mutex freeze_mutex_;
  std::atomic<bool> frozen_ = false;  // true: what freeze() made is there for every thread
  std::optional<TreeParts> parts_;
  const std::optional<Cluster> cluster_;
  std::optional<TreeCut> cut_;
};

// Returns the tree that a host's handle names.
inline TreeStorage* tree_of(const FieldId& id) { return static_cast<TreeStorage*>(id.tree); }

// Returns memory that no active cell needs to the system (Tree::trim).
void trim(InStream& s, TreeStorage& tree);

}  // namespace coppice
