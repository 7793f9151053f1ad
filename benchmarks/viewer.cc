// Measures what the viewer's pictures and packing take: points and volumes drawn by OpenGL, wherever it
// runs, and the share of a simulation's time that packing for them takes.
//
// A "moving" or "draft" row is one call after the camera turned by a degree, with a limit as in the window; a
// "complete" row is the time from the last movement until the picture is complete, in calls of 100 ms as the
// window makes at rest.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "apps/cli/assets.h"
#include "apps/render/brick_atlas.h"
#include "apps/render/brick_pack.h"
#include "apps/render/gl_context.h"
#include "apps/render/offscreen_target.h"
#include "apps/render/point_renderer.h"
#include "apps/render/volume_renderer.h"
#include "apps/run/scene_simulation.h"
#include "apps/viewer/quiet_backends.h"
#include "apps/viewer/run_viewer.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/measure.h"
#include "core/error.h"
#include "sparse/program.h"
#include "viewer.kernels.h"

namespace coppice::bench {
namespace {

using render::PackedPoint;

constexpr double kRestMs = 100;  // of a call at rest

// The picture that all rows draw into.
class Canvas {
 public:
  Canvas(const render::GlFunctions& gl, int width, int height)
      : gl_(gl), target_(gl, width, height, true), width_(width), height_(height) {}

  void clear() {
    const float color[4] = {0.1f, 0.1f, 0.12f, 1}, far = 1;
    gl_.BindFramebuffer(GL_FRAMEBUFFER, target_.framebuffer());
    gl_.DepthMask(GL_TRUE);
    gl_.ClearBufferfv(GL_COLOR, 0, color);
    gl_.ClearBufferfv(GL_DEPTH, 0, &far);
  }
  // Milliseconds of drawing by `draw` until OpenGL is done, on a cleared picture.
  template <class Draw>
  double ms_of(const Draw& draw) {
    clear();
    gl_.Finish();
    const Clock::time_point start = Clock::now();
    draw();
    gl_.Finish();
    return 1e3 * seconds_since(start);
  }
  GLuint framebuffer() const { return target_.framebuffer(); }
  int width() const { return width_; }
  int height() const { return height_; }
  // Returns what writing a picture's colour and depth once takes, ms.
  double floor_ms() const {
    return 1e3 * 8.0 * width_ * height_ / copy_bytes_per_s(1, static_cast<size_t>(8 * width_ * height_));
  }

 private:
  const render::GlFunctions& gl_;
  render::OffscreenTarget target_;
  int width_, height_;
};

// Seen from `distance` away under an angle that turns by a degree per step.
render::Camera camera_at(int step, const Vec3f& middle, float distance) {
  const float a = 0.6f + static_cast<float>(step * std::numbers::pi / 180);
  render::Camera camera;
  camera.look_at = middle;
  camera.position = middle + distance * Vec3f(0.85f * std::cos(a), 0.5f, 0.85f * std::sin(a)).normalized();
  camera.fov_deg = 35;
  return camera;
}

// A ball of about n particles on a lattice, in the order of blocks of 4^3 cells with 8 particles each, with a
// value like a speed. Its diameter is 1.
std::vector<PackedPoint> ball_of(size_t n) {
  const auto side =
      static_cast<int>(std::lround(std::cbrt(static_cast<double>(n) * 6 / std::numbers::pi) / 8)) * 8;
  const float spacing = 1.0f / static_cast<float>(side);
  std::vector<PackedPoint> points;
  points.reserve(n + n / 8);
  for (int block = 0; block < side * side * side / 512; ++block) {
    const int blocks = side / 8, bx = block / (blocks * blocks), by = block / blocks % blocks,
              bz = block % blocks;
    for (int i = 0; i < 512; ++i) {
      const Vec3f p = spacing * Vec3f(static_cast<float>(8 * bx + i / 64) + 0.5f,
                                      static_cast<float>(8 * by + i / 8 % 8) + 0.5f,
                                      static_cast<float>(8 * bz + i % 8) + 0.5f);
      const Vec3f d = p - Vec3f::Constant(0.5f);
      if (d.squaredNorm() < 0.25f) points.push_back({p, std::sin(9 * d.x()) * std::cos(7 * d.y()) + d.z()});
    }
  }
  return points;
}

struct Case {
  std::string name, detail;
  Target moving, complete;
};

void add(Report& report, const Canvas& canvas, const std::string& name, double ms, const Target& target,
         const std::string& detail) {
  Row row;
  row.name = "viewer/" + name, row.unit = "ms", row.ours = ms, row.target = target;
  row.floor = canvas.floor_ms(), row.detail = detail;
  report.add(row);
}

void measure_points(Report& report, const render::GlFunctions& gl, Canvas& canvas, size_t n, const Case& c,
                    double limit_ms) {
  report.begin("viewer, " + c.name);
  const std::vector<PackedPoint> points = ball_of(n);
  render::PointLayer layer;
  layer.points = points;
  layer.radius_m = 0.5f * std::cbrt(0.5236f / static_cast<float>(points.size()));
  render::PointRenderer renderer(gl);
  renderer.set_points(layer);
  const auto draw = [&](int step, double most_ms) {
    const render::View view(camera_at(step, Vec3f::Constant(0.5f), 2.0f), {0.5f, 4.0f}, canvas.width(),
                            canvas.height());
    return canvas.ms_of([&] { renderer.draw(view, canvas.framebuffer(), most_ms); });
  };
  std::vector<double> moving, complete;
  const int rounds = report.options().quick ? 3 : 7;
  int step = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 6; ++i, ++step) {
      const double ms = draw(step, limit_ms);
      if (i > 2) moving.push_back(ms);  // the first ones learn what drawing costs
    }
    double ms = 0;
    const render::View view(camera_at(step, Vec3f::Constant(0.5f), 2.0f), {0.5f, 4.0f}, canvas.width(),
                            canvas.height());
    do {
      ms += canvas.ms_of([&] { renderer.draw(view, canvas.framebuffer(), ms == 0 ? limit_ms : kRestMs); });
    } while (!renderer.is_complete());
    complete.push_back(ms), ++step;
  }
  add(report, canvas, c.name + "_moving", median(moving), c.moving,
      fmt::format("{} particles, {}x{}, limit {:.0f} ms{}", points.size(), canvas.width(), canvas.height(),
                  limit_ms, c.detail));
  add(report, canvas, c.name + "_complete", median(complete), c.complete,
      "from the last movement, calls of 100 ms");
}

