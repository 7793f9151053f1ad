// A hand acts on a solver's particles, and sums on the host say how: mass, momentum, who is there and who
// is not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/mpm/hand.h"
#include "apps/mpm/solver.h"
#include "core/error.h"
#include "tests/apps/run_outputs.h"
#include "tests/sparse/test_devices.h"

namespace coppice::mpm {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

// A body in the middle of a domain that begins nowhere near a multiple of dx; gravity is off.
std::string scene_text(int dim) {
  return dim == 3
             ? "dim = 3\ngravity = [0.0, 0.0, 0.0]\n[domain]\nmin = [0.013, -0.2, 0.1]\nmax = [1.013, 0.8, "
               "1.1]\n"
               "[grid]\nresolution = 16\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.3, 0.6]\nradius = "
               "0.13\n"
               "velocity = [0.5, 0.0, -0.25]\nmaterial = \"snow\"\n[[emitter]]\nshape = \"sphere\"\n"
               "center = [0.8, 0.6, 0.9]\nradius = 0.1\nmaterial = \"jelly\"\n"
             : "dim = 2\ngravity = [0.0, 0.0]\n[grid]\nresolution = 32\n[[emitter]]\nshape = \"box\"\n"
               "center = [0.5, 0.3]\nhalf_size = [0.2, 0.1]\nvelocity = [0.5, 0.0]\nmaterial = \"snow\"\n";
}

double distance(const Stroke& s, const Vec3f& p, int dim) {
  Vec3d along = (s.to - s.from).cast<double>(), to = p.cast<double>() - s.from.cast<double>();
  if (dim == 2) along.z() = to.z() = 0;
  const double length2 = along.squaredNorm();
  const double where = length2 > 0 ? std::clamp(to.dot(along) / length2, 0.0, 1.0) : 0;
  return (to - where * along).norm();
}

class Hands : public DeviceTest {
 protected:
  std::unique_ptr<Solver> make(int dim, const SolverOptions& options = {}) {
    return Solver::create(device, scene::parse_scene(scene_text(dim), "tiny.toml"), options);
  }
  static Vec3d momentum_of(const ParticleSnapshot& s) {
    Vec3d sum = Vec3d::Zero();
    for (size_t i = 0; i < s.mass.size(); ++i)
      sum += static_cast<double>(s.mass[i]) * s.velocity[i].cast<double>();
    return sum;
  }
  static double mass_of(const ParticleSnapshot& s) {
    double sum = 0;
    for (const float m : s.mass) sum += m;
    return sum;
  }
};

// The sum of m w(d) v over all particles, and nobody outside moves otherwise.
TEST_P(Hands, PushesAddTheMomentumOfTheirFalloff) {
  for (const int dim : {2, 3}) {
    SCOPED_TRACE(dim);
    const std::unique_ptr<Solver> solver = make(dim);
    if (dim == 3) solver->wait_advance(1);  // sorted
    const ParticleSnapshot before = solver->wait_snapshot();
    const Stroke stroke{Vec3f(0.42f, 0.28f, 0.58f), Vec3f(0.5f, 0.33f, 0.61f), 0.09f};
    const Vec3f velocity(3, -1, dim == 3 ? 2.0f : 0.0f);
    solver->wait_push(stroke, velocity);
    const ParticleSnapshot after = solver->wait_snapshot();
    ASSERT_EQ(after.position.size(), before.position.size());
    Vec3d added = Vec3d::Zero();
    size_t pushed = 0;
    float fastest = 0;
    for (size_t i = 0; i < before.position.size(); ++i) {
      EXPECT_EQ(after.position[i], before.position[i]);
      fastest = std::max(fastest, after.velocity[i].norm());
      const double q = distance(stroke, before.position[i], dim) / stroke.radius_m;
      const double share = q < 1 ? std::pow(1 - q * q, 2) : 0;
      added += static_cast<double>(before.mass[i]) * share * velocity.cast<double>();
      pushed += share > 0.01;
      EXPECT_LT((after.velocity[i] - before.velocity[i] - static_cast<float>(share) * velocity).norm(),
                1e-5f);
      if (q > 1.001) {
        EXPECT_EQ(after.velocity[i], before.velocity[i]);
      }
    }
    EXPECT_GT(pushed, 20u);
    EXPECT_LT(pushed, before.position.size());
    EXPECT_LT((momentum_of(after) - momentum_of(before) - added).norm(), 1e-5 * added.norm());
    EXPECT_DOUBLE_EQ(mass_of(after), mass_of(before));
    // The next step is chosen for what is faster now.
    EXPECT_NEAR(solver->max_speed_m_s(), fastest, 1e-5f);
    EXPECT_GT(fastest, 2.5f);
    solver->wait_advance(1);
    EXPECT_LT((momentum_of(solver->wait_snapshot()) - momentum_of(after)).norm(), 1e-3 * added.norm());
  }
}

TEST_P(Hands, CutsTakeOutWhatIsInTheStrokeAndKeepTheOrder) {
  for (const int dim : {2, 3}) {
    SCOPED_TRACE(dim);
    const std::unique_ptr<Solver> solver = make(dim);
    if (dim == 3) solver->wait_advance(1);
    const ParticleSnapshot before = solver->wait_snapshot();
    const Stroke stroke{Vec3f(0.3f, 0.2f, 0.6f), Vec3f(0.6f, 0.35f, 0.6f), 0.06f};
    std::vector<size_t> left;
    for (size_t i = 0; i < before.position.size(); ++i) {
      const double d = distance(stroke, before.position[i], dim);
      ASSERT_GT(std::abs(d - stroke.radius_m), 1e-7) << "move the stroke: rounding decides on a particle";
      if (d > stroke.radius_m) left.push_back(i);
    }
    ASSERT_GT(left.size(), 20u);
    const uint64_t gone = before.position.size() - left.size();
    ASSERT_GT(gone, 20u);
    EXPECT_EQ(solver->wait_cut(stroke), gone);
    EXPECT_EQ(solver->wait_cut(stroke), 0u);
    EXPECT_EQ(solver->num_particles(), left.size());
    const ParticleSnapshot after = solver->wait_snapshot();
    ASSERT_EQ(after.position.size(), left.size());
    double mass = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(after.position[i], before.position[left[i]]);
      EXPECT_EQ(after.velocity[i], before.velocity[left[i]]);
      EXPECT_EQ(after.emitter[i], before.emitter[left[i]]);
      EXPECT_EQ(after.volume_ratio[i], before.volume_ratio[left[i]]);
      mass += before.mass[left[i]];
    }
    EXPECT_DOUBLE_EQ(solver->wait_stats().mass_kg, mass);
    solver->wait_advance(2);
    EXPECT_EQ(solver->wait_snapshot().position.size(), left.size());
    std::vector<render::PackedPoint> points;
    solver->wait_pack(PointValue::kSpeed, points);
    EXPECT_EQ(points.size(), left.size());
    EXPECT_NEAR(solver->wait_stats().mass_kg, mass, 1e-9 * mass);
  }
}

