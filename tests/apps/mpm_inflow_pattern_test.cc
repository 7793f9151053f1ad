// The samples of an inflow: how many, that they come once, and that they stay evenly spaced.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "apps/geometry/shapes_mesh.h"
#include "apps/mpm/emission.h"
#include "apps/mpm/inflow_pattern.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice::mpm {
namespace {

scene::SceneConfig parse(const std::string& shape, const std::string& velocity, int dim = 3) {
  return scene::parse_scene(
      fmt::format("dim = {}\ngrid.resolution = 16\n[[emitter]]\n{}velocity = {}\nmaterial = \"water\"\n"
                  "[emitter.inflow]\n",
                  dim, shape, velocity),
      "a.toml");
}

const std::string kBox = "shape = \"box\"\ncenter = [0.5, 0.5, 0.5]\nhalf_size = [0.1, 0.15, 0.2]\n",
                  kTurned = kBox + "rotate_deg = [20, 30, 40]\n",
                  kBall = "shape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.2\n",
                  kCylinder =
                      "shape = \"cylinder\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.2\nhalf_height = "
                      "0.1\nrotate_deg = [0, 0, 30]\n";

double sample_volume(const scene::SceneConfig& scene) {
  return std::pow(scene.dx_m(), scene.dim) / scene.emitters[0].particles_per_cell;
}

TEST(InflowPattern, BringsTheCrossSectionTimesTheSpeed) {
  for (const std::string& shape : {kBox, kTurned, kBall, kCylinder}) {
    for (const char* velocity : {"[2.0, 0.0, 0.0]", "[0.0, -1.0, 0.0]", "[1.0, -2.0, 0.7]"}) {
      SCOPED_TRACE(shape + velocity);
      const scene::SceneConfig scene = parse(shape, velocity);
      const InflowPattern pattern(scene, 0);
      const double seconds = 3, volume = pattern.volume_per_s() * seconds;
      const double came =
          static_cast<double>(pattern.enter(0, seconds, seconds).size()) * sample_volume(scene);
      // A box along an axis has a whole number of cells across; a layer of them is cut at each end.
      const bool is_exact = shape == kBox && velocity[1] != '1';
      EXPECT_NEAR(came, volume, (is_exact ? 2e-4 : 0.01) * volume);
    }
  }
  EXPECT_NEAR(InflowPattern(parse(kBox, "[2.0, 0.0, 0.0]"), 0).volume_per_s(), 2 * 0.3 * 0.4, 1e-12);
  EXPECT_NEAR(InflowPattern(parse(kBall, "[0.0, 0.0, 3.0]"), 0).volume_per_s(), 3 * M_PI * 0.04, 1e-12);
  const std::string disc = "shape = \"sphere\"\ncenter = [0.5, 0.5]\nradius = 0.2\n";
  EXPECT_NEAR(InflowPattern(parse(disc, "[0.0, 3.0]", 2), 0).volume_per_s(), 1.2, 1e-12);
}

// Whatever the windows, the same samples come, once each.
TEST(InflowPattern, WindowsBringWhatOneWindowBrings) {
  for (const std::string& shape : {kBox, kTurned, kBall, kCylinder}) {
    SCOPED_TRACE(shape);
    const InflowPattern pattern(parse(shape, "[1.0, -2.0, 0.7]"), 0);
    const double end_s = 0.3;
    std::vector<Vec3f> whole = pattern.enter(-1, end_s, end_s), parts = pattern.enter(-1, 0, end_s);
    for (const auto& [from, to] : {std::pair(0.0, 0.01), {0.01, 0.011}, {0.011, 0.17}, {0.17, end_s}}) {
      const std::vector<Vec3f> some = pattern.enter(from, to, end_s);
      parts.insert(parts.end(), some.begin(), some.end());
    }
    const auto order = [](const Vec3f& a, const Vec3f& b) {
      return std::lexicographical_compare(a.data(), a.data() + 3, b.data(), b.data() + 3);
    };
    std::ranges::sort(whole, order), std::ranges::sort(parts, order);
    EXPECT_EQ(whole, parts);
  }
}

// Each layer of a stream has as many samples, and so has each place across it; windows have no seam.
TEST(InflowPattern, StreamsWithoutClumpsAndGaps) {
  const scene::SceneConfig scene = parse(kBox, "[1.0, 0.0, 0.0]");
  const InflowPattern pattern(scene, 0);
  const double end_s = 50;
  std::vector<Vec3f> stream = pattern.enter(49, 49.25, end_s);
  for (double s = 49.25; s < 50; s += 0.125) {
    const std::vector<Vec3f> some = pattern.enter(s, s + 0.125, end_s);
    stream.insert(stream.end(), some.begin(), some.end());
  }
  // 0.3 m are 5 cells across, 0.4 m are 6; a cell has 8 samples.
  const double long_m = std::pow(scene.dx_m(), 3) / (0.3 / 5) / (0.4 / 6);
  std::map<std::array<int, 3>, int> cells;
  for (const Vec3f& p : stream) {
    const Vec3d at = p.cast<double>() - Vec3d(0.6 + end_s, 0.35, 0.3);
    ++cells[{static_cast<int>(std::floor(at.x() / long_m)), static_cast<int>(std::floor(at.y() / 0.06)),
             static_cast<int>(std::floor(at.z() / (0.4 / 6)))}];
  }
  int last = std::numeric_limits<int>::min(), first = std::numeric_limits<int>::max();
  for (const auto& [cell, count] : cells) first = std::min(first, cell[0]), last = std::max(last, cell[0]);
  int layers = 0;
  for (int layer = first + 1; layer < last; ++layer, ++layers)
    for (int y = 0; y < 5; ++y)
      for (int z = 0; z < 6; ++z) EXPECT_EQ((cells[{layer, y, z}]), 8) << layer << ", " << y << ", " << z;
  EXPECT_GT(layers, 12);
}

// The body that is there at the start is the pattern's part in the shape.
TEST(InflowPattern, BeginsWithAFullShape) {
  const scene::SceneConfig scene = parse(kBall, "[1.0, 0.0, 0.0]");
  const EmittedParticles at_start = emit_particles(scene);
  EXPECT_EQ(at_start.position, InflowPattern(scene, 0).enter(-1, 0, 0));
  const double volume = 4.0 / 3 * M_PI * 0.008;
  EXPECT_NEAR(static_cast<double>(at_start.position.size()) * sample_volume(scene), volume, 0.03 * volume);
  EXPECT_EQ(at_start.volume_factor[0], 1) << "what follows has the same mass";
  scene::SceneConfig late = scene;
  late.emitters[0].inflow->from_s = 0.1;
  EXPECT_TRUE(emit_particles(late).position.empty());
}

scene::SceneConfig parse_mesh(const std::string& file, const std::string& velocity) {
  return parse(fmt::format("shape = \"mesh\"\nmesh = \"{}\"\n", file), velocity);
}

// A box as a mesh streams as the box does.
TEST(InflowPattern, OfAMeshHasTheSamplesOfTheSameShape) {
  const TemporaryFolder folder;
  write_obj(folder / "box.obj", box_mesh({0.4f, 0.35f, 0.3f}, {0.6f, 0.65f, 0.7f}));
  const char* const oblique = "[1.0, -2.0, 0.7]";  // lattices along an axis are fitted to boxes
  const InflowPattern box(parse(kBox, oblique), 0), mesh(parse_mesh(folder / "box.obj", oblique), 0);
  for (const auto& [from, to] : {std::pair(-1.0, 0.0), {0.0, 0.05}, {0.05, 0.3}, {3.0, 3.05}}) {
    const std::vector<Vec3f> expected = box.enter(from, to, to), is = mesh.enter(from, to, to);
    EXPECT_GT(expected.size(), 100u);
    // The faces of the mesh are at places that floats have: a sample beside one may be on its other side.
    EXPECT_NEAR(static_cast<double>(is.size()), static_cast<double>(expected.size()), 1);
    if (is.size() != expected.size()) continue;
    EXPECT_EQ(is, expected);
  }
  EXPECT_NEAR(mesh.volume_per_s(), box.volume_per_s(), 0.01 * box.volume_per_s());
}

// Two slabs, one before the other. Samples that have left the lower one do not come again.
TEST(InflowPattern, OfAMeshWithAHollowBringsEachSampleOnce) {
  const TemporaryFolder folder;
  TriangleMesh slabs = box_mesh({0.3f, 0.3f, 0.3f}, {0.7f, 0.4f, 0.7f});
  const TriangleMesh upper = box_mesh({0.3f, 0.6f, 0.3f}, {0.7f, 0.7f, 0.7f});
  const auto first = static_cast<int32_t>(slabs.vertices.size());
  slabs.vertices.insert(slabs.vertices.end(), upper.vertices.begin(), upper.vertices.end());
  for (const Vec3i& t : upper.triangles) slabs.triangles.emplace_back(t + Vec3i::Constant(first));
  write_obj(folder / "slabs.obj", slabs);
  const scene::SceneConfig scene = parse_mesh(folder / "slabs.obj", "[0.0, 1.0, 0.0]");
  const InflowPattern pattern(scene, 0);
  // Both are full at the start; the upper one gets what leaves the lower one, which alone brings more.
  const double n_start = static_cast<double>(pattern.enter(-1, 0, 0).size()) * sample_volume(scene);
  EXPECT_NEAR(n_start, 2 * 0.4 * 0.4 * 0.1, 0.03 * n_start);
  EXPECT_NEAR(pattern.volume_per_s(), 0.16, 0.002);
  double came = 0;
  for (int i = 0; i < 20; ++i)
    came += static_cast<double>(pattern.enter(0.05 * i, 0.05 * (i + 1), 1).size()) * sample_volume(scene);
  // 0.2 m lie between them: what fills that space comes into the upper one, which it enters first.
  EXPECT_NEAR(came, 0.16 * (1 + 0.2), 0.01);
  EXPECT_TRUE(pattern.contains({0.5f, 0.35f, 0.5f}));
  EXPECT_FALSE(pattern.contains({0.5f, 0.5f, 0.5f}));
}

TEST(InflowPattern, RefusesAnOpenMeshAtItsPlaceInTheScene) {
  const TemporaryFolder folder;
  TriangleMesh open = box_mesh({0.3f, 0.3f, 0.3f}, {0.7f, 0.4f, 0.7f});
  open.triangles.pop_back();
  write_obj(folder / "open.obj", open);
  const scene::SceneConfig scene = parse_mesh(folder / "open.obj", "[0.0, 1.0, 0.0]");
  expect_error(ErrorCode::kInvalidArgument,
               {"a.toml:5:", "an inflow needs a closed mesh; ", "open.obj has 3 open edges"},
               [&] { InflowPattern(scene, 0); });
}

TEST(Inflow, RefusesWhatCannotStream) {
  const std::string head = "grid.resolution = 16\n[[emitter]]\nmaterial = \"water\"\n";
  const auto error = [&](const std::string& text, const std::string& line) {
    expect_error(ErrorCode::kUsage, {line}, [&] { scene::parse_scene(head + text, "a.toml"); });
  };
  error(kBall + "[emitter.inflow]\n", "'emitter[0].inflow' needs a velocity other than zero");
  error(kBall + "velocity = [1, 0, 0]\n[emitter.inflow]\nfrom_s = 2.0\nuntil_s = 1.0\n",
        "'emitter[0].inflow.until_s' must be later than from_s, which is 2 s; it is 1 s");
  error(kBall + "[[outflow]]\ncenter = [0.5, 0.5, 0.5]\nhalf_size = [0.2, 0.03, 0.2]\n",
        "'outflow[0]' must be two cells thick, 0.125 m; along y it is 0.06 m");
  error(kBall + "[[outflow]]\ncenter = [0.5, 1.5, 0.5]\nhalf_size = [0.2, 0.3, 0.2]\n",
        "'outflow[0]' lies wholly outside the domain, which spans 0 to 1 m along y");
}

// Particles that will come count before they are there, unless something takes them out again.
TEST(Inflow, CountsInTheEstimateOfMemory) {
  const std::string text = "grid.resolution = 64\ntime.frames = 1000\noutput.png = false\n[[emitter]]\n" +
                           kBox + "velocity = [1, 0, 0]\nmaterial = \"water\"\n[emitter.inflow]\n";
  const scene::SceneConfig scene = scene::parse_scene(text, "a.toml");
  EXPECT_NEAR(expected_inflow(scene), 0.3 * 0.4 * 1000 / 24.0 * 8 * 64 * 64 * 64, 1e3);
  expect_error(ErrorCode::kOutOfMemory, {"the scene has about 1.1e+07 particles"},
               [&] { emit_particles(scene, {.machine_bytes = 1 << 30}); });
  EXPECT_GT(emit_particles(scene::parse_scene(text + "[[outflow]]\ncenter = [0.9, 0.5, 0.5]\nhalf_size = "
                                                     "[0.1, 1.0, 1.0]\n",
                                              "a.toml"),
                           {.machine_bytes = 1 << 30})
                .position.size(),
            1000u);
}

}  // namespace
}  // namespace coppice::mpm
