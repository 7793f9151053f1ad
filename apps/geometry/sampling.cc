// Stratified sampling over x-slabs of cells in parallel.
#include "apps/geometry/sampling.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <array>
#include <cmath>

#include "apps/geometry/philox.h"
#include "core/error.h"

namespace coppice {
namespace {

struct CellGrid {
  SamplingOptions options;
  std::array<int32_t, 3> first, last;  // cells that the bounds touch, both inclusive
  int k = 1;                           // sub-cells per axis
  int n_subcells = 1;                  // k^dim
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
  check_options(options);
  CellGrid grid{options, {0, 0, 0}, {0, 0, 0}};
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
  const auto power = [&](int k) { return options.dim == 2 ? k * k : k * k * k; };
  while (power(grid.k) < options.particles_per_cell) ++grid.k;
  grid.n_subcells = power(grid.k);
  return grid;
}

void sample_cell(const Shape& shape, const CellGrid& grid, const std::array<int32_t, 3>& cell,
                 std::vector<Vec3f>& particles) {
  const SamplingOptions& options = grid.options;
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(options.seed),
                                    static_cast<uint32_t>(options.seed >> 32)};
  int wanted = options.particles_per_cell;
  for (int subcell = 0; subcell < grid.n_subcells && wanted > 0; ++subcell) {
    const std::array<uint32_t, 4> random =
        philox4x32({static_cast<uint32_t>(cell[0]), static_cast<uint32_t>(cell[1]),
                    static_cast<uint32_t>(cell[2]), static_cast<uint32_t>(subcell)},
                   key);
    // Selection sampling (Knuth, volume 2, 3.4.2, algorithm S): exactly `wanted` of those left, all subsets
    // alike.
    if (uniform_float(random[3]) * static_cast<float>(grid.n_subcells - subcell) >=
        static_cast<float>(wanted))
      continue;
    --wanted;
    const std::array<int, 3> sub{subcell % grid.k, subcell / grid.k % grid.k, subcell / (grid.k * grid.k)};
    Vec3f point = Vec3f::Zero();
    for (int axis = 0; axis < options.dim; ++axis) {
      const double in_cell = (sub[axis] + static_cast<double>(uniform_float(random[axis]))) / grid.k;
      point[axis] = static_cast<float>((cell[axis] + in_cell) * options.dx);
    }
    if (shape.contains(point)) particles.push_back(point);
  }
}

}  // namespace

std::vector<Vec3f> sample_particles(const Shape& shape, const SamplingOptions& options) {
  const CellGrid grid = make_grid(shape.bounds(), options);
  std::vector<std::vector<Vec3f>> slabs(grid.last[0] - grid.first[0] + 1);
  tbb::parallel_for(size_t{0}, slabs.size(), [&](size_t slab) {
    const int32_t i = grid.first[0] + static_cast<int32_t>(slab);
    for (int32_t j = grid.first[1]; j <= grid.last[1]; ++j) {
      for (int32_t k = grid.first[2]; k <= grid.last[2]; ++k)
        sample_cell(shape, grid, {i, j, k}, slabs[slab]);
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
