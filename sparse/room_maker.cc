// Room for launches (see room_maker.h).
#include "sparse/room_maker.h"

#include "dynamic_lists.kernels.h"
#include "runtime_collection.kernels.h"
#include "sparse/runtime_launch.h"

namespace coppice {

using device::NodeKind;

RoomMaker::RoomMaker(TreeMemory& memory, Program& program)
    : layout_(memory.layout()), memory_(memory), program_(program) {}

template <class Kernel>
void RoomMaker::run_over_chunks(InStream& s, const Kernel& kernel) {
  for (uint32_t id = 1; id < layout_.nodes().size(); ++id) {
    if (layout_.node(id).kind != NodeKind::kDynamic) continue;
    uint64_t* const count = &memory_.counts()->recycled;
    run_now(s, program_, count_handed_out, 1, memory_.allocator_state(layout_.node(id).allocator), count);
    run_now(s, program_, kernel, count, memory_.state(), memory_.device_layout(id));
  }
}

void RoomMaker::begin(InStream& s) {
  for (uint32_t a = 0; a < layout_.num_allocators(); ++a)
    run_now(s, program_, forget_wanted, 1, memory_.allocator_state(a));
  run_over_chunks(s, forget_wanted_elements);
}

void RoomMaker::want_what_is_removed(InStream& s) {
  for (uint32_t a = 0; a < layout_.num_allocators(); ++a) {
    const TreeNode& n = layout_.node(layout_.allocator_nodes()[a]);
    const uint64_t chunk_cells = n.kind == NodeKind::kDynamic ? n.num_cells : 0;
    const uint64_t most = memory_.most_cells(a, memory_.allocators()[a].capacity);
    run_now(s, program_, want_removed, 1, memory_.allocator_state(a), chunk_cells, most);
  }
}

void RoomMaker::hide(InStream& s) { run_over_chunks(s, hide_wanted_chunks); }
void RoomMaker::drop(InStream& s) { run_over_chunks(s, drop_wanted_chunks); }
void RoomMaker::show(InStream& s) { run_over_chunks(s, show_wanted_chunks); }

}  // namespace coppice
