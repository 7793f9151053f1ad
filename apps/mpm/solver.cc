// The MLS-MPM solver (see solver.h): set-up, the frame loop, sorting and read-back. The file is long because
// all of it works on the same particle arrays and step control, which no other file may touch.
#include "apps/mpm/solver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "apps/geometry/mesh.h"
#include "apps/mpm/emission.h"
#include "apps/mpm/hand.h"
#include "apps/mpm/hand_check.h"
#include "apps/mpm/shown_grid.h"
#include "apps/mpm/solver_types.h"
#include "apps/mpm/step_graph.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"
#include "executor/executor.h"
#include "gpu/host_access.h"
#include "gpu/kernel_store.h"
#include "gpu/stream_primitives.h"
#include "mpm.kernels.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "sparse/tree_storage.h"

namespace coppice::mpm {
namespace {

// Steps that are queued between two looks at the step control; as many as @mpm.batch runs ahead.
constexpr int kStepsPerBatch = 32;
constexpr double kMostSteps = 1e7;  // per frame; more would take weeks
// Attributes of so many particles are on the host at a time: they stay in the processor's cache while
// they are read.
constexpr uint64_t kRowParticles = uint64_t{1} << 14;

// The kernels of one dimension under common names.
template <int D>
struct Kernels;
template <>
struct Kernels<2> {
  static constexpr auto &scatter = particles_to_grid_2d, &grid = update_grid_2d,
                        &gather = grid_to_particles_2d, &begin = begin_step_2d;
  static constexpr auto& finish = finish_step_2d;
  static constexpr auto &home = activate_home_2d, &reach = activate_reach_2d, &number = number_blocks_2d;
  static constexpr auto &keys = block_keys_2d, &density = copy_density_2d;
  static constexpr auto& pack = pack_points_2d;
  static constexpr auto &push = push_particles_2d, &kept = mark_kept_2d, &taken = mark_taken_2d;
};
template <>
struct Kernels<3> {
  static constexpr auto &scatter = particles_to_grid_3d, &grid = update_grid_3d,
                        &gather = grid_to_particles_3d, &begin = begin_step_3d;
  static constexpr auto& finish = finish_step_3d;
  static constexpr auto &home = activate_home_3d, &reach = activate_reach_3d, &number = number_blocks_3d;
  static constexpr auto &keys = block_keys_3d, &density = copy_density_3d;
  static constexpr auto& pack = pack_points_3d;
  static constexpr auto &push = push_particles_3d, &kept = mark_kept_3d, &taken = mark_taken_3d;
};

// The length of a step follows from these.
struct StepBounds {
  double speed_m_s, sound_m_s, dt_s;
  bool is_max_dt, is_sound;  // which of them: time.max_dt_s, waves, else particles
  bool is_start;             // nothing has moved yet: it is what the scene asks for
};

// A step that is short because of what was asked becomes longer by other means than one that is short because
// the motion has blown up, which the steps before were too long for.
std::string why_too_many_steps(const StepBounds& b, const scene::Time& time) {
  if (b.is_max_dt) {
    return fmt::format(
        "steps of {:.3g} s, as time.max_dt_s asks for, are more than {:.0e} in a frame; raise "
        "time.max_dt_s, or have shorter frames (time.fps)",
        b.dt_s, kMostSteps);
  }
  const std::string what = fmt::format(
      "particles move with {:.3g} m/s and waves with {:.3g} m/s, which needs steps of {:.3g} s, more than "
      "{:.0e} "
      "in a frame",
      b.speed_m_s, b.sound_m_s, b.dt_s, kMostSteps);
  if (!b.is_start) {
    return fmt::format("{}; lower time.cfl (now {:.3g}) or time.max_dt_s, or soften the material", what,
                       time.cfl);
  }
  return fmt::format("{}; {}, take a coarser grid, or raise time.cfl (now {:.3g})", what,
                     b.is_sound ? "soften the material" : "lower velocities or gravity", time.cfl);
}

void check(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// Arguments and results of the solver's functions.
using Value = RCReference<AsyncValue>;
template <class T>
Value value(T given) {
  return make_available_async_value<T>(std::move(given));
}

// Leaves out the error's path through the solver's functions: how much of it the error has taken depends
// on how far ahead the host was, and the user did not write step.graph.
Error for_users(const Error& error) {
  const bool is_ours = error.location().file == solver_functions().source().file;
  return Error(error.code(), error.message(), is_ours ? InputLocation{} : error.location());
}

template <int D>
SmallVec<float, D> small(const Vec3d& v) {
  SmallVec<float, D> s{};
  for (int a = 0; a < D; ++a) s.v[a] = static_cast<float>(v[a]);
  return s;
}

template <int D>
SmallMat<float, D> rotation(const Vec3d& degrees) {
  const Mat3f r = rotation_from_euler_degrees(degrees.cast<float>());
  SmallMat<float, D> m{};
  for (int i = 0; i < D; ++i) {
    for (int j = 0; j < D; ++j) m.m[i * D + j] = r(i, j);
  }
  return m;
}

template <int D>
Group<D> make_group(const scene::SceneConfig& scene, const scene::Emitter& e) {
  const scene::MaterialParameters& m = scene.materials[static_cast<size_t>(e.material_id)];
  Group<D> g{};
  g.kind = scene::kind_of_material(m);
  g.density = static_cast<float>(scene::density_kg_m3(m));
  g.volume = static_cast<float>(std::pow(scene.dx_m(), D) / e.particles_per_cell);
  g.mass = g.density * g.volume;
  g.jelly = Jelly<float, D>::from_young(static_cast<float>(e.jelly.youngs_modulus_Pa),
                                        static_cast<float>(e.jelly.poisson_ratio));
  g.snow = Snow<float, D>::from_young(static_cast<float>(e.snow.youngs_modulus_Pa),
                                      static_cast<float>(e.snow.poisson_ratio));
  g.snow.critical_compression = static_cast<float>(e.snow.theta_c);
  g.snow.critical_stretch = static_cast<float>(e.snow.theta_s);
  g.snow.hardening = static_cast<float>(e.snow.hardening);
  g.water = Water<float, D>::from_bulk_modulus(static_cast<float>(e.water.bulk_modulus_Pa));
  g.water.gamma = static_cast<float>(e.water.gamma);
  g.water.tension = 0.0f;  // a splash falls apart instead of hanging together in strings
  g.sand = Sand<float, D>::from_young(static_cast<float>(e.sand.youngs_modulus_Pa),
                                      static_cast<float>(e.sand.poisson_ratio),
                                      static_cast<float>(e.sand.friction_angle_deg * M_PI / 180.0));
  return g;
}

template <int D>
float initial_scalar(const Group<D>& g) {
  switch (g.kind) {
    case MaterialKind::kJelly:
      return Jelly<float, D>::kInitialScalar;
    case MaterialKind::kSnow:
      return Snow<float, D>::kInitialScalar;
    case MaterialKind::kWater:
      return Water<float, D>::kInitialScalar;
    case MaterialKind::kSand:
      return Sand<float, D>::kInitialScalar;
  }
  return 0;
}

template <int D>
class SolverOf final : public Solver {
  using A = Attribute<D>;
  using K = Kernels<D>;

 public:
  SolverOf(IntrusivePtr<Device> device, const scene::SceneConfig& scene, const SolverOptions& options)
      : device_(std::move(device)),
        request_(start_request(*device_)),
        scene_(scene),
        program_(device_),
        tree_(device_, {.name = "mpm.grid"}) {
    set_geometry();
    make_tree();
    make_groups();
    add_particles(emit_particles(scene_),
                  [this](uint8_t emitter) { return scene_.emitters[emitter].velocity; });
    most_particles_ = n_ + options.most_emitted;
    set_colliders();
  }
  ~SolverOf() override { wait(device_->default_stream().barrier()); }

  void wait_ready() override;
  bool wait_advance(int most_steps) override;
  int frame() const override { return frame_; }
  uint64_t steps() const override { return steps_; }
  double time_s() const override { return time_s_; }
  double max_speed_m_s() const override { return std::bit_cast<float>(host_control_.max_speed_bits); }
  FrameStats wait_stats() override;
  ParticleSnapshot wait_snapshot() override;
  DensityBlocks wait_density() override;
  void wait_pack(PointValue value, std::vector<render::PackedPoint>& points) override;
  Node grid_leaf() const override { return *grid_leaf_; }
  render::VolumePlacement grid_placement() const override;
  Field<float> wait_grid_field(GridValue value) override;
  Field<float> wait_body_field(MaterialKind kind, float threshold, std::vector<uint8_t>& enclosed) override;
  GridNode wait_grid_node(const Vec3i& node) override;
  void set_parameters(const scene::SceneConfig& scene) override;
  uint64_t num_particles() const override { return n_; }
  uint64_t wait_emit(size_t emitter, const Vec3f& center, float radius_m, const Vec3f& velocity) override;
  void wait_push(const Stroke& stroke, const Vec3f& velocity) override;
  uint64_t wait_cut(const Stroke& stroke) override;
  MemoryReport wait_memory_report() override { return tree_.wait_memory_report(); }
  std::vector<std::pair<std::string, uint64_t>> buffer_bytes() const override;
  std::map<std::string, std::string> kernels_by_argument() override;
  std::string explain_launches() override;

 private:
  void set_geometry();
  void make_tree();
  ShownGrid& wait_shown_grid();
  void make_groups();
  void reserve_particles(uint64_t n);
  // While nothing is queued; velocity(emitter) in m/s.
  template <class F>
  void add_particles(const EmittedParticles& emitted, F&& velocity);
  std::vector<Vec3f> wait_without_taken(size_t emitter, const std::vector<Vec3f>& places);
  Capsule<D> local(const Stroke& stroke) const;
  std::vector<uint32_t> places_by_id() const;
  void set_colliders();
  void sort_particles();
  void count_segments();
  void choose_dt(double remaining_s);
  void run_batch(int steps);
  // The host has no queue: the functions' operations take no time but to put work on the stream, and
  // whoever waits for the device does so here. Another thread could only make them slower.
  static IntrusivePtr<executor::Request> start_request(Device& device) {
    return make_intrusive<executor::Host>()->start_request(share(&device.default_stream()));
  }
  std::vector<Value> wait_run(std::string_view function, std::span<const Value> arguments);
  // Both return what `make(kernel, loop, arguments...)` makes of each launch of @mpm.step and @mpm.sort,
  // in their order.
  template <class Make>
  auto step_launches(const Make& make);
  template <class Make>
  auto sort_launches(const Make& make);
  // Both return the arguments of the functions of these names. Binding starts compiling what is launched.
  std::array<Value, 7> batch_arguments(int steps);
  std::array<Value, 11> sort_arguments();
  template <class... Parameters, class... Arguments>
  Value bound(const Kernel<void(Parameters...)>& kernel, const Loop& loop, const Arguments&... arguments) {
    return value(program_.bind(kernel, loop, arguments...));
  }
  void check_finite() const;
  // Returns an address in device memory.
  float* attribute(int number) const {
    return arguments_.particles.base + number * arguments_.particles.stride;
  }
  // While nothing is queued: value(i) of an attribute for `n` particles, to those from `begin` on.
  template <class F>
  void upload_attribute(int number, uint64_t begin, uint64_t n, F&& value);
  // While nothing is queued: visit(rows, i) for every particle, in order, with attribute a of it at
  // rows[a][i]; only those that are asked for.
  template <class F>
  void for_each_particle(std::span<const int> attributes, F&& visit) const;
  Vec3d origin() const { return scene_.domain.min - Vec3d::Constant(kPad * scene_.dx_m()); }

  IntrusivePtr<Device> device_;
  IntrusivePtr<executor::Request> request_;
  scene::SceneConfig scene_;
  Program program_;
  Tree tree_;
  std::optional<Node> block_, grid_leaf_;
  Field<NodeValue> grid_, tiles_;
  Field<uint32_t> number_;
  std::optional<ShownGrid> shown_;  // from the first wait_shown_grid() on
  uint64_t n_ = 0, n_blocks_ = 0;
  uint64_t next_id_ = 0, most_particles_ = 0;
  std::vector<Group<D>> groups_;
  IntrusivePtr<Buffer> particles_, sorted_, keys_, order_, starts_, group_table_, control_, density_,
      origins_, packed_;
  StepControl<D> host_control_{};  // what control_ holds, but for what is written there before the next batch
  StepArguments<D> arguments_{};
  bool sorted_once_ = false;
  int frame_ = 0;
  uint64_t steps_ = 0;
  double time_s_ = 0;
  FrameStats stats_;
  bool is_frame_over_ = true;  // no step of the next one was made
};

template <int D>
void SolverOf<D>::set_geometry() {
  StepArguments<D>& a = arguments_;
  a.dx = static_cast<float>(scene_.dx_m());
  a.inv_dx = 1.0f / a.dx;
  const Vec3i cells = scene_.cells();
  for (int axis = 0; axis < D; ++axis) {
    a.cells[axis] = cells[axis];
    a.gravity[axis] = static_cast<float>(scene_.gravity[axis]);
    a.walls[2 * axis] = scene_.walls.sides[static_cast<size_t>(2 * axis)];
    a.walls[2 * axis + 1] = scene_.walls.sides[static_cast<size_t>(2 * axis + 1)];
  }
  a.wall_friction = static_cast<float>(scene_.walls.friction);
}

template <int D>
void SolverOf<D>::make_tree() {
  constexpr int b = kBlockSize<D>, fan = D == 3 ? 8 : 16;
  int top[3];
  for (int axis = 0; axis < D; ++axis) {
    const int blocks = (arguments_.cells[axis] + 2 * kPad + b - 1) / b + 1;
    top[axis] = (blocks + fan - 1) / fan;
  }
  if constexpr (D == 3) {
    block_ = tree_.root().pointer({top[0], top[1], top[2]}).pointer({fan, fan, fan});
    grid_leaf_ = block_->dense({b, b, b});
    tiles_ = block_->dense({kTileSize<D>, kTileSize<D>, kTileSize<D>}).template place<NodeValue>("tile");
    number_ = block_->dense({1, 1, 1}).template place<uint32_t>("number");
  } else {
    block_ = tree_.root().pointer({top[0], top[1]}).pointer({fan, fan});
    grid_leaf_ = block_->dense({b, b});
    tiles_ = block_->dense({kTileSize<D>, kTileSize<D>}).template place<NodeValue>("tile");
    number_ = block_->dense({1, 1}).template place<uint32_t>("number");
  }
  grid_ = grid_leaf_->template place<NodeValue>("grid");
  tree_.freeze();
}

template <int D>
void SolverOf<D>::make_groups() {
  for (const scene::Emitter& e : scene_.emitters) groups_.push_back(make_group<D>(scene_, e));
  arguments_.n_groups = static_cast<uint32_t>(groups_.size());
  group_table_ = wait_device_copy(*device_, groups_);
  arguments_.groups = group_table_->as<Group<D>>();
  control_ = device_->reserve(sizeof(StepControl<D>), sizeof(StepControl<D>));
  arguments_.control = control_->as<StepControl<D>>();
}

// Room for so many; those that are there stay.
template <int D>
void SolverOf<D>::reserve_particles(uint64_t n) {
  // Rows start on cache lines, and an odd number of lines apart: a power-of-two distance would make all
  // attributes of a particle compete for the same cache set (measured: 1.6 times slower updates).
  const int64_t stride = static_cast<int64_t>(((n + 15) / 16) | 1) * 16;
  if (stride <= arguments_.particles.stride) return;
  const size_t word_bytes = static_cast<size_t>(stride) * 4, bytes = word_bytes * A::kCount;
  const IntrusivePtr<Buffer> particles = device_->reserve(bytes, bytes),
                             sorted = device_->reserve(bytes, bytes),
                             keys = device_->reserve(word_bytes, word_bytes),
                             order = device_->reserve(word_bytes, word_bytes);
  for (int a = 0; n_ > 0 && a < A::kCount; ++a)
    device_->wait_copy(particles->as<float>() + a * stride, attribute(a), n_ * sizeof(float));
  particles_ = particles, sorted_ = sorted, keys_ = keys, order_ = order;
  arguments_.particles = {particles_->as<float>(), stride};
}

template <int D>
template <class F>
void SolverOf<D>::add_particles(const EmittedParticles& emitted, F&& velocity) {
  const uint64_t n = emitted.position.size(), at = n_;
  reserve_particles(at + n);
  const Vec3f shift = origin().template cast<float>();
  const std::vector<uint8_t>& emitter = emitted.emitter;
  // Particles that were cut have left their values there.
  if (next_id_ > 0) {
    for (int a = 0; a < A::kCount; ++a) upload_attribute(a, at, n, [](uint64_t) { return 0.0f; });
  }
  for (int k = 0; k < D; ++k) {
    upload_attribute(A::kPosition + k, at, n, [&](uint64_t i) { return emitted.position[i][k] - shift[k]; });
    upload_attribute(A::kVelocity + k, at, n,
                     [&](uint64_t i) { return static_cast<float>(velocity(emitter[i])[k]); });
    upload_attribute(A::kDeformation + k * D + k, at, n, [](uint64_t) { return 1.0f; });
  }
  upload_attribute(A::kScalar, at, n, [&](uint64_t i) { return initial_scalar(groups_[emitter[i]]); });
  upload_attribute(A::kGroup, at, n, [&](uint64_t i) { return static_cast<float>(emitter[i]); });
  upload_attribute(A::kId, at, n,
                   [&](uint64_t i) { return std::bit_cast<float>(static_cast<uint32_t>(next_id_ + i)); });
  n_ += n, next_id_ += n;
  // The fastest particle and wave limit the next step. Bits of floats that are not negative order as
  // integers do.
  StepControl<D>& c = host_control_;
  for (size_t e = 0; e < groups_.size(); ++e) {
    if (std::ranges::find(emitter, static_cast<uint8_t>(e)) == emitter.end()) continue;
    const float speed = std::sqrt(static_cast<float>(velocity(static_cast<uint8_t>(e)).squaredNorm()));
    const double sound =
        scene::sound_speed_m_s(scene_.materials[static_cast<size_t>(scene_.emitters[e].material_id)]);
    c.max_speed_bits = std::max(c.max_speed_bits, std::bit_cast<uint32_t>(speed));
    c.max_modulus_bits =
        std::max(c.max_modulus_bits, std::bit_cast<uint32_t>(static_cast<float>(sound * sound)));
  }
  c.drifted = 1;  // they are to be sorted
}

template <int D>
template <class F>
void SolverOf<D>::upload_attribute(int number, uint64_t begin, uint64_t count, F&& value) {
  std::vector<float> row(std::min(count, kRowParticles));
  for (uint64_t first = 0; first < count; first += kRowParticles) {
    const uint64_t n = std::min(count - first, kRowParticles);
    for (uint64_t i = 0; i < n; ++i) row[i] = value(first + i);
    device_->wait_copy(attribute(number) + begin + first, row.data(), n * sizeof(float));
  }
}

template <int D>
template <class F>
void SolverOf<D>::for_each_particle(std::span<const int> attributes, F&& visit) const {
  const uint64_t room = std::min(n_, kRowParticles);
  std::vector<float> values(attributes.size() * room);
  std::array<const float*, A::kCount> rows{};
  for (size_t a = 0; a < attributes.size(); ++a)
    rows[static_cast<size_t>(attributes[a])] = values.data() + a * room;
  for (uint64_t first = 0; first < n_; first += kRowParticles) {
    const uint64_t n = std::min(n_ - first, kRowParticles);
    for (size_t a = 0; a < attributes.size(); ++a)
      device_->wait_copy(values.data() + a * room, attribute(attributes[a]) + first, n * sizeof(float));
    for (uint64_t i = 0; i < n; ++i) visit(rows, i);
  }
}

template <int D>
void SolverOf<D>::set_colliders() {
  if (scene_.colliders.size() > kMaxColliders) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} colliders; at most {} are possible", scene_.colliders.size(), kMaxColliders),
                scene_.origin.table);
  }
  StepControl<D>& c = host_control_;
  c.n_colliders = static_cast<uint32_t>(scene_.colliders.size());
  for (size_t i = 0; i < scene_.colliders.size(); ++i) {
    const scene::Collider& from = scene_.colliders[i];
    ColliderState<D>& to = c.start[i];
    to.kind = from.shape == scene::ColliderShape::kSphere ? ColliderKind::kSphere : ColliderKind::kBox;
    to.boundary = from.boundary;
    to.friction = static_cast<float>(from.friction);
    AngularVelocity<float, D> omega{};
    if constexpr (D == 3)
      omega = small<3>(from.angular_velocity_rad_s);
    else
      omega.v[0] = static_cast<float>(from.angular_velocity_rad_s.z());
    const SmallVec<float, D> center = small<D>(from.center - origin()), velocity = small<D>(from.velocity);
    to.sphere = {center, static_cast<float>(from.radius), velocity, omega};
    to.box = {center, small<D>(from.half_size), rotation<D>(from.rotate_deg), velocity, omega};
    c.now[i] = to;
  }
}

