// A program's own functions in the viewer: what it shows, how it is steered, and what bad arguments get.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "apps/render/image.h"
#include "apps/viewer/viewer.h"
#include "core/error.h"
#include "gpu/host_access.h"
#include "render_volumes.kernels.h"
#include "sparse/program.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

using testing::HasSubstr;

// Points on a circle that turns.
struct Circle {
  float spin = 1;
  int steps = 0, packs = 0, resets = 0, throws_at = -1;

  void step() {
    if (steps == throws_at) throw Error(ErrorCode::kNumeric, "the circle broke");
    ++steps;
  }
  void pack(std::vector<render::PackedPoint>& points) {
    points.clear();
    for (int i = 0; i < 500; ++i) {
      const float a = 0.1f * static_cast<float>(i) + spin * 0.01f * static_cast<float>(steps);
      points.push_back({{std::cos(a), std::sin(a), 0}, static_cast<float>(i)});
    }
    ++packs;
  }
  int run(std::vector<const char*> words) {
    words.insert(words.begin(), "circle");
    Viewer viewer(static_cast<int>(words.size()), words.data(), "circle");
    viewer.points("points", [&](auto& points) { pack(points); }, {.attribute = "number", .radius_m = 0.05f});
    viewer.slider("spin", spin, 0.0f, 10.0f, "1/s");
    viewer.reading("steps", [&] { return static_cast<double>(steps); });
    viewer.time_step(0.01, 3);
    viewer.on_reset([&] { steps = 0, ++resets; });
    return viewer.run([&] { step(); });
  }
};

// The first Ctrl-C ends it in good order, which a step that never ends would put off for ever.
TEST(ViewerProgram, TheSecondCtrlCEndsItAtOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [](int times) {
    const char* const words[] = {"stopped", "--view", "null"};
    Viewer viewer(3, words, "stopped");
    viewer.points("none", [](auto&) {});
    return viewer.run([&] {
      for (; times > 0; --times) std::raise(SIGINT);
    });
  };
  EXPECT_EXIT(std::exit(run(1)), testing::ExitedWithCode(130),
              "^finishing the steps under way; again to stop now\n$");
  EXPECT_EXIT(run(2), testing::ExitedWithCode(130),
              "^finishing the steps under way; again to stop now\nstopped\n$");
}

// Seen to fail: it said that steps were finished, of which there were none.
TEST(ViewerProgram, CtrlCBetweenStepsSaysNothingOfThem) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    const char* const words[] = {"between", "--view", "null"};
    Viewer viewer(3, words, "between");
    viewer.points("packed before the first step", [is_first = true](auto&) mutable {
      if (std::exchange(is_first, false)) std::raise(SIGINT);
    });
    return viewer.run([] {});
  };
  EXPECT_EXIT(std::exit(run()), testing::ExitedWithCode(130), "^ending; again to stop now\n$");
}

// Seen to fail: the signal was noted, and the program went on making what is shown.
TEST(ViewerProgram, TheFirstCtrlCEndsItAtOnceWhileItIsMade) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    const char* const words[] = {"made", "--view", "null", "--frames", "1"};
    Viewer viewer(5, words, "made");
    viewer.field("asked for when it is made", []() -> Field<float> {
      std::raise(SIGINT);
      throw Error(ErrorCode::kUnavailable, "the signal was ignored");
    });
    return viewer.run([] {});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(130), "^stopped\n$");
}

TEST(ViewerProgram, RunsAsManyFramesAsAreAskedFor) {
  Circle circle;
  EXPECT_EQ(circle.run({"--view", "null", "--frames", "5"}), 0);
  EXPECT_EQ(circle.steps, 15);
  EXPECT_GE(circle.packs, 2);  // the beginning and the end; between them as often as somebody looked
}

