// The order of a solver's blocks, over all ranks: what sorting over ranks goes by (rank_steps.h).
//
// Device-clean.
#pragma once
#include "apps/mpm/solver_types.h"

namespace coppice::mpm {

// A block's place in the list of all blocks, as if all were in it: the list goes from one cell of the upper
// node to the next, last axis fastest, and through the blocks in each in the same way.
template <int D>
struct BlockOrder {
  std::int32_t fan;       // blocks in an upper cell, per axis
  std::int32_t upper[D];  // upper cells, per axis
  COPPICE_INLINE std::uint64_t place(const std::int32_t* origin) const {
    std::uint64_t above = 0, within = 0;
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k) {
      const std::int32_t block = origin[3 - D + k] / kBlockSize<D>;
      above = above * static_cast<std::uint64_t>(upper[k]) + static_cast<std::uint64_t>(block / fan);
      within = within * static_cast<std::uint64_t>(fan) + static_cast<std::uint64_t>(block % fan);
    }
    std::uint64_t blocks = 1;
    COPPICE_UNROLL for (int k = 0; k < D; ++k) blocks *= static_cast<std::uint64_t>(fan);
    return above * blocks + within;
  }
  // Sets the first node of the block at a place; the first axis of three is left alone in 2-D.
  void origin(std::uint64_t place, std::int32_t* first) const {
    std::uint64_t blocks = 1;
    for (int k = 0; k < D; ++k) blocks *= static_cast<std::uint64_t>(fan);
    std::uint64_t above = place / blocks, within = place % blocks;
    for (int k = D - 1; k >= 0; --k) {
      const auto width = static_cast<std::uint64_t>(upper[k]), inner = static_cast<std::uint64_t>(fan);
      const std::uint64_t block = above % width * inner + within % inner;
      first[3 - D + k] = static_cast<std::int32_t>(block) * kBlockSize<D>;
      above /= width, within /= inner;
    }
  }
};
// Particles that were in no block come behind all that were, by their ids.
inline constexpr std::uint64_t kPlaceOfNew = std::uint64_t{1} << 63;

}  // namespace coppice::mpm