template <int D>
std::vector<Value> SolverOf<D>::wait_run(std::string_view function, std::span<const Value> arguments) {
  std::vector<Value> results = executor::execute(solver_functions().function(function), arguments, *request_);
  for (const Value& result : results) {
    wait(*result);
    if (result->is_error()) throw for_users(result->error());
  }
  return results;
}

template <int D>
template <class Make>
auto SolverOf<D>::sort_launches(const Make& make) {
  const auto n = static_cast<int64_t>(n_);
  const Loop blocks = over(*grid_leaf_);
  const auto topology = grid_leaf_->topology();
  const ParticleArrays from = arguments_.particles, to{sorted_->as<float>(), from.stride};
  return std::array{make(K::home, range(n), topology, from, arguments_.inv_dx),
                    make(K::reach, blocks, topology), make(K::number, blocks, number_),
                    make(K::keys, range(n), number_, from, arguments_.inv_dx, arguments_.n_groups,
                         keys_->as<uint32_t>(), order_->as<uint32_t>()),
                    make(reorder_particles, range(n), from, to, order_->as<uint32_t>(), A::kCount)};
}

template <int D>
std::array<Value, 11> SolverOf<D>::sort_arguments() {
  const auto n = static_cast<int64_t>(n_);
  const auto [home, reach, number, keys, reorder] =
      sort_launches([this](const auto&... launch) { return bound(launch...); });
  return {value(Chain()), value(tree_.root()), value(*grid_leaf_), home,     reach,  number,
          keys,           value(keys_),        value(order_),      value(n), reorder};
}

