// The stencil benchmark runs on this: our tree and the plain array, filled alike.
#pragma once
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/lookup_case.h"
#include "benchmarks/peers/array_stencil.h"
#include "lookup.kernels.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice::bench {

constexpr int kTreeSide = 512;

// Radius 115.2, half a thickness of 3: 1 M voxels, which fill 36 % of their leaves.
constexpr Region kShell{kTreeSide / 2, 120, 12588, 13972};
constexpr Region kTinyShell{kTreeSide / 2, 16, 100, 190};

// Active voxels, in the array's order: x slowest.
template <class Visit>
void for_each_voxel(const Region& region, const Visit& visit) {
  const int32_t begin = region.first(), end = begin + region.side();
  for (int32_t x = begin; x < end; ++x) {
    for (int32_t y = begin; y < end; ++y) {
      for (int32_t z = begin; z < end; ++z) {
        if (region.contains(x, y, z)) visit(x, y, z);
      }
    }
  }
}

// Bytes that any program must move: the lines with active voxels of two fields, in
// leaves of 8^3 (a line is two rows).
double least_bytes(const Region& region);

class TreeStencil {
 public:
  // A shell's leaves are bitmasked, a full cube's dense unless they are to be masked, too.
  explicit TreeStencil(const Region& region, IntrusivePtr<Device> device = Device::cpu(1),
                       bool is_masked = false);
  // Launches that follow each other, and the wait for the last.
  void run(int launches);
  uint64_t num_leaves() { return leaf_->wait_num_active_blocks(); }
  // f32[side][side][side], zero where nothing is active.
  std::vector<float> result(uint64_t& count);

 private:
  Region region_;
  IntrusivePtr<Device> device_;
  Program program_;
  Tree tree_;
  std::optional<Node> leaf_;
  Field<float> now_, next_;
};

struct FreeMemory {
  void operator()(void* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float, FreeMemory>;

// Tight around the region, with a rim of eight so that rows start on 32-byte boundaries, and rows no multiple
// of 128 bytes long, which would make neighbouring rows compete for cache sets.
class ArrayData {
 public:
  explicit ArrayData(const Region& region);
  void run_cube(const ArrayStencil& s);
  void run_list(const ArrayStencil& s);
  void run_runs(const ArrayStencil& s);
  float next(int32_t x, int32_t y, int32_t z) const { return next_.get()[index(x, y, z)]; }
  void clear_next();
  size_t num_voxels() const { return list_.size(); }
  size_t num_runs() const { return runs_.size(); }

 private:
  static constexpr int kRim = 8;
  int32_t index(int32_t x, int32_t y, int32_t z) const {
    const int32_t first = region_.first() - kRim;
    return static_cast<int32_t>((x - first) * shape_.sx + (y - first) * shape_.sy + (z - first));
  }

  Region region_;
  ArrayShape shape_;
  Floats now_, next_;
  std::vector<int32_t> list_;
  std::vector<Run> runs_;
};

}  // namespace coppice::bench
