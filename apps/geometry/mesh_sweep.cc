// Projection, bins and crossings (see mesh_sweep.h).
#include "apps/geometry/mesh_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace coppice {
namespace {

constexpr int kMostBins = 1024;  // per axis

double cross_2d(const Vec2d& a, const Vec2d& b) { return a.x() * b.y() - a.y() * b.x(); }

// Returns whether `at` is to the left of the edge from `a` to `b`; both of its directions have one opinion,
// so that nothing falls between the triangles on its two sides.
bool is_left(const Vec2d& a, const Vec2d& b, const Vec2d& at) {
  const bool is_forward = a.x() != b.x() ? a.x() < b.x() : a.y() < b.y();
  const Vec2d &from = is_forward ? a : b, &to = is_forward ? b : a;
  return (cross_2d(to - from, at - from) >= 0) == is_forward;
}

}  // namespace

MeshSweep::MeshSweep(const TriangleMesh& mesh, const Vec3d& velocity)
    : along_(velocity / velocity.squaredNorm()) {
  COPPICE_CHECK(velocity.squaredNorm() > 0);
  across_[0] = velocity.normalized().unitOrthogonal();
  across_[1] = velocity.normalized().cross(across_[0]);
  low_ = Vec3d::Constant(std::numeric_limits<double>::infinity());
  high_ = -low_;
  plane_low_ = low_.head<2>(), plane_high_ = high_.head<2>();
  for (const Vec3i& corners : mesh.triangles) {
    Triangle t;
    for (int k = 0; k < 3; ++k) {
      const Vec3d x = mesh.vertices[static_cast<size_t>(corners[k])].cast<double>() + mesh.origin;
      low_ = low_.cwiseMin(x), high_ = high_.cwiseMax(x);
      t.corner[k] = project(x), t.time_s[k] = along_.dot(x);
      plane_low_ = plane_low_.cwiseMin(t.corner[k]), plane_high_ = plane_high_.cwiseMax(t.corner[k]);
    }
    // The axes across and the velocity are right-handed: who sees a triangle counter-clockwise looks at it
    // from ahead, where it faces.
    const double area = cross_2d(t.corner[1] - t.corner[0], t.corner[2] - t.corner[0]);
    if (area == 0) continue;  // it is seen edge on
    t.sign = area > 0 ? 1 : -1;
    triangles_.push_back(t);
  }
  put_into_bins();
}

void MeshSweep::put_into_bins() {
  bins_ = std::clamp(static_cast<int>(std::sqrt(static_cast<double>(triangles_.size()))), 1, kMostBins);
  bins_per_m_ = bins_ * (plane_high_ - plane_low_).cwiseMax(1e-300).cwiseInverse();
  const auto visit = [&](auto&& put) {
    for (size_t i = 0; i < triangles_.size(); ++i) {
      const Triangle& t = triangles_[i];
      const Vec2d low = bin_of(t.corner[0].cwiseMin(t.corner[1]).cwiseMin(t.corner[2])),
                  high = bin_of(t.corner[0].cwiseMax(t.corner[1]).cwiseMax(t.corner[2]));
      const auto clamped = [&](double at) { return std::clamp(static_cast<int>(at), 0, bins_ - 1); };
      for (int y = clamped(low.y()); y <= clamped(high.y()); ++y)
        for (int x = clamped(low.x()); x <= clamped(high.x()); ++x)
          put(static_cast<size_t>(y * bins_ + x), static_cast<uint32_t>(i));
    }
  };
  starts_.assign(static_cast<size_t>(bins_) * static_cast<size_t>(bins_) + 1, 0);
  visit([&](size_t bin, uint32_t) { ++starts_[bin + 1]; });
  for (size_t bin = 1; bin < starts_.size(); ++bin) starts_[bin] += starts_[bin - 1];
  lists_.resize(starts_.back());
  std::vector<uint32_t> next(starts_.begin(), starts_.end() - 1);
  visit([&](size_t bin, uint32_t triangle) { lists_[next[bin]++] = triangle; });
}

void MeshSweep::crossings(const Vec3d& place, std::vector<Crossing>& found) const {
  found.clear();
  const Vec2d at = project(place);
  if ((at.array() < plane_low_.array()).any() || (at.array() > plane_high_.array()).any()) return;
  const Vec2d bin = bin_of(at);
  const auto clamped = [&](double b) {
    return std::min(static_cast<size_t>(b), static_cast<size_t>(bins_ - 1));
  };
  const size_t n = clamped(bin.y()) * static_cast<size_t>(bins_) + clamped(bin.x());
  const double now_s = along_.dot(place);
  for (uint32_t i = starts_[n]; i < starts_[n + 1]; ++i) {
    const Triangle& t = triangles_[lists_[i]];
    const bool left = t.sign > 0;
    bool is_in = true;
    for (int k = 0; k < 3; ++k) is_in = is_in && is_left(t.corner[k], t.corner[(k + 1) % 3], at) == left;
    if (!is_in) continue;
    const Vec2d u = t.corner[1] - t.corner[0], v = t.corner[2] - t.corner[0], w = at - t.corner[0];
    const double area = cross_2d(u, v), b = cross_2d(w, v) / area, c = cross_2d(u, w) / area;
    found.push_back({(1 - b - c) * t.time_s[0] + b * t.time_s[1] + c * t.time_s[2] - now_s, t.sign});
  }
}

double MeshSweep::entry_s(const Vec3d& place) const {
  thread_local std::vector<Crossing> found;
  crossings(place, found);
  std::erase_if(found, [](const Crossing& c) { return c.time_s < 0; });
  int winding = 0;  // at the place: a path that leaves as often as it enters was outside
  for (const Crossing& c : found) winding += c.sign;
  if (winding != 0) return 0;
  std::ranges::sort(found, {}, &Crossing::time_s);
  for (const Crossing& c : found) {
    winding -= c.sign;
    if (winding != 0) return c.time_s;
  }
  return std::numeric_limits<double>::infinity();
}

double MeshSweep::covered_area() const {
  constexpr int kLines = 256;
  const Vec2d size = plane_high_ - plane_low_;
  const Vec3d before = (along_.dot(low_ + high_) / 2 - 2 * along_.norm() * (high_ - low_).norm()) * along_ /
                       along_.squaredNorm();
  int hits = 0;
  for (int y = 0; y < kLines; ++y) {
    for (int x = 0; x < kLines; ++x) {
      const Vec2d at = plane_low_ + size.cwiseProduct(Vec2d(x + 0.5, y + 0.5)) / kLines;
      hits += std::isfinite(entry_s(before + at.x() * across_[0] + at.y() * across_[1])) ? 1 : 0;
    }
  }
  return size.prod() * hits / (double{kLines} * kLines);
}

}  // namespace coppice
