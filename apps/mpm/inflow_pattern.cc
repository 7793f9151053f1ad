// When samples enter a shape, and where they are then (see inflow_pattern.h).
#include "apps/mpm/inflow_pattern.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/geometry/mesh.h"
#include "apps/geometry/mesh_orientation.h"
#include "apps/mpm/placed_mesh.h"
#include "core/error.h"

namespace coppice::mpm {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A path is inside from `from` to `to`, s.
struct Interval {
  double from = -kNever, to = kNever;
  void intersect(const Interval& o) { from = std::max(from, o.from), to = std::min(to, o.to); }
};

// Returns the interval of |p + s v| <= half.
Interval between_planes(double p, double v, double half) {
  if (v == 0) return std::abs(p) <= half ? Interval{} : Interval{kNever, -kNever};
  const double a = (-half - p) / v, b = (half - p) / v;
  return {std::min(a, b), std::max(a, b)};
}

// Returns the interval of |p + s v|^2 <= radius^2.
Interval in_ball(const Vec3d& p, const Vec3d& v, double radius) {
  const double a = v.squaredNorm(), c = p.squaredNorm() - radius * radius;
  if (a == 0) return c <= 0 ? Interval{} : Interval{kNever, -kNever};
  const double half_b = p.dot(v), root = half_b * half_b - a * c;
  if (root < 0) return {kNever, -kNever};
  return {(-half_b - std::sqrt(root)) / a, (-half_b + std::sqrt(root)) / a};
}

Vec3d without_y(Vec3d v) {
  v.y() = 0;
  return v;
}

Interval path_inside(const scene::Emitter& e, int dim, const Vec3d& p, const Vec3d& v) {
  if (e.shape == scene::EmitterShape::kSphere) return in_ball(p, v, e.radius);
  Interval inside;
  if (e.shape == scene::EmitterShape::kCylinder) {
    inside = in_ball(without_y(p), without_y(v), e.radius);
    inside.intersect(between_planes(p.y(), v.y(), e.half_height));
    return inside;
  }
  for (int axis = 0; axis < dim; ++axis)
    inside.intersect(between_planes(p[axis], v[axis], e.half_size[axis]));
  return inside;
}

// Half of the shape's extents along the axes of its own frame, m.
Vec3d reach_of(const scene::Emitter& e, int dim) {
  Vec3d reach = Vec3d::Constant(e.radius);
  if (e.shape == scene::EmitterShape::kBox) reach = e.half_size;
  if (e.shape == scene::EmitterShape::kCylinder) reach.y() = e.half_height;
  if (dim == 2) reach.z() = 0;
  return reach;
}

std::shared_ptr<const MeshSweep> load_sweep(const scene::Emitter& e) {
  if (e.shape != scene::EmitterShape::kMesh) return nullptr;
  const InputLocation& where = e.origin.of("mesh");
  try {
    TriangleMesh mesh = load_placed_mesh(e);
    orient_alike(mesh);
    if (const int64_t edges = open_edge_count(mesh); edges > 0) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("an inflow needs a closed mesh; {} has {} open edges", e.mesh_path.string(), edges));
    }
    return std::make_shared<MeshSweep>(mesh, e.velocity);
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), where);
  }
}

}  // namespace

InflowPattern::InflowPattern(const scene::SceneConfig& scene, size_t emitter)
    : emitter_(scene.emitters[emitter]),
      mesh_(load_sweep(emitter_)),
      center_(mesh_ ? Vec3d(0.5 * (mesh_->low() + mesh_->high())) : emitter_.center),
      reach_(mesh_ ? Vec3d(0.5 * (mesh_->high() - mesh_->low())) : reach_of(emitter_, scene.dim)),
      dim_(scene.dim),
      lattice_({dim_, 1.0f, emitter_.particles_per_cell, static_cast<uint64_t>(*emitter_.seed)}),
      local_from_world_(
          mesh_ ? Mat3d(Mat3d::Identity())
                : rotation_from_euler_degrees(emitter_.rotate_deg.cast<float>()).transpose().cast<double>()),
      velocity_(emitter_.velocity),
      local_velocity_(local_from_world_ * emitter_.velocity),
      frame_(make_frame(scene.dx_m())) {}

InflowPattern::Frame InflowPattern::make_frame(double dx_m) const {
  Frame frame;
  frame.world_from_cells = dx_m * Mat3d::Identity();
  int along = 0;
  local_velocity_.cwiseAbs().maxCoeff(&along);
  constexpr double kAlong = 1 - 1e-6;
  if (emitter_.shape == scene::EmitterShape::kBox &&
      std::abs(local_velocity_[along]) > kAlong * local_velocity_.norm()) {
    // Cells end where the box does, in front and on all sides.
    Vec3d spacing = Vec3d::Constant(dx_m), corner = Vec3d::Zero();
    for (int k = 0; k < dim_; ++k) {
      corner[k] = -emitter_.half_size[k];
      if (k == along) continue;
      const double width = 2 * emitter_.half_size[k];
      spacing[k] = width / std::max(std::round(width / dx_m), 1.0);
      spacing[along] *= dx_m / spacing[k];
    }
    corner[along] = std::copysign(emitter_.half_size[along], local_velocity_[along]);
    frame.origin = emitter_.center + local_from_world_.transpose() * corner;
    frame.world_from_cells = local_from_world_.transpose() * spacing.asDiagonal();
  }
  frame.cells_from_world = frame.world_from_cells.inverse();
  return frame;
}

