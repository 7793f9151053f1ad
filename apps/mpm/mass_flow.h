// Particles come to a running solver with inflows, and leave it by outflows, between two batches of steps.
//
// The scene and the time alone decide which particles come, not the lengths of batches. Thread-compatible.
// Errors: those of the launches; kOutOfMemory where there is no room.
#pragma once
#include <vector>

#include "apps/mpm/checkpoint.h"
#include "apps/mpm/inflow_pattern.h"
#include "apps/mpm/outflow_boxes.h"
#include "apps/mpm/solver_state.h"

namespace coppice::mpm {

template <int D>
class MassFlow {
 public:
  // `state` must live as long as this object. Those inflows that begin at 0 have filled their shapes.
  explicit MassFlow(SolverState<D>& state);

  bool is_on() const { return !streams_.empty() || n_boxes_ > 0; }  // or else nothing else need be called
  // Returns how many steps of `dt_s` a batch may have from `time_s` on: in them, what streams in moves half a
  // cell, what may leave a cell, and none goes far beyond the begin of an inflow.
  int most_steps(double time_s, double dt_s) const;
  // Takes out what is in an outflow, and lets come what has entered up to `time_s`.
  void wait_update(double time_s);

  // Copies what has come and left to a checkpoint, and back. Errors: kInvalidArgument for another number of
  // emitters or inflows.
  void save(Checkpoint& to) const;
  void load(const Checkpoint& from);

  // Since the beginning.
  double mass_in_kg() const { return mass_of(came_); }
  double mass_out_kg() const { return mass_of(left_); }

 private:
  struct Stream {
    size_t emitter;
    InflowPattern pattern;
    double from_s, until_s;
    double done_s;  // what entered up to here has come, from the inflow's begin; below 0: nothing
  };

  double mass_of(const std::vector<uint64_t>& counts) const;
  void wait_take_out();
  void wait_bring_in(size_t stream, double time_s);
  // Leaves out places where something else is: a collider, or the shape of an inflow before this one.
  std::vector<Vec3f> open_places(size_t stream, double time_s, std::vector<Vec3f> places) const;

  SolverState<D>& state_;
  std::vector<Stream> streams_;
  uint32_t n_boxes_ = 0;
  std::vector<uint64_t> came_, left_;  // [n_emitters] particles
  IntrusivePtr<Buffer> boxes_;         // OutflowBox<D>[n_boxes]
  IntrusivePtr<Buffer> counts_;        // u32[n_emitters]
};

}  // namespace coppice::mpm
