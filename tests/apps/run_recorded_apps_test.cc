// `coppice view --play`: an earlier run's frames behind the viewer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/run/recorded_run.h"
#include "apps/run/scene_simulation.h"
#include "core/error.h"
#include "tests/apps/run_outputs.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

using testing::HasSubstr;

class RecordedRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_text(file_, tiny_scene());
    const ProgramResult run =
        run_program({"run", file_, "-o", out_, "--threads", "1", "--deterministic", "--set",
                     "output.fields.pressure=true", "--set", "output.color=\"von_mises\""});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }

  scene::SceneConfig scene() const { return scene::load_scene(file_); }
  std::unique_ptr<RecordedRun> play() const {
    return std::make_unique<RecordedRun>(out_, scene(), std::vector<scene::SceneOverride>());
  }
  static std::string error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  static int64_t frame_of(viewer::Simulation& simulation) {
    viewer::Snapshot s;
    simulation.wait_pack(s);
    return s.playback.value().now;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "tiny.toml", out_ = folder_ / "out";
};

// Order apart, each frame shows what the simulation showed.
TEST_F(RecordedRuns, ShowWhatTheSimulationShowed) {
  SceneSimulation simulation(Device::cpu({.threads = 1, .deterministic = true}), scene(), {});
  const std::unique_ptr<RecordedRun> recorded = play();
  for (int frame = 0; frame <= 3; ++frame) {
    for (const char* color :
         {"\"material\"", "\"emitter\"", "\"speed\"", "\"volume_ratio\"", "\"pressure\"", "\"von_mises\""}) {
      SCOPED_TRACE(fmt::format("frame {}, {}", frame, color));
      viewer::Snapshot a, b;
      simulation.wait_set("output.color", color), recorded->wait_set("output.color", color);
      simulation.wait_pack(a), recorded->wait_pack(b);
      const auto sorted = [](const viewer::Snapshot& s) {
        std::vector<std::array<float, 4>> all;
        for (const render::PackedPoint& p : s.points.at(0).points)
          all.push_back({p.position.x(), p.position.y(), p.position.z(), p.value});
        std::ranges::sort(all);
        return all;
      };
      const auto points = sorted(a), played = sorted(b);
      ASSERT_EQ(points.size(), played.size());
      for (size_t i = 0; i < points.size(); ++i)
        for (int k = 0; k < 4; ++k)
          ASSERT_NEAR(points[i][k], played[i][k], 1e-5f * std::max(1.0f, points[i][k]));
      EXPECT_EQ(a.points[0].attribute, b.points[0].attribute);
      EXPECT_EQ(a.points[0].looks, b.points[0].looks);
      EXPECT_EQ(a.points[0].radius_m, b.points[0].radius_m);
      EXPECT_EQ(a.points[0].categories, b.points[0].categories);
      EXPECT_NEAR(simulation.time_s(), recorded->time_s(), 1e-12);
    }
    while (frame < 3 && !simulation.wait_advance(32)) {
    }
    recorded->wait_advance(32);
  }
}

