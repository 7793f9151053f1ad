// Counting, blurring and sampling of the density grid.
#include "apps/render/density_grid.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>

namespace coppice::render {
namespace {

constexpr float kCellsAlongLongestSide = 112.0f;

}  // namespace

DensityGrid::DensityGrid(const Aabb3f& bounds, const Aabb3f& domain, float radius_m, int dim, int pad_cells,
                         std::span<const Vec3f> positions)
    : dim_(dim) {
  // Fewer discs than spheres fit a cell of the same side: wider cells keep the noise of counting down.
  cell_m_ = std::max((dim == 2 ? 4.5f : 2.5f) * radius_m, bounds.size().maxCoeff() / kCellsAlongLongestSide);
  for (int axis = 0; axis < 3; ++axis) {
    const bool flat = axis == 2 && dim == 2;
    const int pad = flat ? 0 : pad_cells;
    size_[axis] = flat ? 1 : static_cast<int>(bounds.size()[axis] / cell_m_) + 1 + 2 * pad;
    origin_[axis] = bounds.min[axis] - static_cast<float>(pad) * cell_m_;
  }
  cells_.assign(index(0, 0, size_.z()), 0.0f);
  const float full = std::pow(cell_m_ / (2.0f * radius_m), static_cast<float>(dim));
  const float one = std::min(1.0f, 1.0f / full);
  for (const Vec3f& position : positions) {
    add(position, one);
    if (dim == 3) continue;
    for (int corner = 1; corner < 4; ++corner) {
      Vec3f image = position;
      for (int axis = 0; axis < 2; ++axis) {
        if ((corner >> axis & 1) == 0) continue;
        const bool low = position[axis] < domain.center()[axis];
        image[axis] = 2.0f * (low ? domain.min[axis] : domain.max[axis]) - position[axis];
      }
      add(image, one);
    }
  }
}

// Adds nothing outside the grid.
void DensityGrid::add(const Vec3f& position, float amount) {
  const Vec3f at = cell_from_world(position);
  if ((at.array() < 0.0f).any() || (at.array() >= size_.cast<float>().array()).any()) return;
  float& cell = cells_[index(static_cast<int>(at.x()), static_cast<int>(at.y()), static_cast<int>(at.z()))];
  cell = std::min(1.0f, cell + amount);
}

float DensityGrid::sample(std::span<const float> values, const Vec3f& cell_point) const {
  int low[3];
  int high[3];
  float part[3];
  for (int axis = 0; axis < 3; ++axis) {
    const float limit = static_cast<float>(size_[axis] - 1);
    const float x = std::clamp(cell_point[axis] - 0.5f, 0.0f, limit);
    low[axis] = static_cast<int>(x);
    high[axis] = std::min(low[axis] + 1, size_[axis] - 1);
    part[axis] = x - static_cast<float>(low[axis]);
  }
  const auto along_x = [&](int j, int k) {
    const float a = values[index(low[0], j, k)];
    return a + part[0] * (values[index(high[0], j, k)] - a);
  };
  const auto along_y = [&](int k) {
    const float a = along_x(low[1], k);
    return a + part[1] * (along_x(high[1], k) - a);
  };
  const float a = along_y(low[2]);
  return dim_ == 2 ? a : a + part[2] * (along_y(high[2]) - a);
}

Vec3f DensityGrid::gradient(std::span<const float> values, const Vec3f& cell_point) const {
  Vec3f result = Vec3f::Zero();
  for (int axis = 0; axis < dim_; ++axis) {
    const Vec3f step = Vec3f::Unit(axis);
    result[axis] = 0.5f * (sample(values, cell_point + step) - sample(values, cell_point - step));
  }
  return result;
}

std::vector<float> DensityGrid::blurred(int passes) const {
  std::vector<float> from = cells_;
  std::vector<float> to(cells_.size());
  for (int pass = 0; pass < passes * dim_; ++pass) {
    const int axis = pass % dim_;
    tbb::parallel_for(tbb::blocked_range<int>(0, size_.z() * size_.y()),
                      [&](const tbb::blocked_range<int>& rows) {
                        for (int row = rows.begin(); row != rows.end(); ++row) {
                          Vec3i at(0, row % size_.y(), row / size_.y());
                          for (at.x() = 0; at.x() < size_.x(); ++at.x()) {
                            Vec3i before = at;
                            Vec3i after = at;
                            before[axis] = std::max(at[axis] - 1, 0);
                            after[axis] = std::min(at[axis] + 1, size_[axis] - 1);
                            const size_t here = index(at.x(), at.y(), at.z());
                            to[here] = 0.25f * (from[index(before.x(), before.y(), before.z())] +
                                                from[index(after.x(), after.y(), after.z())]) +
                                       0.5f * from[here];
                          }
                        }
                      });
    from.swap(to);
  }
  return from;
}

}  // namespace coppice::render
