// Kernel files that are changed while the viewer runs a simulation of their kernels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/viewer/simulation_thread.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "tests/sparse/kernel_copy.h"

namespace coppice::viewer {
namespace {

using testing::HasSubstr;
using Status = KernelReloadStatus::State;

// A step fills a field; what is shown is what is in it.
class Filling final : public Simulation {
 public:
  explicit Filling(const KernelCopy& copy)
      : fill_(program_.bind(copy.of(fill), over(leaf_), x_, ReloadScale{1})) {}
  bool wait_advance(int) override {
    wait(fill_.launch());
    ++steps_;
    return true;
  }
  void wait_reset() override { steps_ = 0; }
  void wait_pack(Snapshot& s) override {
    s.points.resize(1);
    s.points[0].points.assign(1, {Vec3f::Zero(), static_cast<float>(wait_read(x_, {1, 1}))});
  }
  uint64_t steps() const override { return steps_; }
  double time_s() const override { return static_cast<double>(steps_); }
  void wait_set(const std::string&, const std::string&) override {}

 private:
  IntrusivePtr<Device> device_ = Device::cpu(2);
  Program program_{device_};
  Tree tree_{device_};
  Node leaf_ = tree_.root().dense({8, 8});
  Field<int> x_ = leaf_.place<int>("x");
  BoundLaunch fill_;
  uint64_t steps_ = 0;
};

class ViewerReload : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = KernelCopy::why_none(); !why.empty()) GTEST_SKIP() << why;
    copy_.emplace();
  }
  void TearDown() override { thread_.reset(), copy_.reset(); }
  void start(SimulationThreadOptions options) {
    options.most_steps = 1;
    options.journal = [this](uint64_t steps, const Command& c) {
      const std::lock_guard lock(mutex_);
      journal_.push_back({steps, c});
    };
    thread_.emplace([this] { return std::make_unique<Filling>(*copy_); }, options);
  }
  template <class F>
  bool eventually(F&& holds) {
    for (int i = 0; i < 6000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  bool shows(float value) {
    return eventually([&] {
      const auto seen = thread_->take();
      return seen != nullptr && seen->steps > 0 && seen->points[0].points[0].value == value;
    });
  }
  bool tells(Status state, const std::string& words = "") {
    return eventually([&] {
      const KernelReloadStatus now = thread_->status().kernels;
      return now.state == state && now.text.find(words) != std::string::npos;
    });
  }
  // A failed test shows what it says of its kernels and of itself.
  std::string said() const {
    const SimulationStatus now = thread_->status();
    return fmt::format("kernels, state {}: {}; message: {}; notice: {}", static_cast<int>(now.kernels.state),
                       now.kernels.text, now.message, now.notice);
  }
  std::vector<JournalEntry> journal() {
    const std::lock_guard lock(mutex_);
    return journal_;
  }

  std::optional<KernelCopy> copy_;
  std::mutex mutex_;
  std::vector<JournalEntry> journal_;
  std::optional<SimulationThread> thread_;
};

TEST_F(ViewerReload, ARunningSimulationTakesOverWhatIsSaved) {
  start({.reloads_kernels = true});
  ASSERT_TRUE(shows(102)) << said();
  ASSERT_TRUE(tells(Status::kWatching)) << said();
  copy_->save("2 * scale", "3 * scale");
  EXPECT_TRUE(shows(103)) << said();
  EXPECT_THAT(thread_->status().kernels.text, testing::MatchesRegex("copy.kernels.cc loaded in [0-9]+ ms"));
  const auto done = journal();
  ASSERT_EQ(done.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<KernelsLoaded>(done[0].command));
  EXPECT_GT(done[0].steps, 0u);
  copy_->save("2 * scale", "2 * scael");
  ASSERT_TRUE(tells(Status::kFailed)) << said();
  EXPECT_THAT(thread_->status().kernels.text, HasSubstr("copy.kernels.cc:13:"));
  EXPECT_EQ(thread_->status().state, RunState::kRunning);
  const uint64_t steps = thread_->status().steps;
  EXPECT_TRUE(eventually([&] { return thread_->status().steps > steps; }));
  EXPECT_TRUE(shows(103)) << said();
}

TEST_F(ViewerReload, APausedOneTakesItOverToo) {
  start({.reloads_kernels = true});
  ASSERT_TRUE(shows(102)) << said();
  ASSERT_TRUE(tells(Status::kWatching)) << said();
  thread_->post(Pause{});
  ASSERT_TRUE(eventually([&] { return thread_->status().state == RunState::kPaused; }));
  const uint64_t steps = thread_->status().steps;
  copy_->save("2 * scale", "4 * scale");
  ASSERT_TRUE(tells(Status::kLoaded, "copy.kernels.cc loaded")) << said();
  EXPECT_EQ(thread_->status().steps, steps);
  thread_->post(StepOnce{});
  EXPECT_TRUE(shows(104)) << said();
  // On demand, of what has not changed: nothing is replaced.
  const size_t before = journal().size();
  thread_->post(ReloadKernels{});
  EXPECT_TRUE(eventually([&] { return thread_->status().kernels.text == "copy.kernels.cc is as it was"; }));
  EXPECT_EQ(journal().size(), before);
}

// Kernels that an earlier viewer of the process took over stay, and count for this one's replay.
TEST_F(ViewerReload, AJournalBeginsWithWhatStandsForTheProgramsKernels) {
  start({.reloads_kernels = true});
  ASSERT_TRUE(shows(102)) << said();
  ASSERT_TRUE(tells(Status::kWatching)) << said();
  copy_->save("2 * scale", "3 * scale");
  ASSERT_TRUE(shows(103)) << said();
  const std::vector<JournalEntry> first = journal();
  ASSERT_EQ(first.size(), 1u);
  thread_.reset();
  start({});
  ASSERT_TRUE(shows(103)) << said();
  const std::vector<JournalEntry> both = journal();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].steps, 0u);
  EXPECT_EQ(std::get<KernelsLoaded>(both[1].command).hash, std::get<KernelsLoaded>(first[0].command).hash);
}

// Seen to fail: what was saved since the build came in at a step that the clock chose.
TEST_F(ViewerReload, AReplayKeepsTheProgramsKernels) {
  start({.reloads_kernels = true, .replay = {{1u << 30, Pause{}}}});
  ASSERT_TRUE(shows(102)) << said();
  copy_->save("2 * scale", "3 * scale");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(thread_->status().kernels.state, Status::kNone);
  EXPECT_TRUE(shows(102)) << said();
}

TEST_F(ViewerReload, OneThatDoesNotReloadSaysSo) {
  start({});
  thread_->post(ReloadKernels{});
  EXPECT_TRUE(eventually([&] { return thread_->status().notice.find("--no-reload") != std::string::npos; }));
  EXPECT_EQ(thread_->status().kernels.state, Status::kNone);
}

// Nobody has the kernels of that time.
TEST_F(ViewerReload, AReplayRefusesKernelsThatWereTakenOver) {
  start({.replay = {{3, KernelsLoaded{"copy.kernels.cc", "0a1b"}}}});
  EXPECT_TRUE(eventually([&] { return thread_->status().replay_refused == 1; }));
  EXPECT_EQ(thread_->status().replay_refusal,
            "a changed copy.kernels.cc was taken over behind step 3, which a replay cannot do");
}

}  // namespace
}  // namespace coppice::viewer