double InflowPattern::entry_s(const Vec3d& q) const {
  if (mesh_) return mesh_->entry_s(q);
  const Interval inside =
      path_inside(emitter_, dim_, local_from_world_ * (q - emitter_.center), local_velocity_);
  return inside.from <= inside.to && inside.to >= 0 ? std::max(inside.from, 0.0) : kNever;
}

bool InflowPattern::contains(const Vec3f& place) const { return entry_s(place.cast<double>()) == 0; }

// The places that have entered by a time are convex together where the shape is: a cell is in it with its
// corners. A mesh need not be.
bool InflowPattern::is_filled(const std::array<int32_t, 3>& cell, double by_s) const {
  if (mesh_) return false;
  for (int corner = 0; corner < 1 << dim_; ++corner) {
    Vec3d q = Vec3d::Zero();
    for (int k = 0; k < dim_; ++k) q[k] = cell[static_cast<size_t>(k)] + (corner >> k & 1);
    if (!(entry_s(world_of(q)) <= by_s)) return false;
  }
  return true;
}

std::vector<Vec3f> InflowPattern::enter(double after_s, double until_s, double now_s) const {
  // In cells, from here on.
  const Mat3d cells_from_local = frame_.cells_from_world * local_from_world_.transpose();
  const Vec3d reach = cells_from_local.cwiseAbs() * reach_,
              center = frame_.cells_from_world * (center_ - frame_.origin),
              velocity = frame_.cells_from_world * velocity_;
  std::array<int32_t, 3> first{0, 0, 0}, last{0, 0, 0};
  for (int k = 0; k < dim_; ++k) {
    const double near = center[k] - velocity[k] * std::max(after_s, 0.0),
                 far = center[k] - velocity[k] * until_s;
    first[static_cast<size_t>(k)] = static_cast<int32_t>(std::floor(std::min(near, far) - reach[k])) - 1;
    last[static_cast<size_t>(k)] = static_cast<int32_t>(std::floor(std::max(near, far) + reach[k])) + 1;
  }
  if (dim_ == 2) first[2] = last[2] = 0;
  std::vector<std::vector<Vec3f>> slabs(static_cast<size_t>(last[0] - first[0] + 1));
  tbb::parallel_for(size_t{0}, slabs.size(), [&](size_t slab) {
    const int32_t i = first[0] + static_cast<int32_t>(slab);
    for (int32_t j = first[1]; j <= last[1]; ++j) {
      for (int32_t k = first[2]; k <= last[2]; ++k) {
        if (after_s >= 0 && is_filled({i, j, k}, after_s)) continue;
        lattice_.visit_cell({i, j, k}, [&](const Vec3d& cells) {
          const Vec3d q = world_of(cells);
          const double at_s = entry_s(q);
          if (at_s > after_s && at_s <= until_s) slabs[slab].push_back((q + now_s * velocity_).cast<float>());
        });
      }
    }
  });
  std::vector<Vec3f> all;
  for (const std::vector<Vec3f>& slab : slabs) all.insert(all.end(), slab.begin(), slab.end());
  return all;
}

double InflowPattern::volume_per_s() const {
  if (mesh_) return mesh_->covered_area() * velocity_.norm();
  const Vec3d v = local_velocity_.cwiseAbs(), h = emitter_.half_size;
  const double r = emitter_.radius, speed = velocity_.norm();
  switch (emitter_.shape) {
    case scene::EmitterShape::kSphere:
      return dim_ == 2 ? 2 * r * speed : M_PI * r * r * speed;
    case scene::EmitterShape::kCylinder:
      return v.y() * M_PI * r * r + std::hypot(v.x(), v.z()) * 4 * r * emitter_.half_height;
    case scene::EmitterShape::kBox:
    case scene::EmitterShape::kMesh:
      break;
  }
  if (dim_ == 2) return 2 * (v.x() * h.y() + v.y() * h.x());
  return 4 * (v.x() * h.y() * h.z() + v.y() * h.x() * h.z() + v.z() * h.x() * h.y());
}

double expected_inflow(const scene::SceneConfig& scene) {
  const double end_s = scene.time.frames * scene.time.frame_dt_s, per_m = 1 / scene.dx_m();
  double sum = 0;
  for (size_t i = 0; i < scene.emitters.size(); ++i) {
    const scene::Emitter& e = scene.emitters[i];
    if (!e.inflow) continue;
    const double on_s = std::min(e.inflow->until_s.value_or(end_s), end_s) - e.inflow->from_s;
    sum += std::max(on_s, 0.0) * InflowPattern(scene, i).volume_per_s() * std::pow(per_m, scene.dim) *
           e.particles_per_cell;
  }
  return sum;
}

}  // namespace coppice::mpm