TEST(ViewerProgram, WritesAPictureOfEachFrame) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  Circle circle;
  testing::internal::CaptureStderr();
  const int code = circle.run({"--view=file", "--frames=2", "-o", out.c_str()});
  const std::string said = testing::internal::GetCapturedStderr();
  if (said.find("cannot draw") != std::string::npos) GTEST_SKIP() << "this machine has no OpenGL";
  ASSERT_EQ(code, 0) << said;
  EXPECT_EQ(circle.packs, 3);
  const auto picture = [&](int i) {
    return render::read_png(out + "/frame_000" + std::to_string(i) + ".png");
  };
  const render::Image first = picture(0), last = picture(2);
  EXPECT_EQ(first.width(), 1280);
  EXPECT_FALSE(std::ranges::equal(first.bytes(), last.bytes()));
  EXPECT_FALSE(std::filesystem::exists(out + "/frame_0003.png"));
  EXPECT_THAT(said, HasSubstr("3 pictures are in " + out));
  testing::internal::CaptureStderr();
  EXPECT_EQ(circle.run({"--view=file", "--frames=0", "--overwrite", "-o", out.c_str()}), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("1 picture is in " + out));
}

TEST(ViewerProgram, DoesWhatAJournalSays) {
  const TemporaryFolder folder;
  const std::string journal = folder / "a.journal";
  write_text(journal, "coppice journal 1\n2 set spin 2.5\n4 reset\n1 set spin 99\n");
  Circle circle;
  testing::internal::CaptureStderr();
  // All of it was done but for what could not be.
  EXPECT_EQ(circle.run({"--view", "null", "--frames", "2", "--replay", journal.c_str()}), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("error: of the journal, 1 command was refused, the first: spin = 99: expected a "
                        "number from 0 to 10"));
  EXPECT_EQ(circle.spin, 2.5f);
  EXPECT_EQ(circle.resets, 1);
}

TEST(ViewerProgram, GetsTheStrokesOfAHand) {
  const TemporaryFolder folder;
  const std::string journal = folder / "a.journal";
  write_text(journal,
             "coppice journal 1\n2 push from 0 0 1 to 0 1 1 radius 0.5 velocity 0 3 0\n"
             "3 push from 0 0 1 to 0 1 1 radius -1 velocity 0 3 0\n4 cut from 0 0 0 to 0 1 0 radius 0.5\n");
  const std::vector<const char*> words{"program", "--view",   "null",         "--frames",
                                       "9",       "--replay", journal.c_str()};
  Viewer viewer(static_cast<int>(words.size()), words.data(), "program");
  EXPECT_THROW(viewer.on_push({}), Error);
  int steps = 0;
  std::vector<std::string> pushes;
  viewer.on_push([&](const Stroke& s, const Vec3f& v) {
    pushes.push_back(fmt::format("{}: {} {} {} {}", steps, s.to.y(), s.to.z(), s.radius_m, v.y()));
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(viewer.run([&] { ++steps; }), 2);
  // The first that was refused, of two: the radius, and that there is no on_cut().
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("2 commands were refused, the first: a hand with a radius of -1 m; expected a positive one"));
  EXPECT_THAT(pushes, testing::ElementsAre("2: 1 1 0.5 3"));
}

TEST(ViewerProgram, WhatAStepThrowsIsOneLine) {
  Circle circle;
  circle.throws_at = 4;
  testing::internal::CaptureStderr();
  EXPECT_EQ(circle.run({"--view", "null", "--frames", "5"}), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("circle: error: the circle broke\n"));
  EXPECT_EQ(circle.steps, 4);
}

TEST(ViewerProgram, BadArgumentsAreOneLine) {
  struct Case {
    std::vector<const char*> words;
    const char* line;
  };
  for (const Case& c :
       {Case{{"--view", "screen"}, "--view"}, Case{{"--colour"}, "--colour"},
        Case{{"--frames", "-3"}, "--frames"}, Case{{"--view", "file"}, "needs --frames"},
        Case{{"--view", "null", "-o", "out"}, "-o is the folder of pictures; --view null makes none"},
        Case{{"--view", "null", "--overwrite"},
             "--overwrite is for --view file; --view null replaces nothing"},
        Case{{"--view", "null", "--replay", "/nowhere"}, "cannot read the journal /nowhere"}}) {
    SCOPED_TRACE(c.line);
    Circle circle;
    testing::internal::CaptureStderr();
    EXPECT_NE(circle.run(c.words), 0);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::StartsWith("circle: error: "));
    EXPECT_THAT(said, HasSubstr(c.line));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_EQ(circle.steps, 0);
  }
}

