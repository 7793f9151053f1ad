// Progress on a terminal and in a log file, with a clock and a width that the test sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/output/progress.h"

namespace coppice {
namespace {

class ProgressTest : public testing::Test {
 protected:
  ProgressOutput output(bool is_terminal) {
    return {&text_, is_terminal, [this] { return width_; }, [this] { return now_s_; }};
  }
  // Returns what was written since the last call.
  std::string take() {
    std::string text = text_.str();
    text_.str("");
    return text;
  }

  std::ostringstream text_;
  int width_ = 100;
  double now_s_ = 1000;
};

TEST_F(ProgressTest, DrawsABarOnATerminal) {
  Progress progress(10, output(true));
  now_s_ += 0.5;
  progress.update(1);
  EXPECT_EQ(take(), "\rframe  1/10 [###---------------------------]  10%  2.0 frames/s  ETA 0:05\x1b[K");
  now_s_ += 4.5;
  progress.update(10, "1.2 M particles");
  EXPECT_EQ(
      take(),
      "\rframe 10/10 [##############################] 100%  2.0 frames/s  ETA 0:00  1.2 M particles\x1b[K");
  progress.finish();
  EXPECT_EQ(take(), "\n");
}

TEST_F(ProgressTest, FitsTheTerminalWhateverItsWidth) {
  for (width_ = 1; width_ < 140; ++width_) {
    Progress progress(1000, output(true));
    now_s_ += 1;
    progress.update(500, "some detail that is long");
    const std::string text = take();
    const size_t columns = text.size() - std::string("\r\x1b[K").size();
    EXPECT_LE(columns, static_cast<size_t>(std::max(width_ - 1, 1))) << text;
    progress.finish();
    take();
  }
}

TEST_F(ProgressTest, RedrawsNoMoreOftenThanItsInterval) {
  Progress progress(1000, output(true));
  int n_drawn = 0;
  for (int frame = 1; frame <= 500; ++frame) {
    now_s_ += 0.01;
    progress.update(frame);
    n_drawn += !take().empty();
  }
  EXPECT_GE(n_drawn, 40);  // 5 s at ten a second, less what rounding of the clock delays
  EXPECT_LE(n_drawn, 51);
  progress.update(1000);  // the last frame is drawn at once
  EXPECT_NE(take().find("1000/1000"), std::string::npos);
}

TEST_F(ProgressTest, WritesPlainLinesElsewhere) {
  Progress progress(4, output(false));
  now_s_ += 3;
  progress.update(1);
  EXPECT_EQ(take(), "frame 1/4 (25%), 3.0 s/frame, ETA 0:09\n");
  progress.update(1);  // the same frame: no second line
  now_s_ += 1;
  progress.update(2);  // too soon
  EXPECT_EQ(take(), "");
  now_s_ += 3;
  progress.update(4, "done");
  EXPECT_EQ(take().find("frame 4/4 (100%), "), 0u);
  progress.finish();
  EXPECT_EQ(take(), "");
}

TEST_F(ProgressTest, EndsWithTheFrameReachedWhenInterrupted) {
  {
    Progress progress(100, output(false));
    now_s_ += 5;
    progress.update(1);
    now_s_ += 0.1;
    progress.update(2);
    EXPECT_NE(take().find("frame 1/100"), std::string::npos);
  }  // the destructor finishes
  EXPECT_EQ(take().find("frame 2/100 (2%)"), 0u);
}

TEST_F(ProgressTest, ForgetsOldRates) {
  Progress progress(951, output(false));
  for (int frame = 1; frame <= 50; ++frame) {
    now_s_ += 10;
    progress.update(frame);
  }
  for (int frame = 51; frame <= 150; ++frame) {
    now_s_ += 2.5;
    progress.update(frame);
  }
  take();
  now_s_ += 2.5;
  progress.update(151);
  // A hundred frames of weight 0.1 leave 0.9^100 = 3e-5 of the slow ones.
  EXPECT_EQ(take(), "frame 151/951 (15%), 2.5 s/frame, ETA 33:20\n");
}

TEST_F(ProgressTest, TakesItsLineAwayForOthers) {
  Progress progress(10, output(true));
  now_s_ += 1;
  progress.update(1);
  take();
  progress.clear_line();
  EXPECT_EQ(take(), "\r\x1b[K");
  progress.clear_line();  // nothing is left to clear
  EXPECT_EQ(take(), "");
  progress.update(1);  // drawn anew, however soon
  EXPECT_NE(take().find("frame  1/10"), std::string::npos);
}

TEST_F(ProgressTest, OfNoFramesIsSilent) {
  { Progress progress(0, output(true)); }
  EXPECT_EQ(take(), "");
}

TEST(Duration, IsShortToRead) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(6.6), "0:07");
  EXPECT_EQ(duration_text(754), "12:34");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(INFINITY), "?");
  EXPECT_EQ(duration_text(NAN), "?");
}

TEST(Progress, OfStderrHasAClockAndAWidth) {
  const ProgressOutput output = stderr_progress_output();
  EXPECT_NE(output.stream, nullptr);
  EXPECT_GT(output.width(), 0);
  const double first = output.now_s();
  EXPECT_GE(output.now_s(), first);
}

}  // namespace
}  // namespace coppice