// Files have the stress where the run was asked for it, or its colour shows it.
TEST_F(RecordedRuns, RefuseColoursThatFilesDoNotHave) {
  const std::string bare = folder_ / "bare";
  const ProgramResult run =
      run_program({"run", file_, "-o", bare, "--frames", "1", "--set", "output.png=false"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  RecordedRun played(bare, scene(), {});
  const auto set = [&] { played.wait_set("output.color", "\"von_mises\""); };
  EXPECT_THAT(error_of(set),
              HasSubstr("particles_0000.ply has no 'von_mises', which the colour shows; run the "
                        "scene with output.fields.von_mises = true"));
  viewer::Snapshot s;
  played.wait_pack(s);
  EXPECT_EQ(s.points.at(0).attribute, "material") << "nothing has changed";
  scene::SceneConfig asked = scene();
  asked.output.color = scene::ColorBy::kPressure;
  EXPECT_THAT(error_of([&] { RecordedRun(bare, asked, {}); }), HasSubstr("has no 'pressure'"));
}

// Seen to fail: particles of emitter 256 were those of emitter 0, and jelly.
TEST_F(RecordedRuns, TellAnyNumberOfEmittersApart) {
  constexpr int kEmitters = 300;
  std::string text =
      "dim = 2\ngrid.resolution = 64\ntime.frames = 1\ntime.frame_dt_s = 1e-4\noutput.png = false\n";
  for (int e = 0; e < kEmitters; ++e)
    text += fmt::format(
        "[[emitter]]\nshape = \"box\"\ncenter = [{:.3f}, {:.3f}]\nhalf_size = [0.01, 0.01]\nmaterial = "
        "\"{}\"\n",
        0.08 + 0.028 * (e % 30), 0.2 + 0.06 * (e / 30), e == 0 ? "jelly" : "sand");
  write_text(file_, text);
  const ProgramResult run = run_program({"run", file_, "-o", out_, "--threads", "1", "--overwrite"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto values = [](viewer::Simulation& simulation, const std::string& color) {
    viewer::Snapshot s;
    simulation.wait_set("output.color", color);
    simulation.wait_pack(s);
    std::vector<float> all;
    for (const render::PackedPoint& p : s.points.at(0).points) all.push_back(p.value);
    return all;
  };
  SceneSimulation simulation(Device::cpu(1), scene(), {});
  const std::unique_ptr<RecordedRun> recorded = play();
  for (viewer::Simulation* shown :
       {static_cast<viewer::Simulation*>(&simulation), static_cast<viewer::Simulation*>(recorded.get())}) {
    const std::vector<float> emitters = values(*shown, "\"emitter\""),
                             materials = values(*shown, "\"material\"");
    EXPECT_EQ(std::set<float>(emitters.begin(), emitters.end()).size(), static_cast<size_t>(kEmitters));
    ASSERT_EQ(materials.size(), emitters.size());
    for (size_t i = 0; i < emitters.size(); ++i)
      ASSERT_EQ(materials[i] == static_cast<float>(scene::MaterialKind::kJelly), emitters[i] == 0)
          << emitters[i];
  }
}

TEST_F(RecordedRuns, BeginAnewBehindTheLastFrameAndGoAnywhere) {
  const std::unique_ptr<RecordedRun> recorded = play();
  for (const int64_t frame : {0, 1, 2, 3, 0, 1}) {
    EXPECT_EQ(frame_of(*recorded), frame);
    EXPECT_TRUE(recorded->wait_advance(32));
  }
  EXPECT_EQ(recorded->steps(), 6u);
  recorded->wait_set("frame", "3");
  EXPECT_EQ(frame_of(*recorded), 3);
  EXPECT_NEAR(recorded->time_s(), 0.03, 1e-12);
  recorded->wait_reset();
  EXPECT_EQ(frame_of(*recorded), 0);
  EXPECT_EQ(recorded->steps(), 0u);
  for (const char* wrong : {"4", "-1", "one", "1.5", "", "99999999999999999999"}) {
    EXPECT_THAT(error_of([&] { recorded->wait_set("frame", wrong); }),
                HasSubstr("must be a frame from 0 to 3"))
        << wrong;
    EXPECT_EQ(frame_of(*recorded), 0);
  }
  EXPECT_THAT(error_of([&] { recorded->wait_set("gravity", "[0.0, 0.0, 0.0]"); }),
              HasSubstr("computed earlier"));
}

TEST_F(RecordedRuns, PassOverFramesThatAreNotThere) {
  std::filesystem::remove(particles_ply_path(out_, 1));
  write_text(out_ + "/particles_2.ply", "");  // not as a run names them
  write_text(out_ + "/particles_000x.ply", "");
  const std::unique_ptr<RecordedRun> recorded = play();
  recorded->wait_advance(1);
  EXPECT_EQ(frame_of(*recorded), 2);
  recorded->wait_set("frame", "1");  // the next one
  EXPECT_EQ(frame_of(*recorded), 2);
}

TEST_F(RecordedRuns, StayWhereTheyAreWhenAFrameCannotBeRead) {
  const std::unique_ptr<RecordedRun> recorded = play();
  std::filesystem::resize_file(particles_ply_path(out_, 1), 1000);
  EXPECT_THAT(error_of([&] { recorded->wait_advance(1); }), HasSubstr("particles_0001.ply"));
  EXPECT_EQ(frame_of(*recorded), 0);
  recorded->wait_set("frame", "2");
  EXPECT_EQ(frame_of(*recorded), 2);
}

TEST_F(RecordedRuns, RefuseWhatIsNoneOfTheScene) {
  const std::string two = folder_ / "two.toml", theirs = folder_ / "theirs";
  write_text(two, tiny_scene("",
                             "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.8, 0.5]\nradius = 0.1\n"
                             "material = \"water\"\n"));
  ASSERT_EQ(run_program({"run", two, "-o", theirs, "--frames", "1"}).exit_code, 0);
  EXPECT_THAT(
      error_of([&] { RecordedRun(theirs, scene(), {}); }),
      HasSubstr("another scene: 3-D snow, water on a grid of 0.0625 m, and not 3-D snow on a grid of"));
  // The scene has one material: sand would look like sand, whatever it was.
  const std::string sand = folder_ / "sand.toml";
  write_text(
      sand, tiny_scene("shape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.12\nmaterial = \"sand\"\n"));
  EXPECT_THAT(error_of([&] { RecordedRun(out_, scene::load_scene(sand), {}); }),
              HasSubstr("another scene: 3-D snow"));
  // On another grid particles have another size.
  const std::vector<scene::SceneOverride> finer{scene::SceneOverride::set("grid.resolution=20")};
  EXPECT_THAT(error_of([&] { RecordedRun(out_, scene::load_scene(file_, finer), finer); }),
              HasSubstr("and not 3-D snow on a grid of 0.05 m; name the scene that was run, with its --set"));
  EXPECT_THAT(error_of([&] { RecordedRun(folder_ / "nowhere", scene(), {}); }), HasSubstr("nowhere"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(error_of([&] { RecordedRun(folder_ / "empty", scene(), {}); }), HasSubstr("no particles"));
}

TEST_F(RecordedRuns, KnowTheirLargestSpeed) {
  const std::unique_ptr<RecordedRun> recorded = play();
  recorded->wait_set("frame", "3");
  EXPECT_NEAR(recorded->max_speed_m_s(), 9.81 * 0.03, 0.02);  // it falls
}

TEST_F(RecordedRuns, ArePlayedByTheProgram) {
  const ProgramResult shown = run_program({"view", file_, "--play", out_, "--view", "null"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const std::string pictures = folder_ / "pictures";
  const ProgramResult drawn = run_program({"view", file_, "--play", out_, "--view", "file", "-o", pictures});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(count_names(pictures, ".png"), 4);
  // The same folder would lose what is played.
  const ProgramResult same =
      run_program({"view", file_, "--play", out_, "--view", "file", "-o", out_, "--overwrite"});
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_EQ(same.err_lines().size(), 1u) << same.err;
  EXPECT_EQ(count_names(out_, ".ply"), 4);
  const ProgramResult none = run_program({"view", file_, "--play", folder_ / "nowhere", "--view", "null"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err_lines().size(), 1u) << none.err;
}

// A scene with keyframes is drawn from where they say, by both commands.
TEST_F(RecordedRuns, AreSeenFromTheCamerasKeyframes) {
  const std::string path = folder_ / "path.toml", ahead = folder_ / "ahead";
  write_text(path, tiny_scene("",
                              "[output.camera]\ntarget = [0.5, 0.5, 0.5]\n"
                              "[[output.camera.keyframe]]\ntime = 0.0\nposition = [0.5, 0.5, 2.0]\n"
                              "[[output.camera.keyframe]]\ntime = 0.03\nposition = [0.5, 0.5, 0.9]\n"));
  const ProgramResult drawn = run_program({"view", path, "--play", out_, "--view", "file", "-o", ahead});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const auto bright = [&](int frame) {  // snow is the brightest there is
    const render::Image image = render::read_png(frame_png_path(ahead, frame));
    int count = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) count += image.pixel(x, y)[1] > 200;
    return count;
  };
  EXPECT_GT(bright(3), 4 * bright(0));
}

// Seen to fail: pictures were numbered without the frames that are missing.
TEST_F(RecordedRuns, PicturesHaveTheNumbersOfTheirFrames) {
  std::filesystem::remove(particles_ply_path(out_, 1));
  const std::string pictures = folder_ / "pictures";
  const ProgramResult drawn = run_program(
      {"view", file_, "--play", out_, "--view", "file", "-o", pictures, "--set", "output.mp4=true"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  for (const int frame : {0, 1, 2, 3})
    EXPECT_EQ(std::filesystem::exists(frame_png_path(pictures, frame)), frame != 1) << frame;
  EXPECT_THAT(drawn.err, HasSubstr("3 pictures are in " + pictures));
  EXPECT_THAT(drawn.err, HasSubstr("of the frames 0 to 3 some are missing"));
}

// --frames names the last one, as in a run. Seen to fail: a window played all of them.
TEST_F(RecordedRuns, EndWithTheFrameThatIsAskedFor) {
  std::filesystem::remove(particles_ply_path(out_, 1));
  RecordedRun recorded(out_, scene(), {}, 2);
  for (const int64_t frame : {0, 2, 0}) {
    EXPECT_EQ(frame_of(recorded), frame);
    recorded.wait_advance(1);
  }
  viewer::Snapshot s;
  recorded.wait_pack(s);
  EXPECT_EQ(s.playback->last, 2);
  const std::string pictures = folder_ / "pictures";
  const auto draw = [&](const char* frames) {
    return run_program(
        {"view", file_, "--play", out_, "--view", "file", "-o", pictures, "--overwrite", "--frames", frames});
  };
  const ProgramResult one = draw("1");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(count_names(pictures, ".png"), 1);
  EXPECT_THAT(one.err, HasSubstr("1 picture is in"));
  ASSERT_EQ(draw("2").exit_code, 0);
  EXPECT_EQ(count_names(pictures, ".png"), 2);
  ASSERT_EQ(draw("99").exit_code, 0);
  EXPECT_EQ(count_names(pictures, ".png"), 3);
  std::filesystem::remove(particles_ply_path(out_, 0));
  expect_refused(draw("1"), 2, {"the first frame in", "is 2; --frames 1 leaves none"});
}

}  // namespace
}  // namespace coppice