TEST_P(Hands, CutEverythingAndGoOn) {
  for (const int dim : {2, 3}) {
    SCOPED_TRACE(dim);
    const std::unique_ptr<Solver> solver = make(dim);
    solver->wait_advance(1);
    const uint64_t n = solver->num_particles();
    const Vec3f middle(0.5f, 0.3f, 0.6f);
    EXPECT_EQ(solver->wait_cut({middle, middle, 3}), n);
    EXPECT_EQ(solver->num_particles(), 0u);
    std::vector<render::PackedPoint> points(3);
    solver->wait_pack(PointValue::kSpeed, points);
    EXPECT_TRUE(points.empty());
    const uint64_t steps = solver->steps();
    solver->wait_advance(1);
    solver->wait_advance(1);
    EXPECT_EQ(solver->steps(), steps + 2);
    EXPECT_EQ(solver->wait_cut({middle, middle, 3}), 0u);
    solver->wait_push({middle, middle, 3}, Vec3f(1, 0, 0));
    EXPECT_TRUE(solver->wait_snapshot().position.empty());
    EXPECT_TRUE(solver->wait_density().values.empty());
    const FrameStats none = solver->wait_stats();
    EXPECT_EQ(none.particles, 0u);
    EXPECT_EQ(none.active_blocks, 0u);
    EXPECT_EQ(none.mass_kg, 0);
    if (dim == 3) {
      EXPECT_EQ(wait_read(solver->wait_grid_field(GridValue::kDensity), {8, 8, 8}), 0.0f);
    }
    // The particles that come now are at rest and whole, whatever those that are gone have left in memory.
    const uint64_t came = solver->wait_emit(0, middle, 0.1f, Vec3f::Zero());
    EXPECT_GT(came, 20u);
    const ParticleSnapshot fresh = solver->wait_snapshot();
    for (size_t i = 0; i < came; ++i) {
      EXPECT_TRUE(fresh.velocity[i].isZero());
      EXPECT_EQ(fresh.volume_ratio[i], 1.0f);
    }
    for (const float c : fresh.affine) EXPECT_EQ(c, 0.0f);
    solver->wait_advance(2);
    EXPECT_EQ(solver->wait_snapshot().position.size(), came);
    EXPECT_LT(solver->max_speed_m_s(), 1e-3) << "nothing acts on it";
  }
}

