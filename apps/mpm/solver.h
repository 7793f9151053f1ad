// The MLS-MPM solver: a scene's particles, advanced frame by frame on a device.
//
// Explicit time integration; the laws of material_models.h; a pointer.pointer.dense grid that is rebuilt as
// the material moves. Particles are sorted by block when one has drifted a cell. On the cpu device results do
// not depend on the number of threads. Thread-compatible.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/geometry/stroke.h"
#include "apps/mpm/checkpoint.h"
#include "apps/mpm/grid_values.h"
#include "apps/mpm/point_packing.h"
#include "apps/mpm/solver_output.h"
#include "apps/mpm/solver_part.h"
#include "apps/render/packed_points.h"
#include "apps/render/volume_style.h"
#include "apps/scene/scene.h"
#include "core/math.h"
#include "gpu/device.h"
#include "sparse/function.h"
#include "sparse/memory_report.h"
#include "sparse/ranks/cluster.h"
#include "sparse/tree.h"

namespace coppice::mpm {

struct SolverOptions {
  // Ranks that have a part of the simulation each (rank_solver.h).
  std::optional<Cluster> cluster = {};
  // The other ranks do this when the first one calls Solver::wait_together(), with its message.
  std::function<void(SolverPart& own, std::span<const std::byte> message)> act_together = {};
  // A hand emits so many beside those of the scene at most; memory is taken when they come, 120 bytes a
  // particle and as much again to sort them.
  uint64_t most_emitted = uint64_t{1} << 20;
};

class Solver {
 public:
  virtual ~Solver() = default;

  // Samples the emitters and uploads the particles. Errors: kInvalidArgument for particles outside the domain
  // or an emitter that yields none (with the emitter's place in the scene file), and what meshes bring.
  static std::unique_ptr<Solver> create(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                        const SolverOptions& options = {});

  // Starts compiling every kernel of the solver; wait_ready() returns when they are there.
  virtual void wait_ready() = 0;
  // Advances by one frame. Blocks. Errors: kNumeric when velocities stop being finite (names the frame
  // and what to change).
  void wait_advance_frame();
  // Advances by at most `most_steps` steps, and not beyond the frame's end; returns whether it came
  // there. The end of a batch decides when the time step is chosen again, so results depend on it in
  // their last bits. Errors: as above.
  virtual bool wait_advance(int most_steps) = 0;
  virtual int frame() const = 0;
  virtual uint64_t steps() const = 0;  // since the beginning
  virtual double time_s() const = 0;
  virtual double max_speed_m_s() const = 0;  // of the last batch's last step
  virtual FrameStats wait_stats() = 0;
  ParticleSnapshot wait_snapshot() { return wait_snapshot_with({}); }
  virtual ParticleSnapshot wait_snapshot_with(const SnapshotParts& parts) = 0;
  DensityBlocks wait_density() { return wait_density_with({}); }
  virtual DensityBlocks wait_density_with(const GridParts& parts) = 0;
  // Has all ranks act together on their parts: this one calls `act`, the others what SolverOptions says, with
  // the message. Both make the same calls of a SolverPart, and of the ranks' cluster, in the same order.
  // Without ranks `act` has the whole. Errors: those of `act`; where it fails on one rank, and not in an
  // AgreedError, the others cannot go on (agreement.h).
  virtual void wait_together(std::span<const std::byte> message,
                             const std::function<void(SolverPart& own)>& act) = 0;
  // Packs all particles in the solver's order on the device, 16 bytes each: a tenth of what
  // wait_snapshot() copies.
  virtual void wait_pack(PointValue value, std::vector<render::PackedPoint>& points) = 0;
  // The first returns the node that has the grid's values, for drawing its tree, the second where it is:
  // the grid's node (i, j, k) is the middle of cell (i, j, k).
  virtual Node grid_leaf() const = 0;
  virtual render::VolumePlacement grid_placement() const = 0;
  // Returns the grid's values after the last step, as a field of a tree that is made for it at the first
  // call, with the grid's coordinates and leaves of 8^3 cells, which a BrickPacker takes. 3-D only.
  // Errors: those of the launches before.
  virtual Field<float> wait_grid_field(GridValue value) = 0;
  // Returns how full the grid's nodes are of the particles of a material, 1 being as full as they were
  // sampled: a field as above, which it replaces. `enclosed`, u8[num_particles()] in wait_pack()'s order,
  // is 1 for those of it that are inside of the surface at `threshold`, or stick out of it a little. 3-D
  // only.
  virtual Field<float> wait_body_field(MaterialKind kind, float threshold,
                                       std::vector<uint8_t>& enclosed) = 0;
  // Returns a node's values, zero where there is no such node. In 2-D the last coordinate has no meaning.
  virtual GridNode wait_grid_node(const Vec3i& node) = 0;
  // Sets from the next step on: gravity, walls, time.cfl and time.max_dt_s of a scene that else is the
  // same.
  virtual void set_parameters(const scene::SceneConfig& scene) = 0;
  virtual uint64_t num_particles() const = 0;