void measure_volume(Report& report, const render::GlFunctions& gl, Canvas& canvas) {
  const bool tiny = report.options().tiny;
  const int blocks = tiny ? 8 : 64;
  const float centre = 4.0f * static_cast<float>(blocks), radius = centre * 0.6f,
              half_width = tiny ? 2.0f : 5.0f;
  report.begin(fmt::format("viewer, a shell in {}^3 cells", 8 * blocks));
  const IntrusivePtr<Device> device = Device::cpu();
  Program program(device);
  Tree tree(device, {.name = "shell"});
  const Node leaf = tree.root().pointer({blocks, blocks, blocks}).dense({8, 8, 8});
  const Field<float> field = leaf.place<float>("shell");
  std::vector<std::array<int32_t, 3>> cells;
  for (int i = 0; i < blocks * blocks * blocks; ++i) {
    const std::array<int32_t, 3> c{8 * (i / (blocks * blocks)), 8 * (i / blocks % blocks), 8 * (i % blocks)};
    const Vec3f d = Vec3f(static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2])) +
                    Vec3f::Constant(4 - centre);
    if (std::fabs(d.norm() - radius) < 0.07f * radius + 8) cells.push_back(c);
  }
  leaf.activate(cells);
  program.launch(set_bench_shell, over(leaf), field, centre, radius, half_width);
  program.wait();
  render::BrickPacker packer(device);
  render::BrickVolume volume;
  const auto timed = [&](const auto& work) {
    std::vector<double> ms;
    for (int i = 0; i < (report.options().quick ? 3 : 9); ++i) {
      gl.Finish();
      const Clock::time_point start = Clock::now();
      work();
      gl.Finish();
      if (i > 0) ms.push_back(1e3 * seconds_since(start));
    }
    return median(ms);
  };
  const double pack_ms = timed([&] { packer.wait_pack(field, render::BrickFormat::kHalf, volume); });
  const double anew_ms = timed([&] { render::BrickAtlas(gl).update(volume); });
  const std::string size = fmt::format("{} leaves of 8^3 active, {} bricks", cells.size(), volume.size());
  Row row;
  row.name = "viewer/volume_pack", row.unit = "ms", row.ours = pack_ms, row.detail = size;
  row.floor = 1e3 * static_cast<double>(4 * 512 * cells.size() + volume.values.size()) /
              copy_bytes_per_s(1, kBeyondCaches);
  report.add(row);
  row.name = "viewer/volume_upload", row.ours = anew_ms, row.detail = "the atlas made anew";
  row.floor = 2e3 * static_cast<double>(volume.values.size()) / copy_bytes_per_s(1, kBeyondCaches);
  report.add(row);

  render::BrickAtlas atlas(gl);
  atlas.update(volume);
  struct Mode {
    render::VolumeMode mode;
    const char* name;
    double draft_ms, complete_ms;
  };
  for (const Mode& m : {Mode{render::VolumeMode::kFog, "fog", 50, 700},
                        Mode{render::VolumeMode::kSurface, "surface", 35, 300},
                        Mode{render::VolumeMode::kSlices, "slices", 35, 300}}) {
    render::VolumeRenderer renderer(gl);
    render::VolumeView view;
    view.width = canvas.width(), view.height = canvas.height(), view.framebuffer = canvas.framebuffer();
    view.planes = {0.1f * centre, 12 * centre};
    view.style.mode = m.mode;
    view.style.slices = {centre, std::nullopt, centre};
    std::vector<double> draft, complete;
    for (int step = 0; step < (report.options().quick ? 3 : 7); ++step) {
      view.camera = camera_at(step, Vec3f::Constant(centre), 4.2f * centre);
      double ms = canvas.ms_of([&] { renderer.draw(atlas, view, 0); });
      draft.push_back(ms);
      for (bool is_complete = false; !is_complete;)
        ms += canvas.ms_of([&] { is_complete = renderer.draw(atlas, view, kRestMs); });
      complete.push_back(ms);
    }
    add(report, canvas, fmt::format("{}_draft", m.name), median(draft), ours_at_most(m.draft_ms), size);
    add(report, canvas, fmt::format("{}_complete", m.name), median(complete), ours_at_most(m.complete_ms),
        "from the last movement, draft and calls of 100 ms");
  }
}

