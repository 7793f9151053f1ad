// Calls of the first rank, as messages (see rank_solver.h).
#include "apps/mpm/rank_solver.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/mpm/agreement.h"
#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "sparse/ranks/agreed_error.h"

namespace coppice::mpm {
namespace {

enum class Call : uint32_t {
  kEnd,
  kReady,
  kAdvance,
  kStats,
  kSnapshot,
  kDensity,
  kTogether,
  kPack,
  kGridNode,
  kParameters,
  kEmit,
  kPush,
  kCut,
  kCheckpoint,
  kRestore,
};

// A call, with whatever arguments any of them has.
struct Message {
  Call call = Call::kEnd;
  int32_t number[3] = {};
  float vector[2][3] = {};  // of a hand
  float radius = 0;
  float velocity[3] = {};
  uint64_t emitter = 0;
  double gravity[3] = {};
  BoundaryKind sides[6] = {};
  double wall_friction = 0;
  double cfl = 0, max_dt_s = 0;
};
static_assert(std::is_trivially_copyable_v<Message>);

void put(const Vec3f& from, float (&to)[3]) {
  for (int k = 0; k < 3; ++k) to[k] = from[k];
}
Vec3f vector(const float (&from)[3]) { return {from[0], from[1], from[2]}; }

Message with_number(Call call, int number) {
  Message m{.call = call};
  m.number[0] = number;
  return m;
}
Message of_stroke(Call call, const Stroke& stroke, const Vec3f& velocity) {
  Message m{.call = call};
  put(stroke.from, m.vector[0]), put(stroke.to, m.vector[1]), put(velocity, m.velocity);
  m.radius = stroke.radius_m;
  return m;
}
Stroke stroke_of(const Message& m) { return {vector(m.vector[0]), vector(m.vector[1]), m.radius}; }

int bits_of(const SnapshotParts& p) {
  return (p.affine ? 1 : 0) | (p.deformation ? 2 : 0) | (p.stress ? 4 : 0);
}
SnapshotParts snapshot_parts(int bits) { return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}; }

// Returns whether all ranks have met an error, or been told of it: what is wrong with a call or with the
// numbers is so everywhere.
bool is_of_all(const Error& error) {
  const ErrorCode code = error.code();
  return dynamic_cast<const AgreedError*>(&error) != nullptr || code == ErrorCode::kNumeric ||
         code == ErrorCode::kUsage || code == ErrorCode::kInvalidArgument;
}

// The first rank's bytes come to all.
RankLink::Bytes wait_share_bytes(const Cluster& cluster, RankLink::Bytes own) {
  std::vector<RankLink::Bytes> parts(static_cast<size_t>(cluster.n_ranks()));
  if (cluster.rank() == 0) parts.assign(parts.size(), own);
  return std::move(cluster.wait_exchange(std::move(parts)).front());
}
// The same in pieces: the first rank has one of them for each rank at a time.
RankLink::Bytes wait_share_pieces(const Cluster& cluster, const RankLink::Bytes& own) {
  constexpr size_t kPiece = size_t{4} << 20;
  RankLink::Bytes all;
  for (size_t at = 0;; at += kPiece) {
    const size_t n = std::min(kPiece, own.size() - std::min(at, own.size()));
    const auto begin = own.begin() + static_cast<std::ptrdiff_t>(std::min(at, own.size()));
    const RankLink::Bytes piece = wait_share_bytes(cluster, {begin, begin + static_cast<std::ptrdiff_t>(n)});
    if (piece.empty()) return all;
    if (cluster.rank() != 0) all.insert(all.end(), piece.begin(), piece.end());
  }
}
Message wait_share(const Cluster& cluster, const Message& own) {
  const auto bytes = std::as_bytes(std::span(&own, 1));
  const RankLink::Bytes come = wait_share_bytes(cluster, {bytes.begin(), bytes.end()});
  if (come.size() != sizeof(Message))
    throw Error(ErrorCode::kInternal, "ranks are out of step: the first one's call has not come whole");
  Message m;
  std::memcpy(static_cast<void*>(&m), come.data(), sizeof m);
  return m;
}

// Makes this rank's part. Errors: AgreedError.
std::unique_ptr<Solver> wait_make(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                  const SolverOptions& options) {
  std::unique_ptr<Solver> solver;
  wait_agreed(*options.cluster, [&] { solver = make_own_solver(std::move(device), scene, options); });
  return solver;
}

// The other ranks give a call's arguments, which they were sent, to their own solvers.
void follow_call(Solver& solver, scene::SceneConfig& scene, const SolverOptions& options, const Message& m) {
  const Cluster& cluster = *options.cluster;
  switch (m.call) {
    case Call::kEnd:
      break;
    case Call::kReady:
      solver.wait_ready();
      break;
    case Call::kAdvance:
      solver.wait_advance(m.number[0]);
      break;
    case Call::kStats:
      solver.wait_stats();
      break;
    case Call::kSnapshot:
      solver.wait_snapshot_with(snapshot_parts(m.number[0]));
      break;
    case Call::kDensity:
      solver.wait_density_with({.velocity = m.number[0] != 0});
      break;
    case Call::kTogether: {
      COPPICE_CHECK(options.act_together, "the first rank acts together with ranks that have nothing to do");
      const RankLink::Bytes message = wait_share_bytes(cluster, {});
      solver.wait_together(message, [&](SolverPart& own) { options.act_together(own, message); });
      break;
    }
    case Call::kPack: {
      std::vector<render::PackedPoint> none;
      solver.wait_pack(static_cast<PointValue>(m.number[0]), none);
      break;
    }
    case Call::kGridNode:
      solver.wait_grid_node({m.number[0], m.number[1], m.number[2]});
      break;
    case Call::kParameters:
      for (int k = 0; k < 3; ++k) scene.gravity[k] = m.gravity[k];
      std::ranges::copy(m.sides, scene.walls.sides.begin());
      scene.walls.friction = m.wall_friction, scene.time.cfl = m.cfl, scene.time.max_dt_s = m.max_dt_s;
      solver.set_parameters(scene);
      break;
    case Call::kEmit:
      solver.wait_emit(m.emitter, vector(m.vector[0]), m.radius, vector(m.velocity));
      break;
    case Call::kPush:
      solver.wait_push(stroke_of(m), vector(m.velocity));
      break;
    case Call::kCut:
      solver.wait_cut(stroke_of(m));
      break;
    case Call::kCheckpoint:
      solver.wait_checkpoint();
      break;
    case Call::kRestore:
      solver.wait_restore(decode(wait_share_pieces(cluster, {})));
      break;
  }
}

class RankSolver final : public Solver {
 public:
  RankSolver(IntrusivePtr<Device> device, const scene::SceneConfig& scene, const SolverOptions& options)
      : cluster_(*options.cluster), own_(wait_make(std::move(device), scene, options)) {}
  ~RankSolver() override {
    // Ranks that are within a call take the next message for a part of that one.
    if (!is_in_step_) return;
    try {
      wait_share(cluster_, {.call = Call::kEnd});
    } catch (const std::exception& error) {
      log_debug("the other ranks were not told of the end: {}", error.what());
    }
  }

