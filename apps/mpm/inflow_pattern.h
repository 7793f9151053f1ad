// The samples that stream through an inflow's shape.
//
// They are those of one stratified lattice (sampling.h) that moves with the emitter's velocity, so that they
// stay as evenly spaced as they are in a body. A sample comes when its straight path enters the shape for the
// first time, and comes once; through the hollows of a mesh it moves on. For a box that streams along one of
// its axes, cells are turned and stretched so that a whole number of them lies across it, and keep their
// volume: each layer has as many samples, and the rate is exact. Constant after construction.
#pragma once
#include <memory>
#include <vector>

#include "apps/geometry/mesh_sweep.h"
#include "apps/geometry/sample_lattice.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

class InflowPattern {
 public:
  // The emitter has an inflow. Errors, for a mesh: those of load_mesh(), and kInvalidArgument for one that
  // has open edges, at its place in the scene.
  InflowPattern(const scene::SceneConfig& scene, size_t emitter);

  // Returns where the samples are at `now_s` that enter later than `after_s`, but not later than `until_s`,
  // in order of cells: a function of the arguments alone. All times count from the inflow's begin; samples
  // that are in the shape then enter at 0, which is later than an `after_s` below 0. Runs on all TBB threads.
  // Cost: a test for each sample in the bounds of the shape and of what it swept meanwhile, but for cells
  // that are filled (of a mesh none counts as filled).
  std::vector<Vec3f> enter(double after_s, double until_s, double now_s) const;
  // Returns whether the shape contains a place in the world.
  bool contains(const Vec3f& place) const;
  // m^3/s (m^2/s in 2-D): the cross-section times the speed; of a mesh the area that it covers as seen along
  // the velocity, about.
  double volume_per_s() const;

 private:
  // The lattice's cell (0, 0, 0) has a corner at `origin`, and its edges are `world_from_cells` columns.
  struct Frame {
    Vec3d origin = Vec3d::Zero();              // m
    Mat3d world_from_cells, cells_from_world;  // m, 1/m
  };
  Frame make_frame(double dx_m) const;
  Vec3d world_of(const Vec3d& cells) const { return frame_.origin + frame_.world_from_cells * cells; }
  // Returns when a sample that is at `q` at 0 enters, s; infinity for never.
  double entry_s(const Vec3d& q) const;
  bool is_filled(const std::array<int32_t, 3>& cell, double by_s) const;

  scene::Emitter emitter_;
  std::shared_ptr<const MeshSweep> mesh_;  // null: another shape
  Vec3d center_, reach_;                   // m: of the shape's bounds, half of these along its own axes
  int dim_;
  SampleLattice lattice_;
  Mat3d local_from_world_;
  Vec3d velocity_, local_velocity_;  // m/s
  Frame frame_;
};

// Returns about how many particles the inflows of a scene bring up to its last frame.
double expected_inflow(const scene::SceneConfig& scene);

}  // namespace coppice::mpm