template <int D>
void SolverOf<D>::sort_particles() {
  n_blocks_ = static_cast<uint64_t>(wait_run("mpm.sort", sort_arguments())[1]->template get<int64_t>());
  std::swap(particles_, sorted_);
  arguments_.particles.base = particles_->as<float>();
  count_segments();
  host_control_.drifted = 0;
  ++stats_.sorts;
  sorted_once_ = true;
}

template <int D>
void SolverOf<D>::count_segments() {
  const size_t bins = n_blocks_ * groups_.size();
  const size_t bytes = (bins + 1) * sizeof(uint32_t);
  if (!starts_ || starts_->size_bytes() < bytes) starts_ = device_->reserve(2 * bytes, 2 * bytes);
  arguments_.starts = starts_->as<uint32_t>();
  wait_run("mpm.segments", std::array{value(Chain()), value(keys_), value(static_cast<int64_t>(n_)),
                                      value(starts_), value(static_cast<int64_t>(bins))});
}

// The largest step that neither a particle nor a sound wave crosses more than `cfl` cells in, and the frame's
// rest in equal steps.
template <int D>
void SolverOf<D>::choose_dt(double remaining_s) {
  const double speed = std::bit_cast<float>(host_control_.max_speed_bits);
  const double sound = std::sqrt(std::bit_cast<float>(host_control_.max_modulus_bits));
  const double reach = scene_.time.cfl * scene_.dx_m();
  // The material's own speed may grow within a batch; gravity's part of it is known.
  const double falling = speed + scene_.gravity.norm() * kStepsPerBatch *
                                     std::min(scene_.time.max_dt_s, reach / std::max(sound, 1e-6));
  const double dt_speed = reach / std::max(falling, 1e-9), dt_sound = reach / std::max(sound, 1e-9);
  const double most = std::min({dt_speed, dt_sound, scene_.time.max_dt_s});
  // The steps before were rounded to float: without the tolerance, that would cost a step at the end of most
  // frames.
  const double steps = std::ceil(remaining_s / most * (1 - 1e-6));
  const double dt = remaining_s / std::max(steps, 1.0);
  if (!(steps < kMostSteps)) {
    throw Error(ErrorCode::kNumeric,
                fmt::format("frame {}: at t = {:.6g} s {}", frame_ + 1, time_s_,
                            why_too_many_steps({.speed_m_s = speed,
                                                .sound_m_s = sound,
                                                .dt_s = dt,
                                                .is_max_dt = most == scene_.time.max_dt_s,
                                                .is_sound = dt_sound <= dt_speed,
                                                .is_start = steps_ == 0},
                                               scene_.time)));
  }
  arguments_.dt = static_cast<float>(dt);
  // Above this a particle crosses more than `cfl` cells in a step: the batch stops and dt is chosen again.
  arguments_.max_speed = static_cast<float>(reach / dt * 1.0001);
  stats_.dt_s = dt;
  stats_.dt_from_sound = dt_sound <= dt_speed;
}