TEST_P(Hands, EmitsWhereThereIsRoom) {
  for (const int dim : {2, 3}) {
    SCOPED_TRACE(dim);
    const std::unique_ptr<Solver> solver = make(dim);
    solver->wait_advance(1);
    const ParticleSnapshot before = solver->wait_snapshot();
    const double mass = solver->wait_stats().mass_kg;
    const Vec3f place(0.35f, 0.65f, 0.4f), velocity(0, -2, dim == 3 ? 1.0f : 0.0f);
    const float radius = 0.12f;
    const uint64_t came = solver->wait_emit(0, place, radius, velocity);
    // As dense as the emitter: 8 in a cell, 4 in 2-D.
    const double cells = dim == 3 ? 4 * M_PI / 3 * std::pow(radius * 16, 3) : M_PI * std::pow(radius * 32, 2);
    EXPECT_NEAR(static_cast<double>(came), cells * (dim == 3 ? 8 : 4), 0.1 * cells * (dim == 3 ? 8 : 4));
    EXPECT_EQ(solver->wait_emit(0, place, radius, velocity), 0u) << "there is no room left";
    const ParticleSnapshot after = solver->wait_snapshot();
    ASSERT_EQ(after.position.size(), before.position.size() + came);
    for (size_t i = 0; i < before.position.size(); ++i) EXPECT_EQ(after.position[i], before.position[i]);
    for (size_t i = before.position.size(); i < after.position.size(); ++i) {
      EXPECT_LE((after.position[i] - Vec3f(place.x(), place.y(), dim == 3 ? place.z() : 0.0f)).norm(),
                radius * 1.0001f);
      EXPECT_EQ(after.velocity[i], velocity);
      EXPECT_EQ(after.emitter[i], 0);
      EXPECT_EQ(after.volume_ratio[i], 1.0f);
    }
    const double gained = static_cast<double>(came) * before.mass[0];
    EXPECT_NEAR(solver->wait_stats().mass_kg, mass + gained, 1e-9 * mass);
    EXPECT_NEAR((momentum_of(after) - momentum_of(before)).y(), -2 * gained, 1e-6 * gained);
    EXPECT_GE(solver->max_speed_m_s(), velocity.norm() * 0.999f);
    // Beside a body, what would be in it is left out: twice as near, and all stand apart.
    const uint64_t beside = solver->wait_emit(0, Vec3f(0.5f, 0.3f, 0.6f), 0.16f, Vec3f::Zero());
    EXPECT_GT(beside, 0u);
    EXPECT_LT(static_cast<double>(beside), 0.8 * (dim == 3 ? 8 * 4 * M_PI / 3 * std::pow(0.16 * 16, 3)
                                                           : 4 * M_PI * std::pow(0.16 * 32, 2)));
    solver->wait_advance(2);
    EXPECT_EQ(solver->wait_snapshot().position.size(), after.position.size() + beside);
  }
}

// Memory grows beneath those that are there.
TEST_P(Hands, EmitAgainAndAgain) {
  const std::unique_ptr<Solver> solver = make(2);
  uint64_t n = solver->num_particles();
  for (int i = 0; i < 6; ++i) {
    n += solver->wait_emit(0, Vec3f(0.15f + 0.13f * static_cast<float>(i), 0.75f, 0), 0.06f, Vec3f::Zero());
    ASSERT_EQ(solver->num_particles(), n);
    if (!is_emulated()) solver->wait_advance(1);
    if (i == 2) n -= solver->wait_cut({Vec3f(0.1f, 0.3f, 0), Vec3f(0.9f, 0.3f, 0), 0.05f});
  }
  const ParticleSnapshot all = solver->wait_snapshot();
  ASSERT_EQ(all.position.size(), n);
  for (const Vec3f& p : all.position) EXPECT_TRUE(p.allFinite() && p.minCoeff() >= 0 && p.maxCoeff() <= 1);
}