  // A hand acts between two steps. Places are in the world, and in the domain; in 2-D their z plays no
  // part. Errors: kUsage for a place, radius or velocity without sense, with what was expected; nothing
  // has changed then.
  //
  // Adds a ball of an emitter's material, undeformed, as dense as the emitter samples it, but not outside
  // of the domain or where particles are already; returns how many have come. It adds that many times a
  // particle's mass and, by `velocity` (m/s), momentum. Errors: kUsage, too, where there is no room for
  // so many (SolverOptions), or the ball is smaller than a particle's share of a cell. Cost: a launch
  // over all particles, sampling on the host, and sorting before the next step.
  virtual uint64_t wait_emit(size_t emitter, const Vec3f& center, float radius_m, const Vec3f& velocity) = 0;
  // Particles get (1 - d^2 / r^2)^2 of the velocity (m/s) in addition to their own, d being their
  // distance from the stroke's segment: so much momentum is added, and no mass. Cost: one launch over all
  // particles.
  virtual void wait_push(const Stroke& stroke, const Vec3f& velocity) = 0;
  // Takes out the particles in the stroke, with their mass and momentum; returns how many are gone. Cost:
  // two launches over all particles, and sorting before the next step.
  virtual uint64_t wait_cut(const Stroke& stroke) = 0;
  // The first returns all that the simulation goes on from, between two frames; the second goes on from
  // there, in a solver of the same scene, on any device and number of ranks (checkpoint.h). Over ranks the
  // first rank's has what all have. Errors: kInvalidArgument within a frame, or where it is of another scene;
  // those of the launches before.
  virtual Checkpoint wait_checkpoint() = 0;
  virtual void wait_restore(const Checkpoint& checkpoint) = 0;
  // They report the grid's tree, and the bytes of each buffer beside it by name. The first one waits for the
  // stream.
  virtual MemoryReport wait_memory_report() = 0;
  virtual std::vector<std::pair<std::string, uint64_t>> buffer_bytes() const = 0;

  // Returns what runs on the device (time_step.h): sorting, a step, and steps in a row. Runs nothing.
  virtual std::vector<Function> functions() = 0;
  // The function of one step may be edited (sparse/function.h), and given back: steps are so from then on.
  //   Function step = solver.step();
  //   step.insert_after("mpm.update_grid", program.bind(blow, over(solver.grid_leaf()), solver.grid_nodes(),
  //                                                     solver.step_length(), wind));
  //   solver.set_step(step);
  virtual const Function& step() const = 0;
  virtual void set_step(const Function& step) = 0;
  // Returns the grid's momentum, between particles_to_grid and update_grid, or velocity, behind that, and
  // mass.
  virtual const Field<NodeValue>& grid_nodes() const = 0;
  // Returns the length of the steps of a batch, s.
  virtual const Slot<float>& step_length() const = 0;
};

}  // namespace coppice::mpm
