// Kernels whose threads take cells from one allocator, or deactivate what others write to.
#include "coppice/kernel.h"

using namespace coppice;

// Every `every`-th item activates a block, so that few of them are several threads' work.
COPPICE_KERNEL(activate_some, Topology block, Item i, int every)
{
  const auto k = static_cast<int>(i.index);
  if (k % every == 0) block.activate(i, {k / every});
}

// Not for ever: the other item may be the same thread's.
static bool comes(const uint32_t* stage, uint32_t wanted) {
  for (uint32_t turn = 0; turn < 2'000'000; ++turn) {
    if (coppice_load_acquire_u32(stage) == wanted) return true;
    coppice_pause(turn);
  }
  return false;
}
// The first item writes to a cell before and after the last one deactivates what is above it.
COPPICE_KERNEL(write_to_what_goes, Grow<int> x, Topology above, Item i, int n, uint32_t* stage)
{
  if (i.index == 0) {
    x.set(i, {0}, 1);
    coppice_store_release_u32(stage, 1);
    if (!comes(stage, 2)) return;
    x.set(i, {1}, 7);
    coppice_store_release_u32(stage, 3);
  } else if (i.index == n - 1) {
    if (!comes(stage, 1)) return;
    above.deactivate(i, {0});
    coppice_store_release_u32(stage, 2);
  }
}
// The same by three items of one thread's range.
COPPICE_KERNEL(write_again, Grow<int> x, Topology above, Item i)
{
  if (i.index == 0) x.set(i, {0}, 1);
  if (i.index == 1) above.deactivate(i, {0});
  if (i.index == 2) x.set(i, {1}, 7);
}
