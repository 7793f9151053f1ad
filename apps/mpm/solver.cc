// The frame loop of the MLS-MPM solver (see solver.h): when to sort, how long a step is, and how many to
// queue.
#include "apps/mpm/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/mpm/hand_actions.h"
#include "apps/mpm/mass_flow.h"
#include "apps/mpm/particle_rows.h"
#include "apps/mpm/rank_solver.h"
#include "apps/mpm/rank_steps.h"
#include "apps/mpm/readback.h"
#include "apps/mpm/solver_state.h"
#include "apps/mpm/step_length.h"
#include "apps/mpm/time_step.h"
#include "apps/scene/collider_motion.h"
#include "core/error.h"
#include "core/log.h"
#include "core/machine_memory.h"
#include "core/trace.h"
#include "gpu/kernel_store.h"
#include "sparse/ranks/cell_owners.h"

namespace coppice::mpm {
namespace {

template <int D>
class SolverOf final : public Solver, private SolverPart {
 public:
  SolverOf(IntrusivePtr<Device> device, const scene::SceneConfig& scene, const SolverOptions& options)
      : state_(std::move(device), scene, options.most_emitted, options.cluster),
        readback_(state_),
        flow_(state_) {
    if (state_.cluster) {
      runner_ =
          std::make_unique<RankSteps<D>>(state_.program, state_.grid, state_.particles, *state_.cluster);
      return;
    }
    auto time_step = std::make_unique<TimeStep<D>>(state_.program, state_.grid, state_.particles);
    time_step_ = time_step.get();
    runner_ = std::move(time_step);
  }
  ~SolverOf() override { wait(state_.device->default_stream().barrier()); }

  void wait_ready() override;
  bool wait_advance(int most_steps) override;
  int frame() const override { return frame_; }
  uint64_t steps() const override { return steps_; }
  double time_s() const override { return time_s_; }
  double max_speed_m_s() const override { return state_.max_speed_m_s(); }
  FrameStats wait_stats() override;
  ParticleSnapshot wait_snapshot_with(const SnapshotParts& parts) override {
    return readback_.wait_snapshot(parts);
  }
  DensityBlocks wait_density_with(const GridParts& parts) override { return readback_.wait_density(parts); }
  void wait_together(std::span<const std::byte>, const std::function<void(SolverPart&)>& act) override {
    act(*this);
  }
  void wait_pack(PointValue value, std::vector<render::PackedPoint>& points) override {
    readback_.wait_pack(value, points);
  }
  Node grid_leaf() const override { return state_.grid.leaf(); }
  render::VolumePlacement grid_placement() const override { return readback_.grid_placement(); }
  Field<float> wait_grid_field(GridValue value) override { return readback_.wait_grid_field(value); }
  Field<float> wait_body_field(MaterialKind kind, float threshold, std::vector<uint8_t>& enclosed) override {
    return readback_.wait_body_field(kind, threshold, enclosed);
  }
  GridNode wait_grid_node(const Vec3i& node) override { return readback_.wait_grid_node(node); }
  void set_parameters(const scene::SceneConfig& scene) override { state_.set_parameters(scene); }
  uint64_t num_particles() const override { return state_.particles.num_everywhere(); }
  uint64_t wait_emit(size_t emitter, const Vec3f& center, float radius_m, const Vec3f& velocity) override {
    return mpm::wait_emit(state_, emitter, center, radius_m, velocity, steps_);
  }
  void wait_push(const Stroke& stroke, const Vec3f& velocity) override {
    mpm::wait_push(state_, stroke, velocity);
  }
  uint64_t wait_cut(const Stroke& stroke) override { return mpm::wait_cut(state_, stroke); }
  Checkpoint wait_checkpoint() override;
  void wait_restore(const Checkpoint& checkpoint) override;
  MemoryReport wait_memory_report() override { return state_.grid.tree().wait_memory_report(); }
  std::vector<std::pair<std::string, uint64_t>> buffer_bytes() const override {
    return {{"particles", state_.particles.array_bytes()},
            {"particles being sorted",
             state_.particles.sorting_bytes() + (time_step_ != nullptr ? time_step_->temporary_bytes() : 0)},
            {"packed for output", readback_.buffer_bytes()}};
  }
  std::vector<Function> functions() override {
    return {time_step().sort(state_.step_arguments()), time_step().step(), time_step().batch()};
  }
  const Function& step() const override { return time_step().step(); }
  void set_step(const Function& step) override { time_step().set_step(step); }
  const Field<NodeValue>& grid_nodes() const override { return state_.grid.nodes(); }
  const Slot<float>& step_length() const override { return time_step().step_length(); }

