// Neighbours by a grid of cells, their covariance, and the ellipsoids.
#include "apps/render/particle_kernels.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace coppice::render {
namespace {

constexpr size_t kGrain = 512;
constexpr float kNeighbourReach = 2.5f;  // spacings
constexpr int kFewest = 8;               // neighbours of a particle that is not spray; a full ball has 65
constexpr float kPull = 0.85f;           // of the way to the neighbours' mean
// Radii of the ellipsoid: where neighbours are all around, along a flat surface and across it, in spacings.
constexpr float kFullRadius = 2.9f;
constexpr float kLeastRadius = 1.4f;
constexpr float kMostRadius = 3.2f;
constexpr float kFullWeight = 33.7f;  // of the neighbours in a full ball, with the particle's own
// Where there are fewer than this part of that, more than the surface takes away, each stands for more
// volume.
constexpr float kThin = 0.5f;
constexpr float kMostVolume = 2.0f;
constexpr float kPeakOfUnit = 1.5666f;  // 1 / the integral of (1 - q^2)^3 over the unit ball

// Particles in the order of the cells that they are in.
class CellOrder {
 public:
  CellOrder(std::span<const Vec3f> positions, float cell_m) : cell_m_(cell_m) {
    for (const Vec3f& p : positions) bounds_.extend(p);
    size_ = cell_of(bounds_.max) + Vec3i::Ones();
    starts_.assign(index(Vec3i(0, 0, size_.z())) + 1, 0);
    for (const Vec3f& p : positions) ++starts_[index(cell_of(p)) + 1];
    for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
    sorted_.resize(positions.size());
    std::vector<uint32_t> next(starts_.begin(), starts_.end() - 1);
    for (const Vec3f& p : positions) sorted_[next[index(cell_of(p))]++] = p;
  }

  // Calls visit(other) for the positions in the 27 cells around.
  template <class Visit>
  void for_each_near(const Vec3f& position, const Visit& visit) const {
    const Vec3i low = (cell_of(position) - Vec3i::Ones()).cwiseMax(0);
    const Vec3i high = (cell_of(position) + Vec3i::Ones()).cwiseMin(size_ - Vec3i::Ones());
    for (int k = low.z(); k <= high.z(); ++k) {
      for (int j = low.y(); j <= high.y(); ++j) {
        const size_t end = starts_[index(Vec3i(high.x(), j, k)) + 1];
        for (size_t i = starts_[index(Vec3i(low.x(), j, k))]; i < end; ++i) visit(sorted_[i]);
      }
    }
  }

 private:
  Vec3i cell_of(const Vec3f& p) const { return ((p - bounds_.min) / cell_m_).cast<int>(); }
  size_t index(const Vec3i& c) const {
    return (static_cast<size_t>(c.z()) * static_cast<size_t>(size_.y()) + static_cast<size_t>(c.y())) *
               static_cast<size_t>(size_.x()) +
           static_cast<size_t>(c.x());
  }

  float cell_m_;
  Aabb3f bounds_;
  Vec3i size_;
  std::vector<uint32_t> starts_;  // [cells + 1]
  std::vector<Vec3f> sorted_;
};

ParticleKernel kernel_of(const CellOrder& order, const Vec3f& position, float spacing_m) {
  const float reach_m = kNeighbourReach * spacing_m;
  float total = 0;
  int neighbours = -1;  // but for itself
  Vec3f sum = Vec3f::Zero();
  Mat3f squares = Mat3f::Zero();
  order.for_each_near(position, [&](const Vec3f& other) {
    const Vec3f d = (other - position) / reach_m;
    const float far = d.squaredNorm();
    if (far >= 1.0f) return;
    const float weight = 1.0f - far * std::sqrt(far);
    total += weight;
    ++neighbours;
    sum += weight * d;
    squares += weight * d * d.transpose();
  });
  ParticleKernel kernel{};
  if (neighbours < kFewest) return kernel;
  const Vec3f mean = sum / total;
  const Mat3f covariance = squares / total - mean * mean.transpose();
  const Eigen::SelfAdjointEigenSolver<Mat3f> axes(covariance);
  // The variance along an axis of a full ball with these weights is 3 / 20.
  const Vec3f spread = (axes.eigenvalues().cwiseMax(0.0f) / 0.15f).cwiseSqrt();
  const Vec3f radii = (kFullRadius * spread).cwiseMax(kLeastRadius).cwiseMin(kMostRadius) * spacing_m;
  const Mat3f& turn = axes.eigenvectors();
  kernel.center = position + kPull * reach_m * mean;
  kernel.unit_from_world = turn * radii.cwiseInverse().asDiagonal() * turn.transpose();
  kernel.half_size = (turn * radii.asDiagonal()).rowwise().norm();
  const float volume = std::clamp(kThin * kFullWeight / total, 1.0f, kMostVolume);
  kernel.peak = kPeakOfUnit * volume * std::pow(spacing_m, 3.0f) / radii.prod();
  return kernel;
}

}  // namespace

std::vector<ParticleKernel> make_particle_kernels(std::span<const Vec3f> positions, float spacing_m,
                                                  const GoesOn& goes_on) {
  constexpr size_t kPart = 16384;  // a tenth of a second or so of two cores
  std::vector<ParticleKernel> kernels(positions.size());
  if (positions.empty()) return kernels;
  const CellOrder order(positions, kNeighbourReach * spacing_m);
  const size_t part = goes_on ? kPart : positions.size();
  for (size_t first = 0; first < positions.size() && (!goes_on || goes_on()); first += part) {
    const size_t end = std::min(first + part, positions.size());
    tbb::parallel_for(tbb::blocked_range<size_t>(first, end, kGrain),
                      [&](const tbb::blocked_range<size_t>& range) {
                        for (size_t i = range.begin(); i != range.end(); ++i)
                          kernels[i] = kernel_of(order, positions[i], spacing_m);
                      });
  }
  return kernels;
}

}  // namespace coppice::render