template <int D>
template <class Make>
auto SolverOf<D>::step_launches(const Make& make) {
  const Loop blocks = over(*grid_leaf_);
  return std::array{make(K::begin, range(1), arguments_), make(K::scatter, blocks, tiles_, arguments_),
                    make(K::grid, blocks, tiles_, grid_, arguments_),
                    make(K::gather, blocks, grid_, arguments_), make(K::finish, range(1), arguments_)};
}

template <int D>
std::array<Value, 7> SolverOf<D>::batch_arguments(int steps) {
  const auto [begin, scatter, grid, gather, finish] =
      step_launches([this](const auto&... launch) { return bound(launch...); });
  return {value(Chain()), value<int32_t>(steps), begin, scatter, grid, gather, finish};
}

template <int D>
std::string SolverOf<D>::explain_launches() {
  const auto explain = [this](const auto&... launch) { return program_.explain(launch...); };
  return fmt::format("@mpm.sort\n\n{}\n\n@mpm.step\n\n{}", fmt::join(sort_launches(explain), "\n"),
                     fmt::join(step_launches(explain), "\n"));
}

template <int D>
std::map<std::string, std::string> SolverOf<D>::kernels_by_argument() {
  const auto name = [](const auto& kernel, const auto&...) {
    return fmt::format("{}.{}", kernel.file->name, kernel.name);
  };
  const auto [home, reach, number, keys, reorder] = sort_launches(name);
  const auto [begin, scatter, grid, gather, finish] = step_launches(name);
  return {{"home", home},       {"reach", reach},  {"number", number},   {"find_keys", keys},
          {"reorder", reorder}, {"begin", begin},  {"scatter", scatter}, {"grid", grid},
          {"gather", gather},   {"finish", finish}};
}