 private:
  const std::optional<Cluster>& cluster() const override { return state_.cluster; }
  ParticleSnapshot wait_rows(const SnapshotParts& parts, std::span<const uint64_t> ends) override {
    return mpm::wait_rows(state_, parts, ends);
  }
  DensityBlocks wait_own_blocks(const GridParts& parts) override { return readback_.wait_own_blocks(parts); }
  std::function<int(const Vec3i&)> wait_owners() override;

  TimeStep<D>& time_step() const {
    if (time_step_ == nullptr)
      throw Error(ErrorCode::kInvalidArgument, "over ranks steps are launches one by one, and no functions");
    return *time_step_;
  }
  void wait_sort();
  void choose_dt(double remaining_s);
  void wait_batch(int steps);
  void check_finite() const;

  SolverState<D> state_;
  std::unique_ptr<StepRunner<D>> runner_;
  TimeStep<D>* time_step_ = nullptr;  // of runner_, where there are no ranks
  Readback<D> readback_;
  MassFlow<D> flow_;
  bool sorted_once_ = false;
  int frame_ = 0;
  uint64_t steps_ = 0;
  double time_s_ = 0;
  FrameStats stats_;
  double wave_margin_ = 0;     // by so much waves may become faster within a batch, relative
  bool is_frame_over_ = true;  // no step of the next one was made
};

template <int D>
void SolverOf<D>::wait_ready() {
  const TraceScope trace("solver.compile");
  runner_->compile(state_.step_arguments());
  readback_.compile();
  state_.grid.tree().compile_runtime();
  state_.device->kernels().wait_compiled();
  give_back_freed_memory();  // of sampled particles, and of the compiler
}

template <int D>
bool SolverOf<D>::wait_advance(int most_steps) {
  const TraceScope trace("solver.batch");
  if (is_frame_over_) {
    stats_.steps = stats_.sorts = 0;
    state_.forces->wait_clear();
  }
  is_frame_over_ = false;
  const double frame_dt_s = state_.scene.time.frame_dt_s;
  const double frame_end_s = (frame_ + 1) * frame_dt_s, tolerance_s = 1e-9 * frame_dt_s;
  // Within a batch of steps colliders have constant velocities.
  const double key_s = scene::next_keyframe_s(state_.scene, time_s_, tolerance_s);
  const double end_s = key_s < frame_end_s - tolerance_s ? key_s : frame_end_s;
  set_motions(state_.scene, time_s_, state_.control);
  if (!sorted_once_ || state_.control.drifted != 0) wait_sort();
  choose_dt(end_s - time_s_);
  const double steps = std::round((end_s - time_s_) / stats_.dt_s);
  most_steps = std::min(most_steps, kStepsPerBatch);
  if (flow_.is_on()) most_steps = std::min(most_steps, flow_.most_steps(time_s_, stats_.dt_s));
  wait_batch(static_cast<int>(std::min<double>(steps, most_steps)));
  check_finite();
  // The float dt of the steps adds up to the end but for rounding; the next frame or motion of a collider
  // starts from the exact time.
  if (std::abs(end_s - time_s_) < 0.5 * stats_.dt_s) state_.control.time_s = time_s_ = end_s;
  if (flow_.is_on()) flow_.wait_update(time_s_);
  if (frame_end_s - time_s_ > tolerance_s) return false;
  ++frame_;
  is_frame_over_ = true;
  log_debug("frame {}: {} steps, dt {:.3g} s from {}, {} sorts", frame_, stats_.steps, stats_.dt_s,
            to_text(stats_.dt_bound), stats_.sorts);
  return true;
}

template <int D>
void SolverOf<D>::wait_sort() {
  state_.n_blocks = runner_->wait_sort(state_.step_arguments());
  state_.control.drifted = 0;
  ++stats_.sorts;
  sorted_once_ = true;
}

template <int D>
void SolverOf<D>::choose_dt(double remaining_s) {
  const StepLength length =
      choose_step_length(state_.scene, {.frame = frame_,
                                        .time_s = time_s_,
                                        .remaining_s = remaining_s,
                                        .speed_m_s = state_.max_speed_m_s(),
                                        .sound_m_s = state_.max_sound_m_s() * (1 + wave_margin_),
                                        .is_start = steps_ == 0});
  state_.arguments.dt = static_cast<float>(length.dt_s);
  // A faster particle or wave stops the batch, and dt is chosen again.
  state_.arguments.max_speed = static_cast<float>(length.max_speed_m_s);
  stats_.dt_s = length.dt_s;
  stats_.dt_bound = length.bound;
}

template <int D>
void SolverOf<D>::wait_batch(int steps) {
  StepControl<D>& c = state_.control;
  c.stop = 0;
  c.steps_done = 0;
  c.too_fast = c.too_stiff = 0;
  state_.wait_upload_control();
  runner_->wait_batch(steps, state_.step_arguments());
  state_.wait_download_control();
  stats_.steps += c.steps_done;
  steps_ += c.steps_done;
  time_s_ = c.time_s;
  // A batch that waves end is short. Where a material hardens from step to step, the next one has more room.
  wave_margin_ = c.too_stiff != 0 ? std::clamp(2 * wave_margin_, 0.01, 0.2) : 0.9 * wave_margin_;
}

template <int D>
void SolverOf<D>::check_finite() const {
  if (state_.control.not_finite == 0) return;
  throw Error(ErrorCode::kNumeric,
              fmt::format("frame {}: velocities stopped being finite at t = {:.6g} s (dt {:.3g} s); lower "
                          "time.cfl (now {:.3g}) or time.max_dt_s, or soften the material",
                          frame_ + 1, state_.control.time_s, stats_.dt_s, state_.scene.time.cfl));
}

template <int D>
Checkpoint SolverOf<D>::wait_checkpoint() {
  if (!is_frame_over_)
    throw Error(ErrorCode::kInvalidArgument, "a checkpoint is made between two frames, not within one");
  Checkpoint c;
  wait_save(state_, c);
  flow_.save(c);
  c.frame = frame_, c.steps = steps_, c.time_s = time_s_;
  c.dt_s = stats_.dt_s, c.wave_margin = wave_margin_;
  c.was_sorted = sorted_once_ ? 1 : 0;
  return c;
}

template <int D>
void SolverOf<D>::wait_restore(const Checkpoint& c) {
  flow_.load(c);
  wait_load(state_, c);
  frame_ = c.frame, steps_ = c.steps, time_s_ = c.time_s;
  stats_ = {};
  stats_.dt_s = c.dt_s, wave_margin_ = c.wave_margin;
  sorted_once_ = c.was_sorted != 0;
  is_frame_over_ = true;
}

template <int D>
std::function<int(const Vec3i&)> SolverOf<D>::wait_owners() {
  if (!state_.cluster) return [](const Vec3i&) { return 0; };
  return [owners = CellOwners(state_.grid.leaf())](const Vec3i& node) {
    if constexpr (D == 3)
      return owners.owner({node.x(), node.y(), node.z()});
    else
      return owners.owner({node.x(), node.y()});
  };
}

template <int D>
FrameStats SolverOf<D>::wait_stats() {
  FrameStats s = stats_;
  s.time_s = time_s_;
  s.particles = state_.particles.num_everywhere();
  s.active_blocks = state_.cluster ? state_.cluster->wait_sum(state_.n_blocks) : state_.n_blocks;
  s.max_speed_m_s = state_.max_speed_m_s();
  s.max_wave_m_s = state_.max_sound_m_s();
  s.mass_in_kg = flow_.mass_in_kg();
  s.mass_out_kg = flow_.mass_out_kg();
  s.colliders = state_.forces->wait_read(state_.scene.time.frame_dt_s);
  readback_.wait_sum(s);
  return s;
}

}  // namespace

void Solver::wait_advance_frame() {
  const TraceScope trace("solver.frame");
  while (!wait_advance(kStepsPerBatch)) {
  }
}

std::unique_ptr<Solver> make_own_solver(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                        const SolverOptions& options) {
  if (scene.dim == 2) return std::make_unique<SolverOf<2>>(std::move(device), scene, options);
  return std::make_unique<SolverOf<3>>(std::move(device), scene, options);
}

std::unique_ptr<Solver> Solver::create(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                       const SolverOptions& options) {
  if (options.cluster) return lead_ranks(std::move(device), scene, options);
  return make_own_solver(std::move(device), scene, options);
}

}  // namespace coppice::mpm