// A tree of the program's own, that grows from picture to picture.
TEST(ViewerProgram, ShowsFieldsOfItsTrees) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const IntrusivePtr<Device> device = Device::cpu(2);
  Tree tree(device);
  const Field<float> x = tree.root().pointer({8, 8, 8}).dense({8, 8, 8}).place<float>("x");
  Program program(device);
  int steps = 0;
  const std::vector<const char*> words{"tree", "--view", "file", "--frames", "2", "-o", out.c_str()};
  Viewer viewer(static_cast<int>(words.size()), words.data(), "tree");
  FieldLook look{.unit = "K", .placement = {.cell_m = 1.0f / 64}};
  look.style.opacity = {{0, 0}, {1, 0.5f}};
  viewer.field(
      "x", [&] { return x; }, look);
  viewer.domain({Vec3f::Zero(), Vec3f::Ones()});
  testing::internal::CaptureStderr();
  const int code = viewer.run([&] {
    std::vector<int> coords;
    std::vector<float> values;
    for (int i = 0; i < 16 * 16 * 16; ++i) {
      const int side = 24 * steps;
      coords.insert(coords.end(), {side + i / 256, 24 + i / 16 % 16, 24 + i % 16});
      values.push_back(1 + static_cast<float>(i % 16));
    }
    const IntrusivePtr<Buffer> c = wait_device_copy(*device, coords), v = wait_device_copy(*device, values);
    wait(program.launch(set_volume_cells_3, range(16 * 16 * 16), x, c->as<int>(), v->as<float>()));
    ++steps;
  });
  const std::string said = testing::internal::GetCapturedStderr();
  if (said.find("cannot draw") != std::string::npos) GTEST_SKIP() << "this machine has no OpenGL";
  ASSERT_EQ(code, 0) << said;
  // Pixels that are brighter than what an empty tree shows: none, then more and more.
  const auto bright = [&](int i) {
    const render::Image image = render::read_png(out + "/frame_000" + std::to_string(i) + ".png"),
                        empty = render::read_png(out + "/frame_0000.png");
    int n = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x_px = 0; x_px < image.width(); ++x_px) n += image.pixel(x_px, y) != empty.pixel(x_px, y);
    return n;
  };
  EXPECT_GT(bright(1), 2000);
  EXPECT_GT(bright(2), bright(1) * 3 / 2);
}

// Seen to fail: the process was.
TEST(ViewerProgram, AFieldOfNoTreeIsOneLine) {
  const std::vector<const char*> words{"none", "--view", "null", "--frames", "2"};
  Viewer viewer(static_cast<int>(words.size()), words.data(), "none");
  viewer.field("heat", [] { return Field<float>(); });
  testing::internal::CaptureStderr();
  EXPECT_EQ(viewer.run([] {}), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("field 'heat': it is of no tree"));
}

// A step that only launches is over when the device is done: nothing piles up, and its errors are the step's.
TEST(ViewerProgram, WaitsForTheDeviceBehindEachStep) {
  for (const bool has_field : {true, false}) {
    const IntrusivePtr<Device> device = Device::cpu(1);
    Tree tree(device);
    const Field<float> x = tree.root().dense({8}).place<float>("x");
    const std::vector<const char*> words{"slow", "--view", "null", "--frames", "8"};
    Viewer viewer(static_cast<int>(words.size()), words.data(), "slow");
    if (has_field)
      viewer.field("x", [&] { return x; });
    else
      viewer.device(device);
    int steps = 0;
    std::atomic<int> done = 0;
    testing::internal::CaptureStderr();
    const int code = viewer.run([&] {
      EXPECT_EQ(done, steps);
      ++steps;
      device->default_stream().enqueue("slow", [&](InStream&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (++done == 5) throw Error(ErrorCode::kOutOfMemory, "the fifth is too large");
      });
    });
    EXPECT_EQ(code, 1);
    EXPECT_EQ(steps, 5);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("slow: error: "));
  }
}

