// Measures what an active 8^3 block of two floats per cell costs in memory, everything counted.
//
// It is the growth of this process's resident memory from before a tree is made to after a stencil ran over
// it in both directions, divided by the blocks: payload, cell headers, slots, the allocator's lists, the
// loop's list, the neighbour table, scratch space; page tables are left out. The stencil touches every
// value, as untouched pages cost nothing.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/benchmarks.h"
#include "benchmarks/measure.h"
#include "core/error.h"
#include "memory.kernels.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "sparse/tree_storage.h"

namespace coppice::bench {
namespace {

constexpr double kPayload = 2 * sizeof(float) * 8 * 8 * 8;

struct Usage {
  uint64_t blocks = 0;
  double total = 0;                                 // bytes of growth; the rest per block
  double header = 0, elements = 0, neighbours = 0;  // what the tree knows about
};

void check(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// Makes a ball of blocks of a radius, in blocks, in a domain of side^3 blocks, and lets it go.
Usage measure(const IntrusivePtr<Device>& device, int side, int radius) {
  ::malloc_trim(0);
  const size_t before = resident_bytes();
  Program program(device);
  Tree tree(device, {.name = "memory"});
  const Node block = tree.root().pointer({side, side, side}), leaf = block.dense({8, 8, 8});
  const Field<float> a = leaf.place<float>("a"), b = leaf.place<float>("b");
  check(
      program.launch(grow_ball, range(int64_t{side} * side * side), leaf.topology(), side, radius * radius));
  check(program.launch(spread, over(leaf), Pair{a, b}));
  check(program.launch(spread, over(leaf), Pair{b, a}));
  Usage usage;
  usage.blocks = leaf.wait_num_active_blocks();
  const auto blocks = static_cast<double>(usage.blocks);
  usage.total = static_cast<double>(resident_bytes()) - static_cast<double>(before);
  usage.header = static_cast<double>(tree.storage().layout().node(block.id()).cell_bytes) - kPayload;
  check(device->default_stream().enqueue("memory.lists", [&](InStream& s) {
    const LoopList& list = tree.storage().lists().update(s, leaf.id(), true);
    usage.elements = static_cast<double>(list.elements->size_bytes()) / blocks;
    usage.neighbours = static_cast<double>(list.neighbours->size_bytes()) / blocks;
  }));
  return usage;
}

// 1 M blocks, fewer where memory is short: three quarters of what is there.
int choose_radius(const Options& options) {
  if (options.tiny) return 4;
  const double wanted = options.quick ? 25 : 63;
  const double room = 0.75 * static_cast<double>(available_bytes()) / (1.2 * kPayload);
  return static_cast<int>(std::min(wanted, std::cbrt(room * 3 / (4 * M_PI))));
}

}  // namespace

void run_memory(Report& report) {
  const IntrusivePtr<Device> device = Device::cpu();
  const int radius = choose_radius(report.options());
  int side = 8;
  while (side < 2 * radius) side *= 2;
  report.begin(fmt::format("memory, a ball of blocks {} across", 2 * radius));
  measure(device, side, 2);  // compiles and loads the kernels, which belong to the tree's shape
  const Usage u = measure(device, side, radius);
  const double bytes = u.total / static_cast<double>(u.blocks);
  Row row;
  row.name = "memory/block", row.unit = "B/block", row.ours = bytes;
  row.peer = kPayload, row.peer_name = "payload alone", row.target = ratio_at_most(1.1), row.floor = kPayload;
  row.detail = fmt::format(
      "{} blocks; cell header {:.0f}, loop list {:.0f}, neighbour table {:.0f}, all else {:.0f}", u.blocks,
      u.header, u.elements, u.neighbours, bytes - kPayload - u.header - u.elements - u.neighbours);
  report.add(row);
}

}  // namespace coppice::bench