// One line each, and nothing has changed.
TEST_P(Hands, RefuseWhatHasNoSense) {
  const std::unique_ptr<Solver> solver = make(3, {.most_emitted = 100});
  const ParticleSnapshot before = solver->wait_snapshot();
  const auto error_of = [](const std::function<void()>& act) -> std::string {
    try {
      act();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      return e.what();
    }
    return "";
  };
  const Vec3f here(0.5f, 0.3f, 0.6f), free(0.35f, 0.65f, 0.4f), out(0.5f, 0.9f, 0.6f), none = Vec3f::Zero();
  EXPECT_EQ(
      error_of([&] {
        solver->wait_push({out, here, 0.1f}, none);
      }),
      "push: (0.5, 0.9, 0.6) m is outside of the domain; expected (0.013, -0.2, 0.1) to (1.013, 0.8, 1.1)");
  EXPECT_THAT(error_of([&] {
                solver->wait_cut({here, out, 0.1f});
              }),
              HasSubstr("cut: (0.5, 0.9, 0.6) m is outside"));
  EXPECT_THAT(error_of([&] { solver->wait_emit(0, out, 0.1f, none); }),
              HasSubstr("emit: (0.5, 0.9, 0.6) m is outside"));
  EXPECT_THAT(error_of([&] {
                solver->wait_cut({Vec3f(0.5f, kNan, 0.6f), here, 0.1f});
              }),
              HasSubstr("outside"));
  for (const float radius : {0.0f, -1.0f, kNan, kInf}) {
    const std::string words =
        "a radius of " + fmt::format("{:.4g}", radius) + " m; expected a positive, finite one";
    EXPECT_EQ(error_of([&] { solver->wait_push({here, here, radius}, none); }), "push: " + words);
    EXPECT_EQ(error_of([&] { solver->wait_cut({here, here, radius}); }), "cut: " + words);
    EXPECT_EQ(error_of([&] { solver->wait_emit(0, here, radius, none); }), "emit: " + words);
  }
  EXPECT_EQ(error_of([&] {
              solver->wait_push({here, here, 0.1f}, Vec3f(0, kInf, 0));
            }),
            "push: a velocity of (0, inf, 0) m/s; expected finite numbers");
  EXPECT_THAT(error_of([&] { solver->wait_emit(0, here, 0.1f, Vec3f(kNan, 0, 0)); }),
              HasSubstr("emit: a velocity"));
  EXPECT_THAT(error_of([&] { solver->wait_emit(0, free, 1e-4f, none); }),
              HasSubstr("expected a radius of a cell's 0.0625 m or more"));
  EXPECT_THAT(error_of([&] { solver->wait_emit(0, free, 0.1f, none); }),
              HasSubstr("particles; there is room for 100 more"));
  EXPECT_THAT(error_of([&] { solver->wait_emit(0, free, 0.4f, none); }), HasSubstr("emit: about "));
  EXPECT_EQ(solver->num_particles(), before.position.size());
  const ParticleSnapshot after = solver->wait_snapshot();
  EXPECT_EQ(after.position, before.position);
  EXPECT_EQ(after.velocity, before.velocity);
  EXPECT_EQ(solver->max_speed_m_s(), make(3)->max_speed_m_s());
  // Particles may come until there is no more room.
  const uint64_t some = solver->wait_emit(0, free, 0.08f, none);
  EXPECT_GT(some, 50u);
  EXPECT_THAT(error_of([&] { solver->wait_emit(0, Vec3f(0.75f, 0.2f, 0.3f), 0.08f, none); }),
              HasSubstr(fmt::format("there is room for {} more", 100 - some)));
  EXPECT_EQ(solver->num_particles(), before.position.size() + some);
}

INSTANTIATE_TEST_SUITE_P(Mpm, Hands, testing::ValuesIn(test_devices()), device_test_name);

TEST(PushShare, FallsSmoothlyFromOneToNothing) {
  EXPECT_EQ(push_share(0), 1);
  EXPECT_EQ(push_share(0.25f), 0.5625f);
  EXPECT_EQ(push_share(1), 0);
  EXPECT_EQ(push_share(7), 0);
  EXPECT_EQ(push_share(kNan), 0);
}

}  // namespace
}  // namespace coppice::mpm