TEST(ViewerProgram, CategoriesHaveAColourEach) {
  const char* words[] = {"x"};
  Viewer viewer(1, words, "x");
  EXPECT_THROW(viewer.points("p", [](auto&) {}, {.categories = std::vector<std::string>(9)}), Error);
}

// The file has everything up to the moment at which the process is killed.
TEST(ViewerProgram, TheJournalIsWrittenWhileItRuns) {
  const TemporaryFolder folder;
  const std::string replay = folder / "in.journal", journal = folder / "out.journal";
  write_text(replay, "coppice journal 1\n2 set spin 2.5\n");
  const std::vector<const char*> words{"x",        "--view",       "null",      "--frames",     "5",
                                       "--replay", replay.c_str(), "--journal", journal.c_str()};
  Viewer viewer(static_cast<int>(words.size()), words.data(), "x");
  float spin = 0;
  viewer.slider("spin", spin, 0, 10);
  std::string seen;
  int steps = 0;
  EXPECT_EQ(viewer.run([&] {
    if (++steps == 4) seen = read_text(journal);
  }),
            0);
  EXPECT_EQ(seen, read_text(replay));
  EXPECT_EQ(read_text(journal), seen);
}

TEST(ViewerProgram, KeepsPicturesOfAnEarlierRun) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  std::filesystem::create_directories(out);
  write_text(out + "/frame_0000.png", "old");
  Circle circle;
  testing::internal::CaptureStderr();
  EXPECT_EQ(circle.run({"--view=file", "--frames=1", "-o", out.c_str()}), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("--overwrite replaces them"));
  EXPECT_EQ(read_text(out + "/frame_0000.png"), "old");
}

TEST(ViewerProgram, NothingIsGivenTwiceOrLate) {
  const char* words[] = {"x", "--view", "null", "--frames", "1"};
  Viewer viewer(5, words, "x");
  float value = 0;
  viewer.slider("a", value, 0, 1);
  EXPECT_THROW(viewer.slider("a", value, 0, 1), Error);
  EXPECT_THROW(viewer.points("p", {}), Error);
  EXPECT_THROW(viewer.field("f", {}), Error);
  EXPECT_THROW(viewer.reading("r", {}), Error);
  EXPECT_THROW(viewer.device({}), Error);
  EXPECT_THROW(viewer.run({}), Error);
  EXPECT_THROW(viewer.time_step(0), Error);
  EXPECT_THROW(viewer.domain({}), Error);
  EXPECT_THROW(viewer.points("p", [](auto&) {}, {.range = render::ScalarRange{1, 0}}), Error);
  EXPECT_EQ(viewer.run([] {}), 0);
  EXPECT_THROW(viewer.slider("b", value, 0, 1), Error);
  EXPECT_THROW(viewer.run([] {}), Error);
}

TEST(ViewerProgram, SlidersHaveTwoEnds) {
  const char* words[] = {"x"};
  Viewer viewer(1, words, "x");
  float value = 0;
  EXPECT_THROW(viewer.slider("a", value, 1.0f, 1.0f), Error);
  EXPECT_THROW(viewer.slider("a", value, 0.0f, INFINITY), Error);
}

