// Tests particles against shapes and colliders in parallel (see overlaps.h).
#include "apps/mpm/overlaps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <functional>
#include <string>

#include "apps/mpm/placed_mesh.h"
#include "apps/scene/collider_motion.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice::mpm {
namespace {

// A body that no particle may begin in, with what the log calls it.
struct Obstacle {
  std::string name;
  std::function<bool(const Vec3f&)> contains;
  size_t count = 0;  // of the particles that are left out for it
};

Obstacle collider_obstacle(const scene::SceneConfig& scene, size_t index) {
  const scene::Collider& c = scene.colliders[index];
  const std::string name = fmt::format("collider[{}]", index);
  const scene::RigidPose pose = scene::pose_at(c, 0);
  const Vec3f center = pose.center.cast<float>();
  if (c.shape == scene::ColliderShape::kSphere) {
    const auto radius = static_cast<float>(c.radius);
    return {name, [=](const Vec3f& p) { return (p - center).squaredNorm() < radius * radius; }};
  }
  const Mat3f local_from_world = pose.world_from_local.transpose();
  if (c.shape == scene::ColliderShape::kPlane) {
    const Vec3f normal = pose.world_from_local * c.normal.cast<float>();
    return {name, [=](const Vec3f& p) { return normal.dot(p - center) < 0; }};
  }
  if (c.shape == scene::ColliderShape::kCapsule) {
    const auto radius = static_cast<float>(c.radius), half_height = static_cast<float>(c.half_height);
    return {name, [=](const Vec3f& p) {
              Vec3f local = local_from_world * (p - center);
              local.y() -= std::clamp(local.y(), -half_height, half_height);
              return local.squaredNorm() < radius * radius;
            }};
  }
  if (c.shape == scene::ColliderShape::kMesh) {
    return {name, [=, shape = load_mesh_collider(scene, c)](const Vec3f& p) {
              return distance_at(shape->distance, local_from_world * (p - center)) < 0;
            }};
  }
  Vec3f half = c.half_size.cast<float>();
  if (scene.dim == 2) half.z() = 1;
  return {name, [=](const Vec3f& p) {
            return ((local_from_world * (p - center)).cwiseAbs().array() < half.array()).all();
          }};
}

std::vector<Obstacle> obstacles_of(const scene::SceneConfig& scene,
                                   std::span<const std::unique_ptr<Shape>> earlier) {
  std::vector<Obstacle> all;
  for (size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i] == nullptr) continue;
    all.push_back({fmt::format("emitter[{}]", i), [&shape = *earlier[i]](const Vec3f& p) {
                     return shape.bounds().contains(p) && shape.contains(p);
                   }});
  }
  for (size_t i = 0; i < scene.colliders.size(); ++i) all.push_back(collider_obstacle(scene, i));
  return all;
}

// Returns the first obstacle that each place is in, or their number.
std::vector<uint32_t> first_obstacles(std::span<const Vec3f> particles, std::span<const Obstacle> obstacles) {
  std::vector<uint32_t> first(particles.size());
  tbb::parallel_for(size_t{0}, particles.size(), [&](size_t i) {
    const auto found =
        std::ranges::find_if(obstacles, [&](const Obstacle& o) { return o.contains(particles[i]); });
    first[i] = static_cast<uint32_t>(found - obstacles.begin());
  });
  return first;
}

// "20 begin in emitter[0] and 3 in collider[1]". One line says of all: there are as many pairs as the square
// of the emitters.
std::string text_of(std::span<const Obstacle> obstacles) {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> parts;
  size_t others = 0;
  for (const Obstacle& o : obstacles) {
    if (o.count == 0) continue;
    if (parts.size() < kMostNamed)
      parts.push_back(fmt::format("{} in {}", o.count, o.name));
    else
      others += o.count;
  }
  if (others > 0) parts.push_back(fmt::format("{} in others", others));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<Vec3f> without_overlaps(const scene::SceneConfig& scene, size_t emitter,
                                    std::vector<Vec3f> particles,
                                    std::span<const std::unique_ptr<Shape>> earlier) {
  std::vector<Obstacle> obstacles = obstacles_of(scene, earlier);
  if (obstacles.empty()) return particles;
  const std::vector<uint32_t> first = first_obstacles(particles, obstacles);
  std::vector<Vec3f> kept;
  kept.reserve(particles.size());
  for (size_t i = 0; i < particles.size(); ++i) {
    if (first[i] == obstacles.size())
      kept.push_back(particles[i]);
    else
      ++obstacles[first[i]].count;
  }
  if (kept.size() == particles.size()) return particles;
  const InputLocation& where = scene.emitters[emitter].origin.table;
  if (kept.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the emitter yields no particles: of its {}, {}; declare it before what is "
                            "around it, or move it",
                            particles.size(), text_of(obstacles)),
                where);
  }
  const Error located(
      ErrorCode::kUsage,
      fmt::format("{} of emitter[{}]'s {} particles are left out, {}", particles.size() - kept.size(),
                  emitter, particles.size(), text_of(obstacles)),
      where);
  log_info("{}", located.what());
  return kept;
}

}  // namespace coppice::mpm