  void wait_ready() override {
    call({.call = Call::kReady}, [&] { own_->wait_ready(); });
  }
  bool wait_advance(int most_steps) override {
    return call(with_number(Call::kAdvance, most_steps), [&] { return own_->wait_advance(most_steps); });
  }
  int frame() const override { return own_->frame(); }
  uint64_t steps() const override { return own_->steps(); }
  double time_s() const override { return own_->time_s(); }
  double max_speed_m_s() const override { return own_->max_speed_m_s(); }
  FrameStats wait_stats() override {
    return call({.call = Call::kStats}, [&] { return own_->wait_stats(); });
  }
  ParticleSnapshot wait_snapshot_with(const SnapshotParts& parts) override {
    return call(with_number(Call::kSnapshot, bits_of(parts)),
                [&] { return own_->wait_snapshot_with(parts); });
  }
  DensityBlocks wait_density_with(const GridParts& parts) override {
    return call(with_number(Call::kDensity, parts.velocity ? 1 : 0),
                [&] { return own_->wait_density_with(parts); });
  }
  void wait_together(std::span<const std::byte> message,
                     const std::function<void(SolverPart&)>& act) override {
    call({.call = Call::kTogether}, [&] {
      wait_share_bytes(cluster_, {message.begin(), message.end()});
      own_->wait_together(message, act);
    });
  }
  void wait_pack(PointValue value, std::vector<render::PackedPoint>& points) override {
    call(with_number(Call::kPack, static_cast<int>(value)), [&] { own_->wait_pack(value, points); });
  }
  Node grid_leaf() const override { return own_->grid_leaf(); }
  render::VolumePlacement grid_placement() const override { return own_->grid_placement(); }
  Field<float> wait_grid_field(GridValue value) override { return own_->wait_grid_field(value); }
  Field<float> wait_body_field(MaterialKind kind, float threshold, std::vector<uint8_t>& enclosed) override {
    return own_->wait_body_field(kind, threshold, enclosed);
  }
  GridNode wait_grid_node(const Vec3i& node) override {
    Message m{.call = Call::kGridNode};
    for (int k = 0; k < 3; ++k) m.number[k] = node[k];
    return call(m, [&] { return own_->wait_grid_node(node); });
  }
  void set_parameters(const scene::SceneConfig& scene) override {
    Message m{.call = Call::kParameters};
    for (int k = 0; k < 3; ++k) m.gravity[k] = scene.gravity[k];
    std::ranges::copy(scene.walls.sides, m.sides);
    m.wall_friction = scene.walls.friction, m.cfl = scene.time.cfl, m.max_dt_s = scene.time.max_dt_s;
    call(m, [&] { own_->set_parameters(scene); });
  }
  uint64_t num_particles() const override { return own_->num_particles(); }
  uint64_t wait_emit(size_t emitter, const Vec3f& center, float radius_m, const Vec3f& velocity) override {
    Message m = of_stroke(Call::kEmit, {center, center, radius_m}, velocity);
    m.emitter = emitter;
    return call(m, [&] { return own_->wait_emit(emitter, center, radius_m, velocity); });
  }
  void wait_push(const Stroke& stroke, const Vec3f& velocity) override {
    call(of_stroke(Call::kPush, stroke, velocity), [&] { own_->wait_push(stroke, velocity); });
  }
  uint64_t wait_cut(const Stroke& stroke) override {
    return call(of_stroke(Call::kCut, stroke, Vec3f::Zero()), [&] { return own_->wait_cut(stroke); });
  }
  Checkpoint wait_checkpoint() override {
    return call({.call = Call::kCheckpoint}, [&] { return own_->wait_checkpoint(); });
  }
  void wait_restore(const Checkpoint& checkpoint) override {
    call({.call = Call::kRestore}, [&] {
      RankLink::Bytes bytes;
      encode(checkpoint, [&](auto piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
      wait_share_pieces(cluster_, bytes);
      own_->wait_restore(checkpoint);
    });
  }
  MemoryReport wait_memory_report() override { return own_->wait_memory_report(); }
  std::vector<std::pair<std::string, uint64_t>> buffer_bytes() const override { return own_->buffer_bytes(); }
  std::vector<Function> functions() override { return own_->functions(); }
  const Function& step() const override { return own_->step(); }
  void set_step(const Function& step) override { own_->set_step(step); }
  const Field<NodeValue>& grid_nodes() const override { return own_->grid_nodes(); }
  const Slot<float>& step_length() const override { return own_->step_length(); }

 private:
  // Lets the others do the same. Where this rank fails alone, it has lost step with them.
  template <class F>
  std::invoke_result_t<F> call(const Message& m, F act) {
    struct InCall {
      bool& is_in_step;
      const int n_exceptions = std::uncaught_exceptions();
      ~InCall() { is_in_step = is_in_step || std::uncaught_exceptions() == n_exceptions; }
    };
    is_in_step_ = false;
    const InCall in_call{is_in_step_};
    wait_share(cluster_, m);
    try {
      return act();
    } catch (const Error& error) {
      is_in_step_ = is_of_all(error);
      throw;
    }
  }

  const Cluster cluster_;
  const std::unique_ptr<Solver> own_;
  bool is_in_step_ = true;
};

}  // namespace

std::unique_ptr<Solver> lead_ranks(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                   const SolverOptions& options) {
  if (options.cluster->rank() != 0)
    throw Error(ErrorCode::kInvalidArgument, "the first rank has the solver, and the others follow() it");
  return std::make_unique<RankSolver>(std::move(device), scene, options);
}

void follow(IntrusivePtr<Device> device, const scene::SceneConfig& given, const SolverOptions& options) {
  const Cluster& cluster = *options.cluster;
  scene::SceneConfig scene = given;
  std::unique_ptr<Solver> solver;
  try {
    solver = wait_make(std::move(device), scene, options);
  } catch (const AgreedError&) {
    return;  // the first rank tells of it
  }
  while (true) {
    const Message m = wait_share(cluster, {});
    if (m.call == Call::kEnd) return;
    try {
      follow_call(*solver, scene, options, m);
    } catch (const Error& error) {
      if (!is_of_all(error)) throw;  // or else the first rank has met it, too, and decides
    }
  }
}

}  // namespace coppice::mpm
