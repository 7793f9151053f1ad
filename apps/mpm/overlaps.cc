// Tests particles against shapes and colliders in parallel (see overlaps.h).
#include "apps/mpm/overlaps.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "apps/geometry/mesh.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice::mpm {
namespace {

template <class IsInside>
size_t count_inside(std::span<const Vec3f> particles, const IsInside& is_inside) {
  return tbb::parallel_reduce(
      tbb::blocked_range<size_t>(0, particles.size(), 4096), size_t{0},
      [&](const tbb::blocked_range<size_t>& range, size_t count) {
        for (size_t i = range.begin(); i < range.end(); ++i) count += is_inside(particles[i]) ? 1 : 0;
        return count;
      },
      std::plus<>());
}

size_t count_in_collider(std::span<const Vec3f> particles, const scene::Collider& c, int dim) {
  const Vec3f center = c.center.cast<float>();
  if (c.shape == scene::ColliderShape::kSphere) {
    const auto radius = static_cast<float>(c.radius);
    return count_inside(particles,
                        [&](const Vec3f& p) { return (p - center).squaredNorm() < radius * radius; });
  }
  const Mat3f local_from_world = rotation_from_euler_degrees(c.rotate_deg.cast<float>()).transpose();
  Vec3f half = c.half_size.cast<float>();
  if (dim == 2) half.z() = 1;
  return count_inside(particles, [&](const Vec3f& p) {
    return ((local_from_world * (p - center)).cwiseAbs().array() < half.array()).all();
  });
}

void warn(const scene::SceneConfig& scene, size_t emitter, const std::string& what) {
  const Error located(ErrorCode::kUsage, what, scene.emitters[emitter].origin.table);
  log_warning("{}", located.what());
}

}  // namespace

void warn_of_overlaps(const scene::SceneConfig& scene, size_t emitter, std::span<const Vec3f> particles,
                      std::span<const std::unique_ptr<Shape>> earlier) {
  const auto begin_in = [&](size_t count) {
    return fmt::format("{} of emitter[{}]'s {} particles begin in ", count, emitter, particles.size());
  };
  const auto is_in = [&](size_t i, const Vec3f& p) {
    return earlier[i]->bounds().contains(p) && earlier[i]->contains(p);
  };
  // One line says of all of them: there are as many pairs as the square of the emitters.
  std::vector<size_t> overlapped;
  for (size_t i = 0; i < earlier.size(); ++i)
    if (count_inside(particles, [&](const Vec3f& p) { return is_in(i, p); }) > 0) overlapped.push_back(i);
  if (!overlapped.empty()) {
    const size_t count = count_inside(particles, [&](const Vec3f& p) {
      return std::ranges::any_of(overlapped, [&](size_t i) { return is_in(i, p); });
    });
    const std::string others = overlapped.size() > 1 ? fmt::format(" or {} more", overlapped.size() - 1) : "";
    warn(
        scene, emitter,
        begin_in(count) + fmt::format("emitter[{}]{}, too, where there is more mass", overlapped[0], others));
  }
  for (size_t i = 0; i < scene.colliders.size(); ++i) {
    const size_t count = count_in_collider(particles, scene.colliders[i], scene.dim);
    if (count > 0) warn(scene, emitter, begin_in(count) + fmt::format("collider[{}], and may stay there", i));
  }
}

}  // namespace coppice::mpm