template <int D>
void SolverOf<D>::run_batch(int steps) {
  StepControl<D>& c = host_control_;
  c.stop = 0, c.steps_done = 0, c.too_fast = 0;
  device_->wait_copy(control_->data(), &c, sizeof c);
  wait_run("mpm.batch", batch_arguments(steps));
  device_->wait_copy(&c, control_->data(), sizeof c);
  stats_.steps += c.steps_done, steps_ += c.steps_done;
  time_s_ = c.time_s;
}

template <int D>
void SolverOf<D>::check_finite() const {
  if (host_control_.not_finite == 0) return;
  throw Error(ErrorCode::kNumeric,
              fmt::format("frame {}: velocities stopped being finite at t = {:.6g} s (dt {:.3g} s); lower "
                          "time.cfl (now {:.3g}) or time.max_dt_s, or soften the material",
                          frame_ + 1, host_control_.time_s, stats_.dt_s, scene_.time.cfl));
}

template <int D>
bool SolverOf<D>::wait_advance(int most_steps) {
  const TraceScope trace("solver.batch");
  if (is_frame_over_) stats_.steps = stats_.sorts = 0;
  is_frame_over_ = false;
  const double end_s = (frame_ + 1) * scene_.time.frame_dt_s, tolerance_s = 1e-9 * scene_.time.frame_dt_s;
  if (!sorted_once_ || host_control_.drifted != 0) sort_particles();
  choose_dt(end_s - time_s_);
  const double steps = std::round((end_s - time_s_) / stats_.dt_s);
  run_batch(static_cast<int>(std::min<double>(steps, std::min(most_steps, kStepsPerBatch))));
  check_finite();
  // The float dt of the steps adds up to the frame's end but for rounding; the next frame starts from the
  // exact time.
  if (std::abs(end_s - time_s_) < 0.5 * stats_.dt_s) host_control_.time_s = time_s_ = end_s;
  if (end_s - time_s_ > tolerance_s) return false;
  ++frame_;
  is_frame_over_ = true;
  log_debug("frame {}: {} steps, dt {:.3g} s ({} bound), {} sorts", frame_, stats_.steps, stats_.dt_s,
            stats_.dt_from_sound ? "sound speed" : "CFL", stats_.sorts);
  return true;
}

