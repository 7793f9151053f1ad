// Stratified sampling over x-slabs of cells in parallel.
#include "apps/geometry/sampling.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <array>
#include <cmath>

#include "apps/geometry/sample_lattice.h"
#include "core/error.h"

namespace coppice {
namespace {

struct CellGrid {
  std::array<int32_t, 3> first, last;  // cells that the bounds touch, both inclusive
};

void check_options(const SamplingOptions& options) {
  if (options.dim != 2 && options.dim != 3) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("cannot sample in {} dimensions, expected 2 or 3", options.dim));
  }
  if (!std::isfinite(options.dx) || !(options.dx > 0)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("dx is {}, expected a positive number", options.dx));
  }
  if (options.particles_per_cell < 1 || options.particles_per_cell > 4096) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("particles_per_cell is {}, expected 1 to 4096", options.particles_per_cell));
  }
}

CellGrid make_grid(const Aabb3f& bounds, const SamplingOptions& options) {
  CellGrid grid{{0, 0, 0}, {0, 0, 0}};
  double n_points = options.particles_per_cell;
  for (int axis = 0; axis < options.dim; ++axis) {
    const double first = std::floor(static_cast<double>(bounds.min[axis]) / options.dx);
    const double last = std::floor(static_cast<double>(bounds.max[axis]) / options.dx);
    n_points *= last - first + 1;
    if (!(n_points <= 0x1p31) || std::abs(first) > 0x1p30 || std::abs(last) > 0x1p30) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("a shape of {:.4g} m would have over 2^31 particles in grid cells of {:.4g} m",
                              (bounds.max - bounds.min).maxCoeff(), options.dx));
    }
    grid.first[axis] = static_cast<int32_t>(first);
    grid.last[axis] = static_cast<int32_t>(last);
  }
  return grid;
}

}  // namespace

SampleLattice::SampleLattice(const SamplingOptions& options) : options_(options) {
  check_options(options);
  const auto power = [&](int k) { return options.dim == 2 ? k * k : k * k * k; };
  while (power(k_) < options.particles_per_cell) ++k_;
  n_subcells_ = power(k_);
}

std::vector<Vec3f> sample_particles(const Shape& shape, const SamplingOptions& options) {
  const SampleLattice lattice(options);
  const CellGrid grid = make_grid(shape.bounds(), options);
  std::vector<std::vector<Vec3f>> slabs(grid.last[0] - grid.first[0] + 1);
  tbb::parallel_for(size_t{0}, slabs.size(), [&](size_t slab) {
    const int32_t i = grid.first[0] + static_cast<int32_t>(slab);
    for (int32_t j = grid.first[1]; j <= grid.last[1]; ++j) {
      for (int32_t k = grid.first[2]; k <= grid.last[2]; ++k) {
        lattice.visit_cell({i, j, k}, [&](const Vec3d& exact) {
          const Vec3f point = exact.cast<float>();
          if (shape.contains(point)) slabs[slab].push_back(point);
        });
      }
    }
  });
  size_t n = 0;
  for (const auto& slab : slabs) n += slab.size();
  std::vector<Vec3f> particles;
  particles.reserve(n);
  for (auto& slab : slabs) {
    particles.insert(particles.end(), slab.begin(), slab.end());
    std::vector<Vec3f>().swap(slab);  // the peak is one copy and a slab, not two copies
  }
  return particles;
}

}  // namespace coppice
