// Emitters become particles, with a warning or a refusal before anything is simulated.
#include <fmt/format.h>

#include "apps/mpm/emission.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice::mpm {
namespace {

constexpr const char* kBall =
    "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.2\nmaterial = \"snow\"\n";

scene::SceneConfig parse(const std::string& text) {
  return scene::parse_scene("grid.resolution = 16\n" + text, "a.toml");
}

size_t count_in(const EmittedParticles& all, uint32_t emitter) {
  return static_cast<size_t>(std::count(all.emitter.begin(), all.emitter.end(), emitter));
}

TEST(Emission, SaysNothingOfBodiesBesideEachOther) {
  const LogCapture log;
  emit_particles(
      parse(std::string(kBall) +
            "[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.85, 0.5]\nhalf_size = [0.1, 0.1, 0.1]\n"
            "material = \"water\"\n[[collider]]\nshape = \"sphere\"\ncenter = [0.5, 0.1, 0.5]\nradius = "
            "0.15\n"));
  EXPECT_TRUE(log.lines.empty());
}

// Seen to fail: the mass was double without a word.
TEST(Emission, CountsParticlesThatBeginInAnotherEmitter) {
  const LogCapture log;
  const EmittedParticles all = emit_particles(
      parse(std::string(kBall) +
            "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = "
            "\"water\"\n"));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].second,
            fmt::format("a.toml:7:1: {0} of emitter[1]'s {0} particles begin in emitter[0], too, where there "
                        "is more mass",
                        count_in(all, 1)));
}

TEST(Emission, CountsParticlesThatBeginInACollider) {
  for (const char* rotation : {"", "rotate_deg = [0, 0, 90]\n"}) {
    const LogCapture log;
    // The slab is the lower half of the space; turned, the left one.
    const EmittedParticles all = emit_particles(
        parse(std::string(kBall) + "[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.5, 0.5]\n" +
              "half_size = [2, 0.05, 2]\n" + rotation));
    const int axis = *rotation == '\0' ? 1 : 0;
    const auto inside =
        std::ranges::count_if(all.position, [&](const Vec3f& p) { return std::abs(p[axis] - 0.5f) < 0.05f; });
    ASSERT_EQ(log.lines.size(), 1u);
    EXPECT_EQ(
        log.lines[0].second,
        fmt::format("a.toml:2:1: {} of emitter[0]'s {} particles begin in collider[0], and may stay there",
                    inside, all.position.size()));
  }
}

TEST(Emission, LooksAtTwoDimensionsOnly) {
  const LogCapture log;
  emit_particles(
      parse("dim = 2\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5]\nradius = 0.2\nmaterial = "
            "\"sand\"\n[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.5]\nhalf_size = [0.1, 0.1]\n"));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].second.find("particles begin in collider[0]"), std::string::npos);
}

// Seen to fail: the machine's memory was full before anything was said.
TEST(Emission, RefusesWhatCannotFitBeforeItIsSampled) {
  scene::SceneConfig scene = parse(kBall);
  scene.output.png = false;
  expect_error(ErrorCode::kOutOfMemory,
               {"a.toml:2:1: the scene has about 1.1e+03 particles, which need about ",
                "; this machine has 9.8 KiB: "},
               [&] { emit_particles(scene, {.machine_bytes = 10000}); });
  expect_error(ErrorCode::kOutOfMemory, {"; the device has 9.8 KiB: "},
               [&] { emit_particles(scene, {.device_bytes = 10000, .is_shared = false}); });
  scene::SceneConfig fine = scene;
  fine.grid.resolution = 4096;
  fine.output.png = true;
  expect_error(
      ErrorCode::kOutOfMemory,
      {"about 1.8e+10 particles, which need about 7.8 TiB of memory; this machine has 64.0 GiB: take a "
       "coarser grid, fewer particles_per_cell, or smaller emitters"},
      [&] { emit_particles(fine, {.machine_bytes = uint64_t{64} << 30}); });
  // Seen to fail: pictures were left out, of which 2.9 GiB were taken.
  scene::SceneConfig large = scene;
  large.output.png = true;
  large.output.width = large.output.height = 8192;
  expect_error(
      ErrorCode::kOutOfMemory,
      {"about 1.1e+03 particles and pictures of 8192 x 8192 pixels, which need about 3.0 GiB of memory; "
       "this machine has 2.0 GiB: take smaller pictures, output.width and output.height"},
      [&] { emit_particles(large, {.machine_bytes = uint64_t{2} << 30}); });
  const LogCapture log;
  emit_particles(large, {.machine_bytes = uint64_t{8} << 30});
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_TRUE(log.lines[0].second.ends_with(", and 3.0 GiB for their frames")) << log.lines[0].second;
  large.output.png = false;
  emit_particles(large, {.machine_bytes = uint64_t{2} << 30});
  EXPECT_EQ(log.lines.size(), 1u);
}

TEST(Emission, SaysThatAnEmitterIsLargerThanTheDomain) {
  const scene::SceneConfig scene =
      parse(std::string(kBall) +
            "[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.5, 0.5]\nhalf_size = [1e5, 1e5, "
            "1e5]\nmaterial = \"water\"\n");
  expect_error(
      ErrorCode::kInvalidArgument,
      {"a.toml:7:1: the emitter reaches from (-1e+05, -1e+05, -1e+05) to (1e+05, 1e+05, 1e+05), beyond the "
       "domain, which is (0, 0, 0) to (1, 1, 1)"},
      [&] { emit_particles(scene, {.machine_bytes = uint64_t{64} << 30}); });
}

}  // namespace
}  // namespace coppice::mpm
