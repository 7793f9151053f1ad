// Cycles of activation, deactivation and collection, after which memory must be what it was after the first
// ten.
#pragma once
#include <gtest/gtest.h>

#include "core/ref_counted.h"
#include "tests/sparse/resident_memory.h"
#include "tests/sparse/test_devices.h"
#include "topology_model.kernels.h"

namespace coppice {

class MemoryCycles : public DeviceTest {
 protected:
  // All cycles together may take this: 2^20 bytes are what an allocator may still take for itself, and less
  // than 16 bytes of each of 10^5.
  static constexpr uint64_t kSlackBytes = 1 << 20;

  void run_cycles(int cycles) {
    Tree tree(device);
    Node top = tree.root().pointer({8, 8}), block = top.pointer({4, 4}), leaf = block.bitmasked({3, 3});
    Field<int> x = leaf.place<int>("x");
    uint64_t resident = 0, capacity = 0;
    int64_t objects = 0;
    for (int cycle = 0; cycle < cycles; ++cycle) {
      program().launch(fill_cycle2, range(64), x, cycle);
      if (cycle % 3 == 0)
        finish(tree.deactivate_all());
      else
        run(clear_cycle2, range(64), cycle % 3 == 1 ? top.topology() : block.topology(), cycle,
            cycle % 3 == 1 ? 12 : 3);
      ASSERT_EQ(block.wait_usage().active_cells, 0u) << "cycle " << cycle;
      if (cycle == 10) {
        resident = resident_bytes(), capacity = block.wait_usage().bytes + top.wait_usage().bytes;
        objects = live_ref_counted_objects();
      }
    }
    // On the cpu it is the most that was ever in use, and some cycle may take a
    // little more than those before.
    EXPECT_LE(block.wait_usage().bytes + top.wait_usage().bytes, capacity + capacity / 2);
    // A few more: a list, or a launch that is still being let go. A leak would be one for every cycle.
    EXPECT_LE(live_ref_counted_objects(), objects + 4);
    if (!kFreedMemoryStays) {
      EXPECT_LE(resident_bytes(), resident + kSlackBytes);
    }
  }
};

}  // namespace coppice