template <int D>
void SolverOf<D>::wait_ready() {
  const TraceScope trace("solver.compile");
  sort_arguments();
  batch_arguments(1);
  program_.compile(K::density, over(*grid_leaf_), grid_, 1.0f, static_cast<float*>(nullptr),
                   static_cast<int32_t*>(nullptr));
  tree_.compile_runtime();
  device_->kernels().wait_compiled();
}

template <int D>
FrameStats SolverOf<D>::wait_stats() {
  FrameStats s = stats_;
  s.time_s = time_s_, s.particles = n_, s.active_blocks = n_blocks_;
  s.max_speed_m_s = std::bit_cast<float>(host_control_.max_speed_bits);
  const Vec3d shift = origin();
  std::vector<int> needed{A::kGroup};
  for (int k = 0; k < D; ++k) needed.insert(needed.end(), {A::kPosition + k, A::kVelocity + k});
  for_each_particle(needed, [&](const auto& rows, uint64_t i) {
    const double m = groups_[static_cast<size_t>(rows[A::kGroup][i])].mass;
    s.mass_kg += m;
    double speed2 = 0;
    for (int k = 0; k < D; ++k) {
      const double v = rows[A::kVelocity + k][i];
      s.momentum[k] += m * v;
      speed2 += v * v;
      s.potential_J -= m * scene_.gravity[k] * (rows[A::kPosition + k][i] + shift[k] - scene_.domain.min[k]);
    }
    s.kinetic_J += 0.5 * m * speed2;
  });
  return s;
}

// The place of each id among those that are there: where particles were cut ids are missing.
template <int D>
std::vector<uint32_t> SolverOf<D>::places_by_id() const {
  std::vector<uint32_t> places(next_id_, next_id_ == n_);
  if (next_id_ != n_) {
    for_each_particle(std::array{int{A::kId}}, [&](const auto& rows, uint64_t i) {
      places[std::bit_cast<uint32_t>(rows[A::kId][i])] = 1;
    });
  }
  std::exclusive_scan(places.begin(), places.end(), places.begin(), 0u);
  return places;
}

template <int D>
ParticleSnapshot SolverOf<D>::wait_snapshot() {
  check(device_->default_stream().barrier());
  ParticleSnapshot s;
  s.position.resize(n_), s.velocity.resize(n_), s.volume_ratio.resize(n_), s.material_scalar.resize(n_),
      s.material.resize(n_), s.emitter.resize(n_);
  s.affine.resize(n_ * D * D), s.deformation.resize(n_ * D * D), s.mass.resize(n_);
  const Vec3f shift = origin().template cast<float>();
  const std::vector<uint32_t> place_of = places_by_id();
  std::array<int, A::kCount> all;
  std::iota(all.begin(), all.end(), 0);
  for_each_particle(all, [&](const auto& rows, uint64_t i) {
    const size_t id = place_of[std::bit_cast<uint32_t>(rows[A::kId][i])];
    s.position[id] = s.velocity[id] = Vec3f::Zero();
    SmallMat<float, D> f{};
    for (int k = 0; k < D; ++k) {
      s.position[id][k] = rows[A::kPosition + k][i] + shift[k];
      s.velocity[id][k] = rows[A::kVelocity + k][i];
    }
    for (int k = 0; k < D * D; ++k) {
      f.m[k] = s.deformation[id * D * D + static_cast<size_t>(k)] = rows[A::kDeformation + k][i];
      s.affine[id * D * D + static_cast<size_t>(k)] = rows[A::kAffine + k][i];
    }
    const auto e = static_cast<size_t>(rows[A::kGroup][i]);
    s.emitter[id] = static_cast<uint8_t>(e);
    s.mass[id] = groups_[e].mass;
    s.material[id] = static_cast<uint8_t>(scene_.emitters[e].material_id);
    s.material_scalar[id] = rows[A::kScalar][i];
    s.volume_ratio[id] = groups_[e].kind == MaterialKind::kWater ? s.material_scalar[id] : determinant(f);
  });
  return s;
}