// Takes every snapshot at once, and remembers how the simulation did.
class Watcher final : public viewer::QuietBackend {
 public:
  void show(std::shared_ptr<const viewer::Snapshot>) override { ++shown; }
  bool poll(viewer::Session& session) override {
    status = session.status();
    return QuietBackend::poll(session);
  }
  uint64_t shown = 0;
  viewer::SimulationStatus status;
};

void measure_packing(Report& report, const std::filesystem::path& file) {
  report.begin("viewer, packing of " + file.stem().string());
  scene::SceneConfig scene = scene::load_scene(file);
  viewer::ViewerRun run;
  run.title = scene.name;
  run.make = [&] {
    return std::make_unique<SceneSimulation>(Device::cpu(), scene, std::vector<scene::SceneOverride>());
  };
  run.options.last_frame = report.options().tiny ? 1 : report.options().quick ? 4 : 12;
  Watcher watcher;
  const std::atomic<bool> stop = false;
  run_viewer(run, watcher, stop);
  if (watcher.status.state == viewer::RunState::kFailed)
    throw Error(watcher.status.error, watcher.status.message);
  Row row;
  row.name = "viewer/packing_" + scene.name, row.unit = "%", row.ours = 100 * watcher.status.pack_share;
  row.target = ours_at_most(5);
  row.detail = fmt::format("of the simulation's time; {} steps, {} snapshots, each taken at once",
                           watcher.status.steps, watcher.shown);
  report.add(row);
}

}  // namespace

void run_viewer_rows(Report& report) {
  const bool tiny = report.options().tiny;
  for (const std::filesystem::path& file : cli::list_scene_files()) {
    const std::string name = file.stem().string();
    if (tiny ? name == "water_2d" : name.starts_with("snow") || name.starts_with("jelly"))
      measure_packing(report, file);
  }
  std::optional<render::GlContext> context;
  try {
    context.emplace();
  } catch (const Error& error) {
    return report.add_failure("pictures", error.what());
  }
  const render::GlContext::Current current(*context);
  const render::GlFunctions& gl = context->gl();
  report.set_machine(fmt::format("OpenGL: {}", context->description()));
  Canvas canvas(gl, tiny ? 64 : 1280, tiny ? 36 : 720);
  const double scale = tiny ? 0.01 : 1;
  measure_points(report, gl, canvas, static_cast<size_t>(scale * 1e6),
                 {"points_1M", ", about 570 pixels wide", ours_at_most(40), ours_at_most(500)}, 40);
  if (!report.options().quick || tiny)
    measure_points(report, gl, canvas, static_cast<size_t>(scale * 1e7),
                   {"points_10M", "", ours_at_most(50), ours_at_most(2500)}, 50);
  measure_volume(report, gl, canvas);
}

}  // namespace coppice::bench
