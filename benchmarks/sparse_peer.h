// Peers of the benchmarks of sparse trees: Taichi (peers/sparse_taichi.py) and, for stencils on a GPU, Warp.
#pragma once
#include <string_view>

#include "benchmarks/lookup_case.h"
#include "benchmarks/peer_program.h"
#include "benchmarks/report.h"

namespace coppice::bench {

struct SparseSizes {
  int32_t blocks;  // per axis of the tree that is filled
  int32_t side;    // cells per axis of the grid of which a tenth is active
  int64_t items;   // appended
  Region shell;
  int repetitions;
};

// `device` is ours: a peer runs on a GPU where we do, and on as many threads as we on the
// CPU; it is left out for others.
class SparsePeer : public OptionalPeer {
 public:
  SparsePeer(const Options& options, const SparseSizes& sizes, std::string_view device, int threads);
};

// peers/laplacian_warp.py; sides in cells.
class WarpPeer : public OptionalPeer {
 public:
  WarpPeer(const Options& options, int32_t full_side, int32_t tenth_leaves_side, std::string_view device);
};

}  // namespace coppice::bench