template <int D>
DensityBlocks SolverOf<D>::wait_density() {
  DensityBlocks d;
  d.block_size = kBlockSize<D>;
  d.dx = arguments_.dx;
  d.origin = origin().template cast<float>();
  constexpr size_t nodes = D == 3 ? 64 : 64;
  if (n_blocks_ == 0) return d;
  d.values.resize(n_blocks_ * nodes);
  d.origins.resize(n_blocks_ * 3);
  const auto per_cell = static_cast<float>(1.0 / std::pow(scene_.dx_m(), D));
  const size_t value_bytes = d.values.size() * sizeof(float),
               origin_bytes = d.origins.size() * sizeof(int32_t);
  if (!density_ || density_->size_bytes() < value_bytes) {
    density_ = device_->reserve(2 * value_bytes, 2 * value_bytes);
    origins_ = device_->reserve(2 * origin_bytes, 2 * origin_bytes);
  }
  check(program_.launch(K::density, over(*grid_leaf_), grid_, per_cell, density_->as<float>(),
                        origins_->as<int32_t>()));
  device_->wait_copy(d.values.data(), density_->data(), value_bytes);
  device_->wait_copy(d.origins.data(), origins_->data(), origin_bytes);
  return d;
}

template <int D>
void SolverOf<D>::wait_pack(PointValue value, std::vector<render::PackedPoint>& points) {
  points.resize(n_);
  if (n_ == 0) return;
  const size_t bytes = n_ * sizeof(render::PackedPoint);
  if (!packed_ || packed_->size_bytes() < bytes) packed_ = device_->reserve(bytes, bytes);
  SmallVec<float, 3> shift{};
  for (int a = 0; a < 3; ++a) shift.v[a] = static_cast<float>(origin()[a]);
  check(program_.launch(K::pack, range(static_cast<int64_t>(n_)), arguments_.particles, arguments_.groups,
                        value, shift, packed_->as<float>()));
  device_->wait_copy(points.data(), packed_->data(), bytes);
}

template <int D>
std::vector<std::pair<std::string, uint64_t>> SolverOf<D>::buffer_bytes() const {
  const auto bytes = [](std::initializer_list<const Buffer*> buffers) {
    uint64_t sum = 0;
    for (const Buffer* b : buffers) sum += b != nullptr ? b->size_bytes() : 0;
    return sum;
  };
  return {{"particles", bytes({particles_.get()})},
          {"particles being sorted", bytes({sorted_.get(), keys_.get(), order_.get(), starts_.get()})},
          {"packed for output", bytes({packed_.get(), density_.get(), origins_.get()})}};
}

template <int D>
render::VolumePlacement SolverOf<D>::grid_placement() const {
  Vec3d low = origin() - Vec3d::Constant(0.5 * scene_.dx_m());
  if (D == 2) low.z() = 0;  // where particles are
  return {low.template cast<float>(), arguments_.dx};
}

template <int D>
ShownGrid& SolverOf<D>::wait_shown_grid() {
  if (D != 3) throw Error(ErrorCode::kInvalidArgument, "the grid is shown as a volume in 3-D only");
  check(device_->default_stream().barrier());
  if (!shown_) shown_.emplace(device_, *grid_leaf_);
  return *shown_;
}

template <int D>
Field<float> SolverOf<D>::wait_grid_field(GridValue value) {
  return wait_shown_grid().wait_show(grid_, value, static_cast<float>(1.0 / std::pow(scene_.dx_m(), D)));
}

template <int D>
Field<float> SolverOf<D>::wait_body_field(MaterialKind kind, float threshold,
                                          std::vector<uint8_t>& enclosed) {
  ShownGrid& shown = wait_shown_grid();
  if constexpr (D == 3) {
    const StepArguments<3>& a = arguments_;
    const BodyShare body = {
        kind, a.inv_dx, a.inv_dx * a.inv_dx * a.inv_dx, {a.cells[0], a.cells[1], a.cells[2]}};
    return shown.wait_show_body(a.particles, a.groups, n_, body, threshold, enclosed);
  } else {
    return {};
  }
}

template <int D>
GridNode SolverOf<D>::wait_grid_node(const Vec3i& node) {
  const detail::HostCoord at{node[0], node[1], node[2]};
  const NodeValue value = wait_read(grid_, at);
  return {grid_leaf_->wait_is_active(at), value.v[3], {value.v[0], value.v[1], value.v[2]}};
}

template <int D>
void SolverOf<D>::set_parameters(const scene::SceneConfig& scene) {
  scene_.gravity = scene.gravity;
  scene_.walls = scene.walls;
  scene_.time.cfl = scene.time.cfl;
  scene_.time.max_dt_s = scene.time.max_dt_s;
  set_geometry();
}

