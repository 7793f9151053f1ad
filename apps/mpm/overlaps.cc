// Tests particles against shapes and colliders in parallel (see overlaps.h).
#include "apps/mpm/overlaps.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "apps/mpm/placed_mesh.h"
#include "apps/scene/collider_motion.h"
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

size_t count_in_collider(const scene::SceneConfig& scene, std::span<const Vec3f> particles,
                         const scene::Collider& c) {
  const scene::RigidPose pose = scene::pose_at(c, 0);
  const Vec3f center = pose.center.cast<float>();
  if (c.shape == scene::ColliderShape::kSphere) {
    const auto radius = static_cast<float>(c.radius);
    return count_inside(particles,
                        [&](const Vec3f& p) { return (p - center).squaredNorm() < radius * radius; });
  }
  const Mat3f local_from_world = pose.world_from_local.transpose();
  if (c.shape == scene::ColliderShape::kPlane) {
    const Vec3f normal = pose.world_from_local * c.normal.cast<float>();
    return count_inside(particles, [&](const Vec3f& p) { return normal.dot(p - center) < 0; });
  }
  if (c.shape == scene::ColliderShape::kCapsule) {
    const auto radius = static_cast<float>(c.radius), half_height = static_cast<float>(c.half_height);
    return count_inside(particles, [&](const Vec3f& p) {
      Vec3f local = local_from_world * (p - center);
      local.y() -= std::clamp(local.y(), -half_height, half_height);
      return local.squaredNorm() < radius * radius;
    });
  }
  if (c.shape == scene::ColliderShape::kMesh) {
    const auto shape = load_mesh_collider(scene, c);
    return count_inside(particles, [&](const Vec3f& p) {
      return distance_at(shape->distance, local_from_world * (p - center)) < 0;
    });
  }
  Vec3f half = c.half_size.cast<float>();
  if (scene.dim == 2) half.z() = 1;
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
    const size_t count = count_in_collider(scene, particles, scene.colliders[i]);
    if (count > 0) warn(scene, emitter, begin_in(count) + fmt::format("collider[{}], and may stay there", i));
  }
}

}  // namespace coppice::mpm
