// Packs a tree's field as bricks on the host; volumes are drawn from these.
//
//     BrickPacker packer(device);
//     BrickVolume volume;                                         // keeps its memory between calls
//     packer.wait_pack(density, BrickFormat::kHalf, volume);
//     atlas.update(volume);
//
// Bricks are packed by kernels on the device of the tree, from any node: dense, bitmasked or pointer, of
// any extents. The tree stays as it is. A brick is there if one of its 729 values is not zero; where
// there is no brick, values are zero, as inactive cells are.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "apps/render/brick_layout.h"
#include "gpu/device.h"
#include "sparse/program.h"

namespace coppice::render {

inline auto operator<=>(const CellCoord& a, const CellCoord& b) {
  return std::tie(a.x, a.y, a.z) <=> std::tie(b.x, b.y, b.z);
}
inline bool operator==(const CellCoord& a, const CellCoord& b) { return (a <=> b) == 0; }

// Halves have 11 significant bits and end at 65504: larger finite values become that.
enum class BrickFormat { kHalf, kFloat };
constexpr size_t bytes_per_value(BrickFormat format) { return format == BrickFormat::kHalf ? 2 : 4; }

struct BrickVolume {
  // The tree's dimension: 1, 2 or 3. Where there is no third axis, or second, values are the same along
  // it, and the volume is one cell thick.
  int dim = 3;
  BrickFormat format = BrickFormat::kHalf;
  std::vector<CellCoord> origins;  // [n], ascending, multiples of 8
  std::vector<BrickStats> stats;   // [n]
  std::vector<std::byte> values;   // half or f32 [n][9][9][9]

  size_t size() const { return origins.size(); }
  std::span<const std::byte> values_of(size_t brick) const {
    const size_t bytes = kBrickValues * bytes_per_value(format);
    return std::span(values).subspan(brick * bytes, bytes);
  }
};

class BrickPacker {
 public:
  explicit BrickPacker(IntrusivePtr<Device> device);

  // Blocks the host until all that was launched before is done, and the bricks are in `volume`. Cost: a pass
  // over the node's containers, one over the bricks that they touch, which ends where a value is not zero,
  // and one over the bricks that are kept, by walks, or twice as fast where leaves are bricks; their values
  // are copied to the host. Device memory for them is kept. Errors: kInvalidArgument for a field of another
  // device, of a dynamic node or of none; kOutOfRange where the bricks' bounds hold more than 2^24 bricks;
  // those of the launches before.
  void wait_pack(const Field<float>& field, BrickFormat format, BrickVolume& volume);
  // The same as halves, or as floats where the largest finite value is too large for halves or so small that
  // they would show steps; `volume.format` says what it is. From the first floats on all are floats, so that
  // moments of one volume, in whatever memory, have one format.
  void wait_pack(const Field<float>& field, BrickVolume& volume);
  // The next volume is another one: it is packed as halves again where they suffice.
  void forget_format() { format_ = BrickFormat::kHalf; }

 private:
  void list_candidates(const Field<float>& field, int dim);
  void keep_filled(const Field<float>& field, int dim);

  IntrusivePtr<Device> device_;
  Program program_;
  BrickFormat format_ = BrickFormat::kHalf;                                 // that fitted so far
  IntrusivePtr<Buffer> coords_, flags_, brick_of_buffer_, stats_, values_;  // scratch on the device
  std::vector<CellCoord> bricks_;      // that containers touch; then those that are kept
  std::vector<CellCoord> containers_;  // first cells
  std::vector<uint32_t>
      number_of_;  // [bounds of the containers in bricks]: in bricks_, from 1; 0: not touched
  std::vector<uint32_t> is_filled_;  // [bricks_]
  // Leaves that are bricks are packed by a launch over them, without walks.
  bool leaves_are_bricks_ = false;
  std::vector<int32_t> brick_of_;   // [containers_], then: its brick; -1: it is not kept
  std::vector<uint32_t> by_block_;  // [bricks_]: whether one has that brick
};

}  // namespace coppice::render