// The camera sees all that is there when something is there first, and anew once that has become much
// larger.
TEST(ViewerProgram, SeesWhatIsThereWhateverItBeginsWith) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::vector<const char*> words{"grows", "--view", "file", "--frames", "3", "-o", out.c_str()};
  Viewer viewer(static_cast<int>(words.size()), words.data(), "grows");
  int steps = 0;
  // Nothing, then a drop, far from the middle, then a cloud around it.
  viewer.points("points",
                [&](std::vector<render::PackedPoint>& points) {
                  points.clear();
                  const float size = steps == 1 ? 1e-3f : 10;
                  for (int i = 0; steps > 0 && i < 512; ++i) {
                    const Vec3f at(static_cast<float>(i % 8), static_cast<float>(i / 8 % 8),
                                   static_cast<float>(i / 64));
                    points.push_back({Vec3f::Constant(100) + size / 8 * at, 1});
                  }
                },
                {.radius_m = 0.5f});
  testing::internal::CaptureStderr();
  const int code = viewer.run([&] { ++steps; });
  const std::string said = testing::internal::GetCapturedStderr();
  if (said.find("cannot draw") != std::string::npos) GTEST_SKIP() << "this machine has no OpenGL";
  ASSERT_EQ(code, 0) << said;
  // How much of the picture differs from the empty one's middle row's ends: particles
  // fill about a third, and not all.
  const auto share = [&](int i) {
    const render::Image image = render::read_png(out + "/frame_000" + std::to_string(i) + ".png"),
                        empty = render::read_png(out + "/frame_0000.png");
    int n = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) n += image.pixel(x, y) != empty.pixel(x, y);
    return static_cast<double>(n) / (image.width() * image.height());
  };
  for (const int frame : {1, 2, 3}) {
    EXPECT_GT(share(frame), 0.05) << frame;
    EXPECT_LT(share(frame), 0.9) << frame;
  }
}

TEST(ViewerProgram, AHandEmitsWhatTheProgramAdds) {
  const TemporaryFolder folder;
  const std::string journal = folder / "a.journal", again = folder / "b.journal";
  write_text(
      journal,
      "coppice journal 1\n2 emit particles at 0.5 1 0 radius 0.25 velocity 0 -2 0\n"
      "3 emit particles at 0 0 0 radius 0 velocity 0 0 0\n4 emit water at 0 0 0 radius 1 velocity 0 0 0\n");
  const std::vector<const char*> words{"program",  "--view",        "null",      "--frames",   "9",
                                       "--replay", journal.c_str(), "--journal", again.c_str()};
  Viewer viewer(static_cast<int>(words.size()), words.data(), "program");
  EXPECT_THROW(viewer.on_emit({}), Error);
  int steps = 0;
  std::vector<std::string> balls;
  viewer.on_emit([&](const Vec3f& center, float radius_m, const Vec3f& velocity) {
    balls.push_back(fmt::format("{}: {} {} {} {}", steps, center.x(), center.y(), radius_m, velocity.y()));
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(viewer.run([&] { ++steps; }), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("2 commands were refused, the first: a hand with a radius of 0 m"),
                             HasSubstr("emit: no material 'water'; expected particles")));
  EXPECT_THAT(balls, testing::ElementsAre("2: 0.5 1 0.25 -2"));
  EXPECT_EQ(read_text(again), "coppice journal 1\n2 emit particles at 0.5 1 0 radius 0.25 velocity 0 -2 0\n");
}

// A journal of a program that began with other values has them, so that a replay does not need the arguments.
TEST(ViewerProgram, ArgumentsSetSliders) {
  const TemporaryFolder folder;
  const std::string journal = folder / "a.journal";
  Circle circle;
  EXPECT_EQ(circle.run({"--view", "null", "--frames", "1", "--set", "spin=3", "--set", "spin=2.5",
                        "--journal", journal.c_str()}),
            0);
  EXPECT_EQ(circle.spin, 2.5f);
  EXPECT_EQ(read_text(journal), "coppice journal 1\n0 set spin 3\n0 set spin 2.5\n");
  Circle other;
  EXPECT_EQ(other.run({"--view", "null", "--frames", "1", "--replay", journal.c_str()}), 0);
  EXPECT_EQ(other.spin, 2.5f);
  for (const auto& [argument, line] :
       {std::pair("spin=99", "--set spin=99: spin = 99: expected a number from 0 to 10"),
        std::pair("spin=", "expected a number from 0 to 10"),
        std::pair("spin", "--set spin: expected NAME=VALUE"),
        std::pair("turn=1", "--set turn=1: no slider 'turn'; there are spin")}) {
    SCOPED_TRACE(argument);
    Circle refused;
    testing::internal::CaptureStderr();
    EXPECT_EQ(refused.run({"--view", "null", "--frames", "1", "--set", argument}), 2);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr(line));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_EQ(refused.spin, 1);
    EXPECT_EQ(refused.steps, 0);
  }
}

}  // namespace
}  // namespace coppice
