// Still pictures are drawn beside whoever asked for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <semaphore>
#include <thread>

#include "apps/viewer/still_thread.h"
#include "tests/apps/make_or_skip.h"

namespace coppice::viewer {
namespace {

constexpr int kWidth = 64, kHeight = 48;

class StillThreads : public testing::Test {
 protected:
  void SetUp() override {
    std::unique_ptr<render::GlContext> context;
    make_or_skip(context);
  }
  static std::shared_ptr<Snapshot> one_ball() {
    auto s = std::make_shared<Snapshot>();
    s->domain = {Vec3f::Zero(), Vec3f::Ones()};
    s->points.resize(1);
    s->points[0].points = {{Vec3f(0.5f, 0.5f, 0.5f), 1.0f}};
    s->points[0].radius_m = 0.25f;
    return s;
  }
  void ask(uint64_t number, std::shared_ptr<const Snapshot> s, int width = kWidth, int height = kHeight) {
    thread_.ask(number, std::move(s), camera_, {}, width, height);
  }
  Still wait_take() {
    for (;;) {
      const int before = done_;
      if (std::optional<Still> still = thread_.take()) return *std::move(still);
      done_.wait(before);
    }
  }

  const render::Camera camera_ = render::frame_domain_3d({Vec3f::Zero(), Vec3f::Ones()}, 1.0f);
  std::atomic<int> done_ = 0;
  StillThread thread_{[this] {
    ++done_;
    done_.notify_all();
  }};
};

TEST_F(StillThreads, HaveThePictureOfFilesAndLetGoOfTheSnapshot) {
  std::shared_ptr<Snapshot> s = one_ball();
  render::Image file = StillRenderer().render(*s, camera_, kWidth, kHeight);
  file.flip_rows();
  const std::weak_ptr<Snapshot> seen = s;
  ask(7, std::exchange(s, nullptr));
  const Still still = wait_take();
  EXPECT_EQ(still.error, "");
  EXPECT_EQ(still.number, 7u);
  EXPECT_TRUE(std::ranges::equal(still.rgba, file.bytes()));
  EXPECT_TRUE(seen.expired());
  EXPECT_FALSE(thread_.take()) << "a picture is taken once";
}

// A window of another size is asked for while pictures of the last one are under way.
TEST_F(StillThreads, OfSeveralTheLastCounts) {
  for (uint64_t number = 1; number <= 20; ++number)
    ask(number, one_ball(), kWidth + static_cast<int>(number), kHeight);
  Still last;
  while (last.number != 20) last = wait_take();
  EXPECT_EQ(last.width, kWidth + 20);
  EXPECT_EQ(last.rgba.size(), size_t{4} * (kWidth + 20) * kHeight);
  EXPECT_LT(done_, 20) << "those that nobody wanted any more were drawn, too";
}

TEST_F(StillThreads, SayWhatWentWrongAndGoOn) {
  ask(1, one_ball(), 1 << 24, 1);
  const Still none = wait_take();
  EXPECT_NE(none.error.find("pixels a side, not 16777216 x 1"), std::string::npos) << none.error;
  ask(2, one_ball());
  EXPECT_EQ(wait_take().error, "");
}

// A simulation has two snapshots, and one that waits here would keep it from showing anything.
TEST_F(StillThreads, LetGoOfWhatIsForgotten) {
  std::binary_semaphore is_busy(0), may_go_on(0);
  StillThread busy([&] { is_busy.release(), may_go_on.acquire(); });
  busy.ask(1, one_ball(), camera_, {}, kWidth, kHeight);
  is_busy.acquire();
  std::shared_ptr<Snapshot> s = one_ball();
  const std::weak_ptr<Snapshot> seen = s;
  busy.ask(2, std::exchange(s, nullptr), camera_, {}, kWidth, kHeight);
  EXPECT_FALSE(seen.expired());
  busy.forget();
  EXPECT_TRUE(seen.expired());
  may_go_on.release();
}

// The thread lets go of a snapshot once it is drawn. Seen to fail: the large picture was finished first,
// which took seconds.
TEST_F(StillThreads, EndWhatIsNotWantedAnyMore) {
  for (const bool forgets : {true, false}) {
    std::shared_ptr<Snapshot> s = one_ball();
    const std::weak_ptr<Snapshot> seen = s;
    ask(1, std::exchange(s, nullptr), 2048, 2048);
    while (!seen.expired()) std::this_thread::yield();
    if (forgets) thread_.forget();
    ask(2, one_ball());
    EXPECT_EQ(wait_take().number, 2u) << "the large one was finished, too";
  }
}

TEST_F(StillThreads, EndWhileOneIsDrawn) {
  StillThread other([] {});
  other.ask(1, one_ball(), camera_, {}, 512, 512);
}

}  // namespace
}  // namespace coppice::viewer
