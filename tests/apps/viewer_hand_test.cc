// Commands of a hand on the simulation's thread: while it is paused, beside breakpoints and resets, and done
// again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "apps/run/scene_simulation.h"
#include "apps/viewer/hand_place.h"
#include "apps/viewer/journal.h"
#include "apps/viewer/simulation_thread.h"
#include "tests/apps/run_outputs.h"
#include "tests/apps/still_simulation.h"
#include "tests/sparse/test_devices.h"

namespace coppice::viewer {
namespace {

using testing::HasSubstr;

const Vec3f kMiddle(0.5f, 0.5f, 0.5f), kFree(0.5f, 0.8f, 0.5f);

// A scene on a thread, and what is seen of it.
class Session {
 public:
  explicit Session(SimulationThread::Make make, std::vector<JournalEntry> replay = {})
      : thread_(std::move(make), options(std::move(replay))) {}

  void post(Command command) {
    ASSERT_TRUE(thread_.post(std::move(command)));
    ++posted_;
  }
  // All that was posted was looked at, and it is paused, or has failed.
  SimulationStatus wait_paused() {
    for (int i = 0; i < 6000; ++i) {
      const SimulationStatus s = thread_.status();
      const bool is_still = s.state == RunState::kPaused || s.state == RunState::kFailed;
      if (is_still && s.obeyed >= posted_) return s;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "it is not paused";
    return thread_.status();
  }
  // Returns what is to be seen then.
  std::vector<render::PackedPoint> wait_points() {
    wait_paused();
    for (int i = 0; i < 6000; ++i) {
      if (auto next = thread_.take()) last_ = std::move(next);
      if (last_ != nullptr && !thread_.has_more()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return last_ == nullptr ? std::vector<render::PackedPoint>() : last_->points.at(0).points;
  }

  std::vector<JournalEntry> journal;

 private:
  SimulationThreadOptions options(std::vector<JournalEntry> replay) {
    SimulationThreadOptions o{.is_paused = true};
    o.replay = std::move(replay);
    o.journal = [this](uint64_t steps, const Command& c) { journal.push_back({steps, c}); };
    return o;
  }
  uint64_t posted_ = 0;
  std::shared_ptr<const Snapshot> last_;
  SimulationThread thread_;
};

class HandsOnScenes : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    write_text(file_, tiny_scene());
  }
  SimulationThread::Make make_on(IntrusivePtr<Device> on) {
    return [this, on] {
      return std::make_unique<SceneSimulation>(on, scene::load_scene(file_),
                                               std::vector<scene::SceneOverride>{});
    };
  }
  TemporaryFolder folder_;
  std::string file_ = folder_ / "tiny.toml";
};

TEST_P(HandsOnScenes, ActWhilePausedAndAResetForgetsThem) {
  Session s(make_on(device));
  const size_t n = s.wait_points().size();
  ASSERT_GT(n, 100u);
  const Hands hands = s.wait_paused().hands;
  ASSERT_THAT(hands.materials, testing::ElementsAre("emitter[0].snow"));
  EXPECT_TRUE(hands.pushes && hands.cuts);
  EXPECT_FLOAT_EQ(hands.radius_m, 0.08f);
  s.post(Emit{kFree, 0.1f, Vec3f::Zero(), "emitter[0].snow"});
  const size_t more = s.wait_points().size();
  EXPECT_GT(more, n + 50);
  EXPECT_EQ(s.wait_paused().steps, 0u);
  s.post(Cut{{kMiddle, kMiddle, 0.17f}});
  EXPECT_EQ(s.wait_points().size(), more - n) << "all of the body, and nothing of what came";
  s.post(StepOnce{1});
  EXPECT_EQ(s.wait_points().size(), more - n);
  s.post(Reset());
  EXPECT_EQ(s.wait_points().size(), n);
  EXPECT_EQ(s.wait_paused().notice, "");
  EXPECT_EQ(s.journal.size(), 4u);
}

TEST_P(HandsOnScenes, CutsAndBreakpoints) {
  Session s(make_on(device));
  const size_t n = s.wait_points().size();
  s.post(Cut{{kMiddle - Vec3f(0.3f, 0, 0), kMiddle - Vec3f(0.1f, 0, 0), 0.1f}});
  s.post(SetBreakpoints{.step = 2});
  s.post(Pause{false});
  const size_t left = s.wait_points().size();
  EXPECT_LT(left, n);
  EXPECT_GT(left, 0u);
  EXPECT_THAT(s.wait_paused().message, HasSubstr("is reached"));
  EXPECT_GE(s.wait_paused().steps, 2u);
  // A push is fast enough at once: the batch behind it stops there.
  s.post(SetBreakpoints{.max_speed_m_s = 5});
  s.post(Push{{kMiddle, kMiddle, 0.3f}, Vec3f(20, 0, 0)});
  s.post(Pause{false});
  EXPECT_THAT(s.wait_paused().message, HasSubstr("something moves with"));
}

TEST_P(HandsOnScenes, CutToNothingAndGoOn) {
  Session s(make_on(device));
  s.post(Cut{{kMiddle, kMiddle, 2}});
  EXPECT_TRUE(s.wait_points().empty());
  s.post(Want{{.trees = true, .volumes = true, .grid = "density", .cell_m = kMiddle}});
  s.post(StepOnce{2});
  EXPECT_TRUE(s.wait_points().empty());
  const SimulationStatus now = s.wait_paused();
  EXPECT_EQ(now.state, RunState::kPaused) << now.message;
  EXPECT_EQ(now.steps, 2u);
  s.post(Emit{kMiddle, 0.1f, Vec3f::Zero(), "emitter[0].snow"});
  s.post(StepOnce{1});
  EXPECT_GT(s.wait_points().size(), 50u);
}

TEST_P(HandsOnScenes, AreRefusedInOneLineAndNotInTheJournal) {
  Session s(make_on(device));
  const size_t n = s.wait_points().size();
  const auto notice = [&](Command command) {
    s.post(std::move(command));
    return s.wait_paused().notice;
  };
  EXPECT_EQ(notice(Emit{kFree, 0.1f, Vec3f::Zero(), "gold"}),
            "emit: no material 'gold'; expected emitter[0].snow");
  EXPECT_THAT(notice(Emit{Vec3f(2, 0, 0), 0.1f, Vec3f::Zero(), "emitter[0].snow"}),
              HasSubstr("emit: (2, 0, 0) m is outside"));
  EXPECT_THAT(notice(Push{{kMiddle, kMiddle, 0}, Vec3f(1, 0, 0)}), HasSubstr("push: a radius of 0 m"));
  EXPECT_THAT(notice(Cut{{kMiddle, kMiddle, -1}}), HasSubstr("cut: a radius of -1 m"));
  EXPECT_EQ(s.wait_points().size(), n);
  EXPECT_TRUE(s.journal.empty());
}

INSTANTIATE_TEST_SUITE_P(Viewer, HandsOnScenes, testing::ValuesIn(test_devices()), device_test_name);

// The same bits with another number of threads.
class HandsDoneAgain : public testing::Test {};

void expect_the_same_bits(const std::string& scene) {
  const TemporaryFolder folder;
  const std::string file = folder / "tiny.toml";
  write_text(file, scene);
  const auto make_with = [&](int threads) -> SimulationThread::Make {
    return [&file, threads] {
      return std::make_unique<SceneSimulation>(Device::cpu({.threads = threads, .deterministic = true}),
                                               scene::load_scene(file), std::vector<scene::SceneOverride>{});
    };
  };
  Session first(make_with(1));
  first.post(StepOnce{3});
  first.post(Push{{kMiddle, kMiddle + Vec3f(0.02f, 0, 0), 0.1f}, Vec3f(2, 1, -1)});
  first.post(StepOnce{40});
  first.post(Emit{kFree, 0.11f, Vec3f(0, -3, 0.3f), "emitter[0].snow"});
  first.post(Emit{Vec3f(0.51f, 0.79f, 0.5f), 0.11f, Vec3f(0, -3, 0), "emitter[0].snow"});
  first.post(StepOnce{5});
  first.post(Cut{{Vec3f(0.45f, 0.5f, 0.5f), Vec3f(0.5f, 0.45f, 0.52f), 0.05f}});
  first.post(StepOnce{30});
  const std::vector<render::PackedPoint> points = first.wait_points();
  ASSERT_GT(points.size(), 100u);
  // By way of the text that a file has.
  const std::string text = journal_text(first.journal);
  EXPECT_THAT(text, HasSubstr(" push from 0.5 0.5 0.5 to 0.52 0.5 0.5 radius 0.1 velocity 2 1 -1\n"));
  const uint64_t steps = first.wait_paused().steps;
  ASSERT_GT(steps, 20u);
  Session again(make_with(3), parse_journal(text, "a.journal"));
  again.post(SetBreakpoints{.step = steps});
  again.post(Pause{false});
  const std::vector<render::PackedPoint> same = again.wait_points();
  EXPECT_EQ(again.wait_paused().replay_refused, 0u);
  ASSERT_EQ(again.wait_paused().steps, steps);
  ASSERT_EQ(points.size(), same.size());
  EXPECT_EQ(std::memcmp(points.data(), same.data(), points.size() * sizeof points[0]), 0);
  EXPECT_EQ(journal_text(again.journal), text);
}

TEST_F(HandsDoneAgain, GiveTheSameBits) { expect_the_same_bits(tiny_scene()); }

// Particles come and leave between the hand's acts.
TEST_F(HandsDoneAgain, GiveTheSameBitsBesideAnInflowAndAnOutflow) {
  expect_the_same_bits(
      tiny_scene("",
                 "velocity = [0.5, 1.0, 0.0]\n[emitter.inflow]\nfrom_s = 0.002\n[[outflow]]\n"
                 "center = [0.5, 0.85, 0.5]\nhalf_size = [0.5, 0.15, 0.5]\n"));
}

TEST(HandsNowhere, GetOneLine) {
  Session s([] { return std::make_unique<StillSimulation>(); });
  const auto notice = [&](Command command) {
    s.post(std::move(command));
    return s.wait_paused().notice;
  };
  EXPECT_EQ(notice(Emit()), "this simulation emits nothing");
  EXPECT_EQ(notice(Push()), "this simulation cannot be pushed");
  EXPECT_EQ(notice(Cut()), "this simulation cannot be cut");
  EXPECT_FALSE(s.wait_paused().hands.has_any());
}

TEST(HandPlace, IsUnderTheMouseAndAsDeepAsItsBeginning) {
  const Vec2f viewport(800, 600);
  const Aabb3f box{Vec3f(-1, 0, -2), Vec3f(3, 2, 1)};
  for (const render::Camera& camera :
       {render::frame_domain_3d(box, 800.0f / 600), render::frame_domain_2d(box, 800.0f / 600)}) {
    const Vec3f through(0.5f, 1, -0.25f);
    const Vec2f at(123, 456);
    const Vec3f place = place_as_deep_as(camera, viewport, at, through);
    EXPECT_LT((camera.pixel_from_world(place, 800, 600) - at).norm(), 0.01f);
    EXPECT_NEAR((camera.look_at - camera.position).normalized().dot(place - through), 0, 1e-4f);
    // A point that far above it is that far away on the screen.
    const Vec3f up = camera.view_from_world().block<1, 3>(1, 0);
    const Vec2f above = camera.pixel_from_world(place + 0.1f * up, 800, 600);
    EXPECT_NEAR(radius_on_screen(camera, viewport, place, 0.1f), (above - at).norm(), 0.01f);
  }
}

TEST(HandPlace, IsInTheDomainOrNowhere) {
  const Aabb3f box{Vec3f(0, 0, 0), Vec3f(1, 1, 1)}, flat{Vec3f(0, 0, 0), Vec3f(1, 1, 0)};
  EXPECT_EQ(place_in_domain(Vec3f(0.5f, -0.05f, 0.5f), box, 3, 0.1f), Vec3f(0.5f, 0, 0.5f));
  EXPECT_EQ(place_in_domain(Vec3f(0.5f, -0.15f, 0.5f), box, 3, 0.1f), std::nullopt);
  EXPECT_EQ(place_in_domain(Vec3f(0.5f, 0.5f, 7), flat, 2, 0.1f), Vec3f(0.5f, 0.5f, 0));
  EXPECT_EQ(place_in_domain(Vec3f(0.5f, NAN, 0), box, 3, 0.1f), std::nullopt);
}

TEST(HandPlace, APushDoesNotDependOnHowItIsCut) {
  const Vec3f way(0.03f, 0, 0.04f);
  EXPECT_LT((push_velocity(way, 0.1f, 2) - 20 * way).norm(), 1e-6f);
  EXPECT_LT((push_velocity(way / 2, 0.1f, 2) - 10 * way).norm(), 1e-6f);
  EXPECT_NEAR(push_velocity(100 * way, 0.1f, 2).norm(), 4, 1e-5f);
}

}  // namespace
}  // namespace coppice::viewer
