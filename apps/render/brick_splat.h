// Kernels are added to this sparse grid on the host: it has bricks where something may be, nothing
// elsewhere.
//
// Sums are kept in fixed point, so that they have the same bits whatever order the additions come in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/render/brick_pack.h"
#include "apps/render/particle_kernels.h"

namespace coppice::render {

class BrickSplat {
 public:
  // Adds up all kernels with a peak, and smooths the sum with weights 1 2 1 along each axis `passes` times.
  // Values stand at the middle of cells; cell (0, 0, 0) begins at the world's origin. Errors: kOutOfRange
  // where the bricks' bounds hold more than 2^24 bricks.
  BrickSplat(std::span<const ParticleKernel> kernels, float cell_m, int passes);

  bool is_empty() const { return origins_.empty(); }
  // Interpolates trilinearly; 0 where there is no brick.
  float sample(const Vec3f& world) const;
  // Appends the bricks, moved by `shift` cells, to a volume of floats. The volume's bricks are ascending
  // then if those that it had come before.
  void append_to(BrickVolume& volume, const Vec3i& shift) const;
  Vec3i low() const { return 8 * first_; }             // cells
  Vec3i high() const { return 8 * (first_ + size_); }  // cells, behind the last

 private:
  static constexpr int kCells = kBrickCells * kBrickCells * kBrickCells;

  void find_bricks(std::span<const ParticleKernel> kernels, int margin);
  void add(const ParticleKernel& kernel, std::vector<uint32_t>& sums) const;
  void smooth(int axis);
  // Returns the brick's number; -1 where there is none.
  int brick_at(const Vec3i& brick) const;
  float value(const Vec3i& cell) const;
  size_t index(const Vec3i& brick) const;

  float cell_m_;
  Vec3i first_ = Vec3i::Zero(), size_ = Vec3i::Zero();  // of the bounds, in bricks
  std::vector<int32_t> number_of_;                      // [x][y][z] of the bounds; -1: no brick
  std::vector<Vec3i> origins_;                          // [n], in bricks, ascending
  std::vector<float> values_;                           // [n][8][8][8], z fastest
};

}  // namespace coppice::render