template <int D>
Capsule<D> SolverOf<D>::local(const Stroke& stroke) const {
  return {small<D>(stroke.from.template cast<double>() - origin()),
          small<D>((stroke.to - stroke.from).template cast<double>()), stroke.radius_m};
}

// The places that are left are those whose sub-cell has no particle.
template <int D>
std::vector<Vec3f> SolverOf<D>::wait_without_taken(size_t emitter, const std::vector<Vec3f>& places) {
  Aabb3f bounds;
  for (const Vec3f& p : places) bounds.extend(p);
  // The lattice is that of the samples, whose cells start at whole multiples of dx in the world.
  Subcells<D> subcells;
  const double per_m = subcells_per_axis(scene_, emitter) / scene_.dx_m();
  subcells.per_m = static_cast<float>(per_m);
  size_t count = 1;
  for (int k = 0; k < D; ++k) {
    const double first = std::floor(bounds.min[k] * per_m);
    subcells.first.v[k] = static_cast<float>(first - origin()[k] * per_m);
    subcells.extent[k] = static_cast<int32_t>(std::floor(bounds.max[k] * per_m) - first) + 1;
    count *= static_cast<size_t>(subcells.extent[k]);
  }
  std::vector<uint32_t> is_taken(count);
  const IntrusivePtr<Buffer> marks = device_->reserve(count * 4, count * 4);
  check(program_.launch(K::taken, range(static_cast<int64_t>(n_)), arguments_.particles, subcells,
                        marks->as<uint32_t>()));
  device_->wait_copy(is_taken.data(), marks->data(), count * 4);
  std::vector<Vec3f> free;
  std::ranges::copy_if(places, std::back_inserter(free), [&](const Vec3f& p) {
    const int64_t number = subcell_of(subcells, small<D>(p.cast<double>() - origin()));
    return number < 0 || is_taken[static_cast<size_t>(number)] == 0;
  });
  return free;
}

template <int D>
uint64_t SolverOf<D>::wait_emit(size_t emitter, const Vec3f& center, float radius_m, const Vec3f& velocity) {
  check_stroke(scene_, "emit", {center, center, radius_m});
  check_velocity("emit", velocity);
  const Vec3f at(center.x(), center.y(), D == 3 ? center.z() : 0.0f);
  // Ids are 32 bits.
  const uint64_t most =
      std::min(most_particles_ - std::min(n_, most_particles_), (uint64_t{1} << 32) - next_id_);
  std::vector<Vec3f> places = sample_ball(scene_, emitter, at, radius_m, steps_, most);
  check_not_empty(scene_, radius_m, places.size());
  places = wait_without_taken(emitter, places);
  if (places.size() > most)
    throw Error(ErrorCode::kUsage,
                fmt::format("emit: {} particles; there is room for {} more", places.size(), most));
  const uint64_t n = places.size();
  if (n == 0) return 0;
  check(device_->default_stream().barrier());
  // There is room for more, so that a hand that goes on does not have all of them moved each time.
  if (static_cast<int64_t>(n_ + n) > arguments_.particles.stride)
    reserve_particles(std::min(most_particles_, (n_ + n) * 3 / 2));
  add_particles({std::move(places), std::vector<uint8_t>(n, static_cast<uint8_t>(emitter))},
                [&](uint8_t) { return velocity; });
  return n;
}

template <int D>
void SolverOf<D>::wait_push(const Stroke& stroke, const Vec3f& velocity) {
  check_stroke(scene_, "push", stroke);
  check_velocity("push", velocity);
  StepControl<D>& c = host_control_;
  device_->wait_copy(control_->data(), &c, sizeof c);
  check(program_.launch(K::push, range(static_cast<int64_t>(n_)), arguments_.particles, local(stroke),
                        small<D>(velocity.cast<double>()), &arguments_.control->max_speed_bits));
  device_->wait_copy(&c, control_->data(), sizeof c);
}

template <int D>
uint64_t SolverOf<D>::wait_cut(const Stroke& stroke) {
  check_stroke(scene_, "cut", stroke);
  if (n_ == 0) return 0;
  const uint64_t before = n_;
  const auto flags = keys_->as<uint32_t>(), kept = order_->as<uint32_t>();
  check(
      program_.launch(K::kept, range(static_cast<int64_t>(n_)), arguments_.particles, local(stroke), flags));
  uint64_t left = 0;
  Stream& stream = device_->default_stream();
  check(stream.enqueue(
      "mpm.select", [&, n = n_](InStream& s) { left = primitives::wait_select_if_flag(s, flags, kept, n); }));
  if (left == before) return 0;
  const ParticleArrays from = arguments_.particles, to{sorted_->as<float>(), from.stride};
  check(
      program_.launch(reorder_particles, range(static_cast<int64_t>(left)), from, to, kept, int{A::kCount}));
  std::swap(particles_, sorted_);
  arguments_.particles.base = particles_->as<float>();
  n_ = left;
  host_control_.drifted = 1;  // where blocks' particles begin is to be found again
  return before - left;
}

}  // namespace

void Solver::wait_advance_frame() {
  const TraceScope trace("solver.frame");
  while (!wait_advance(kStepsPerBatch)) {
  }
}

std::unique_ptr<Solver> Solver::create(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                       const SolverOptions& options) {
  if (scene.dim == 2) return std::make_unique<SolverOf<2>>(std::move(device), scene, options);
  return std::make_unique<SolverOf<3>>(std::move(device), scene, options);
}

}  // namespace coppice::mpm
