// Does what goes before and behind a run that makes room for a launch (device::makes_room();
// sparse/launch_growth.h says when). Cost: a pass over the cells of dynamic nodes each.
#pragma once
#include <cstdint>

#include "gpu/device.h"
#include "sparse/tree_memory.h"

namespace coppice {

class RoomMaker {
 public:
  RoomMaker(TreeMemory& memory, Program& program);

  // Goes before the run: it counts from nothing.
  void begin(InStream& s);
  // Goes behind it: cells that it would deactivate are wanted again; then shortages are resolved as behind a
  // launch that may be repeated.
  void want_what_is_removed(InStream& s);
  // When there is room, lists hide their new chunks from the launch, and show them behind it.
  void hide(InStream& s);
  void show(InStream& s);
  // Makes lists give back the chunks that hold nothing: instead of hide() where there is no room, and behind
  // a launch that failed.
  void drop(InStream& s);

 private:
  template <class Kernel>
  void run_over_chunks(InStream& s, const Kernel& kernel);

  const TreeLayout& layout_;
  TreeMemory& memory_;
  Program& program_;
};

}  // namespace coppice
