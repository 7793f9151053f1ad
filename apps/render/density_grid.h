// This coarse grid says how full of particles space is, for the renderer's ambient light and smooth
// normals.
//
// Cells are cubes; cell (i, j, k) covers origin + [i, i+1) x [j, j+1) x [k, k+1) * cell_m; x runs fastest. In
// 2-D there is one layer along z.
#pragma once

#include <span>
#include <vector>

#include "core/math.h"

namespace coppice::render {

class DensityGrid {
 public:
  // Counts particles inside `bounds` padded by `pad_cells`; a cell is full (1) when spheres of radius_m
  // side by side would fill it. In 2-D, particles within the padding of the walls of `domain` are
  // mirrored there, so that a wall does not look like a surface. There are at most about 2 million cells.
  DensityGrid(const Aabb3f& bounds, const Aabb3f& domain, float radius_m, int dim, int pad_cells,
              std::span<const Vec3f> positions);

  const Vec3i& size() const { return size_; }
  float cell_m() const { return cell_m_; }
  const Vec3f& origin() const { return origin_; }
  size_t index(int i, int j, int k) const {
    return (static_cast<size_t>(k) * static_cast<size_t>(size_.y()) + static_cast<size_t>(j)) *
               static_cast<size_t>(size_.x()) +
           static_cast<size_t>(i);
  }
  std::span<const float> cells() const { return cells_; }
  Vec3f cell_from_world(const Vec3f& point) const { return (point - origin_) / cell_m_; }

  // Interpolates trilinearly; `cell_point` is in cells, values stand at cell centres; outside, the
  // nearest cell's.
  float sample(std::span<const float> values, const Vec3f& cell_point) const;
  // Returns the gradient of `values` per cell, from central differences of sample().
  Vec3f gradient(std::span<const float> values, const Vec3f& cell_point) const;
  // Returns the density averaged with weights 1 2 1 along each axis, `passes` times.
  std::vector<float> blurred(int passes) const;

 private:
  void add(const Vec3f& position, float amount);

  int dim_;
  Vec3i size_;
  float cell_m_;
  Vec3f origin_;
  std::vector<float> cells_;  // f32[z][y][x], 0 to 1
};

}  // namespace coppice::render
