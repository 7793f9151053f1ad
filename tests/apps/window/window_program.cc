// A window on a simulation that is none, for window_session_test.py: what is posted
// and done is printed, one a line.
//
//     window_program session     until the window is closed
//     window_program grows       what is seen is ten times as large with each step
//     window_program fields      two fields, one a surface and one a slice
//     window_program failed      the simulation has failed, and there are no commands taken
//     window_program troubled    volumes cannot be shown, and the first click fails
//     window_program reopen N    opens and closes it so often
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "apps/viewer/log_ring.h"
#include "apps/viewer/window_loader.h"
#include "core/error.h"

namespace coppice::viewer {
namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Keeps all libraries for the life of the process: LeakSanitizer knows drivers' frames by their files' names.
void pin_libraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  for (const std::string& name : names) {
    if (!name.empty()) ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

bool g_fails_to_pick = false;

class FakeView final : public LiveView {
 public:
  explicit FakeView(const render::GlFunctions& gl) : gl_(gl) {}
  ~FakeView() override { say("view deleted"); }
  void show(std::shared_ptr<const Snapshot> snapshot) override {
    is_drawn_ = false;
    if (!snapshot->volumes.empty() && snapshot->volumes[0].name.empty())
      throw Error(ErrorCode::kOutOfMemory, "no room for a volume");
  }
  bool draw(const render::Camera& camera, const ViewOptions& options, GLuint framebuffer, int width,
            int height) override {
    if (camera.position != position_ || width != width_ || height != height_) left_ = 3;
    position_ = camera.position;
    width_ = width;
    height_ = height;
    colors_ = options.colors;
    gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl_.Viewport(0, 0, width, height);
    const float color[] = {options.shows_points ? 0.2f : 0.0f, 0.35f, 0.3f, 1};
    gl_.ClearBufferfv(GL_COLOR, 0, color);
    say("draw " + std::to_string(width) + " " + std::to_string(height));
    left_ = std::max(left_ - 1, 0);
    is_drawn_ = true;
    return left_ == 0;
  }
  std::vector<ShownRange> ranges() const override {
    ShownRange speed{{0.13f, 4.62f}, 0, 0};
    if (const auto found = colors_.find("particles: speed"); found != colors_.end()) {
      const ColorChoice& chosen = found->second;
      speed.map = chosen.map.value_or(speed.map),
      speed.is_logarithmic = chosen.is_logarithmic.value_or(false);
      if (chosen.range == RangeChoice::kFixed) speed.range = chosen.fixed;
    }
    return {speed, {{0, 1}, 0, 7}};
  }
  std::vector<ShownRange> volume_ranges() const override { return {}; }
  std::optional<Vec3f> position_at(int, int) override { return std::nullopt; }
  // As the real one: what was not drawn yet cannot be hit.
  std::optional<Picked> pick(int x, int y) override {
    say("pick " + std::to_string(x) + " " + std::to_string(y) + (is_drawn_ ? "" : " before it is drawn"));
    if (std::exchange(g_fails_to_pick, false)) throw Error(ErrorCode::kInternal, "nothing can be read back");
    if (!is_drawn_) return std::nullopt;
    return Picked{0, x < 450 ? 0u : 1u};
  }

 private:
  const render::GlFunctions& gl_;
  Vec3f position_ = Vec3f::Zero();
  int width_ = 0, height_ = 0, left_ = 3;
  bool is_drawn_ = false;
  std::map<std::string, ColorChoice> colors_;
};

Parameter parameter(const char* path, Parameter::Kind kind, std::vector<double> numbers, const char* value,
                    const char* unit, double min, double max, Acts acts) {
  Parameter p;
  p.path = path;
  p.kind = kind;
  p.numbers = std::move(numbers);
  p.value = value;
  p.unit = unit;
  p.doc = std::string("what ") + path + " does";
  p.min = min;
  p.max = max;
  p.acts = acts;
  return p;
}

class FakeFilm final : public Film {
 public:
  bool is_due(double) const override { return true; }
  void add(double, std::vector<uint8_t> rgba, int width, int height) noexcept override {
    const bool is_drawn = std::ranges::any_of(rgba, [](uint8_t c) { return c > 0; });
    say("film " + std::to_string(width) + " " + std::to_string(height) + (is_drawn ? "" : " of nothing"));
  }
  void end() noexcept override { say("film ends"); }
};

class FakeSession final : public Session {
 public:
  FakeSession() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    using Kind = Parameter::Kind;
    parameters_ = {
        parameter("gravity", Kind::kVector, {0, -9.81, 0}, "[0.0, -9.81, 0.0]", "m/s2", -kInf, kInf,
                  Acts::kNow),
        parameter("flip", Kind::kBool, {}, "false", "", -kInf, kInf, Acts::kNow),
        parameter("friction", Kind::kNumber, {0.25}, "0.25", "", 0, 1, Acts::kNow),
        parameter("material.youngs_modulus_Pa", Kind::kNumber, {1e5}, "100000.0", "Pa", 1, 1e9, Acts::kNow),
        parameter("output.color", Kind::kChoice, {}, "\"speed\"", "", -kInf, kInf, Acts::kNow),
        parameter("output.title", Kind::kText, {}, "\"a jelly\"", "", -kInf, kInf, Acts::kNow),
        parameter("grid.resolution", Kind::kInteger, {64}, "64", "cells", 8, 512, Acts::kRestart),
        parameter("time.dt_s", Kind::kNumber, {}, "", "s", 0, kInf, Acts::kRestart)};
    parameters_[4].choices = {"material", "speed", "pressure"};
    status_.state = RunState::kRunning;
    status_.pack_share = 0.03;
    status_.has_memory = status_.has_graphs = true;
    status_.hands = {
        .materials = {"emitter[0].snow", "emitter[1].water"}, .pushes = true, .cuts = true, .radius_m = 0.1f};
    for (const auto& [level, text] :
         {std::pair(LogLevel::kDebug, "kernel test.scatter: compiled"),
          std::pair(LogLevel::kInfo, "kernels: 2 compiled in 0.42 s, 11 from the cache"),
          std::pair(LogLevel::kWarning, "the walls are open"),
          std::pair(LogLevel::kError, "a file cannot be written")})
      log_.add(level, text);
    status_.steps_per_s = 812;
  }
  const std::string& title() const override { return title_; }
  bool post(Command command) override {
    std::visit([this](const auto& c) { obey(c); }, command);
    ++status_.obeyed;
    return true;
  }
  SimulationStatus status() const override { return status_; }
  Reports reports() const override { return reports_; }
  std::vector<std::shared_ptr<const LogLine>> log_lines(uint64_t after) const override {
    return log_.lines(after);
  }
  void log(LogLevel level, const std::string& text) override { log_.add(level, text); }
  CompileStatus compile_status() const override { return {13, 13, 2, 0.42}; }
  std::vector<Parameter> parameters() const override { return parameters_; }
  render::Camera first_camera(const Snapshot& snapshot, float aspect) const override {
    return render::frame_domain_3d(snapshot.domain, aspect);
  }
  bool has_camera_path() const override { return false; }
  render::Camera camera_at(const std::vector<render::CameraKey>& keys, double time_s) const override {
    return render::camera_at(keys, time_s);
  }
  std::unique_ptr<LiveView> make_live_view(const render::GlFunctions& gl) const override {
    return std::make_unique<FakeView>(gl);
  }
  bool has_more() const override { return false; }
  std::string write_screenshot(const Snapshot&, const render::Camera&, const ViewOptions&, int width,
                               int height) noexcept override {
    say("screenshot " + std::to_string(width) + " " + std::to_string(height));
    return "frames/picture_0001.png";
  }
  bool has_still(const Snapshot&, const ViewOptions&) const override { return has_stills_; }
  void ask_still(uint64_t number, std::shared_ptr<const Snapshot>, const render::Camera&, const ViewOptions&,
                 int width, int height) override {
    say("still " + std::to_string(width) + " " + std::to_string(height));
    still_ = Still{.number = number, .width = width, .height = height};
    if (width < 720) return void(still_->error = "pictures of so few pixels are not drawn");
    for (int i = 0; i < width * height; ++i) still_->rgba.insert(still_->rgba.end(), {200, 40, 90, 255});
  }
  void forget_still() override { still_.reset(); }
  std::optional<Still> take_still() override { return std::exchange(still_, std::nullopt); }
  Film* begin_film(std::string& why) noexcept override {
    if (refuses_films_) return why = "no film: the disk is full", nullptr;
    refuses_films_ = true;  // the next one
    say("film begins");
    return &film_;
  }

  void have_stills() { has_stills_ = true; }
  void cannot_show_volumes() { has_volumes_ = true; }
  void refuse_a_reset() { refuses_reset_ = true; }
  void show_fields() { has_fields_ = true; }
  void grow() { grows_ = true, status_.state = RunState::kPaused; }
  void fail() {
    status_.state = RunState::kFailed;
    status_.message =
        "step 812: the particle at (0.31, 2.20, 0.75) left the domain; the time step of 0.002 s is too long";
  }
  bool is_running() const { return status_.state == RunState::kRunning || owed_ > 0; }
  void advance() {
    if (owed_ > 0) --owed_;
    ++status_.steps;
    status_.time_s = 1e-3 * static_cast<double>(status_.steps);
    if (!status_.breakpoints.step || status_.steps < *status_.breakpoints.step) return;
    status_.breakpoints.step.reset();
    status_.state = RunState::kPaused;
    status_.message = "step " + std::to_string(status_.steps) + " is reached";
  }
  std::shared_ptr<const Snapshot> snapshot() const {
    auto s = std::make_shared<Snapshot>();
    s->wanted = wanted_, s->steps = status_.steps;
    s->domain = {Vec3f(0, 0, 0), Vec3f(2, 1, 1)};
    if (grows_) s->domain.max *= static_cast<float>(std::pow(10.0, static_cast<double>(status_.steps)));
    PointSet set;
    set.name = "particles";
    set.attribute = "speed";
    set.unit = "m/s";
    set.points = {{Vec3f(0.5f, 0.5f, 0.5f), 0.13f}, {Vec3f(1, 0.25f, 0.5f), 4.62f}};
    s->points.push_back(set);
    set.name = "tracers";
    set.attribute = "material";
    set.unit = "";
    set.is_categorical = true;
    set.palette.assign(render::default_palette().begin(), render::default_palette().end());
    s->points.push_back(set);
    TreeSet tree;
    tree.name = "grid";
    tree.boxes.levels.resize(2);
    for (render::TreeLevel& level : tree.boxes.levels) {
      level.name = "pointer 8 x 8 x 8";
      level.capacity = 512, level.total = 3, level.live = 100;
      level.boxes.resize(3);
    }
    tree.boxes.levels[1].boxes.clear();  // too many
    s->trees.push_back(tree);
    s->grid_values = {"density", "speed"};
    if (has_volumes_ && wanted_.volumes) s->volumes.resize(1);
    if (has_fields_) {
      s->grid_values.clear();
      s->volumes.resize(2);
      s->volumes[0].name = "smoke", s->volumes[0].style.mode = render::VolumeMode::kSurface;
      s->volumes[1].name = "heat", s->volumes[1].style.mode = render::VolumeMode::kSlices;
      s->volumes[1].placement.cell_m = 0.1f, s->volumes[1].style.slices[1] = 2.5f;
    }
    if (wanted_.cell_m) {
      s->cells.resize(1);
      s->cells[0].name =
          "grid at " + std::to_string(wanted_.cell_m->x()) + " " + std::to_string(wanted_.cell_m->y());
      s->cells[0].bounds = {*wanted_.cell_m, *wanted_.cell_m};
      s->cells[0].values = {{"mass", 0.25, "kg"}, {"speed", 3, "m/s"}};
    }
    s->readings = {{"kinetic energy", 12.345, "J"}, {"mass", 1.5, "kg"}};
    return s;
  }

 private:
  void obey(const Pause& c) {
    say(c.is_paused ? "pause" : "play");
    if (status_.state == RunState::kFailed) return;
    status_.state = c.is_paused ? RunState::kPaused : RunState::kRunning;
    status_.message.clear();
  }
  void obey(const StepOnce& c) {
    say("step " + std::to_string(c.steps));
    owed_ += c.steps;
  }
  void obey(const Reset&) {
    say("reset");
    if (std::exchange(refuses_reset_, false)) {
      status_.notice = "not reset: out of memory";
      return;
    }
    status_.notice.clear();
    status_.steps = 0, status_.reset = status_.obeyed + 1;
  }
  void obey(const SetParameter& c) {
    say("set " + c.path + " " + c.value);
    for (Parameter& p : parameters_) {
      if (p.path != c.path) continue;
      p.value = c.value;
      p.is_changed = true;
      if (p.kind == Parameter::Kind::kNumber || p.kind == Parameter::Kind::kInteger)
        p.numbers = {std::atof(c.value.c_str())};
    }
  }
  static std::string text(const Vec3f& v) {
    char line[96];
    std::snprintf(line, sizeof line, "%.3f %.3f %.3f", static_cast<double>(v.x()), static_cast<double>(v.y()),
                  static_cast<double>(v.z()));
    return line;
  }
  void obey(const Emit& c) {
    say("emit " + c.material + " at " + text(c.center) + " radius " + std::to_string(c.radius_m));
  }
  void obey(const Push& c) {
    say("push " + text(c.stroke.from) + " to " + text(c.stroke.to) + " velocity " + text(c.velocity_m_s));
  }
  void obey(const Cut& c) { say("cut " + text(c.stroke.from) + " to " + text(c.stroke.to)); }
  void obey(const SetPace& c) { say("pace " + std::to_string(c.pace)); }
  // In turn: clang is at work, has found a mistake, and has found none.
  void obey(const ReloadKernels&) {
    using State = KernelReloadStatus::State;
    say("reload");
    KernelReloadStatus& k = status_.kernels;
    if (k.state == State::kCompiling)
      k = {State::kFailed, "/home/me/heat.kernels.cc:12:3: error: use of undeclared identifier 'laplacian'"};
    else if (k.state == State::kFailed)
      k = {State::kLoaded, "heat.kernels.cc loaded in 812 ms"};
    else
      k = {State::kCompiling, "heat.kernels.cc is being compiled"};
  }
  void obey(const KernelsLoaded&) { say("nobody asks for it"); }
  void obey(const Want& c) {
    Wanted was = std::exchange(wanted_, c.wanted);
    if (c.wanted.cell_m && was.cell_m != c.wanted.cell_m)
      say("cell " + std::to_string(c.wanted.cell_m->x()) + " " + std::to_string(c.wanted.cell_m->y()));
    was.cell_m = c.wanted.cell_m;
    if (was == c.wanted) return;
    say(std::string("want ") + (c.wanted.trees ? "trees" : "nothing") +
        (c.wanted.grid.empty() ? "" : " " + c.wanted.grid));
  }
  void obey(const SetBreakpoints& c) {
    say("breakpoints time " + (c.time_s ? std::to_string(*c.time_s) : "-") + " step " +
        (c.step ? std::to_string(*c.step) : "-") + " speed " +
        (c.max_speed_m_s ? std::to_string(*c.max_speed_m_s) : "-") + (c.not_finite ? " not finite" : ""));
    status_.breakpoints = c;
  }
  void obey(const Watch& c) {
    say(std::string("watch") + (c.time ? " time" : "") + (c.memory ? " memory" : "") +
        (c.graphs ? " graphs" : ""));
    reports_ = {};
    if (c.time) reports_.time = time_report();
    if (c.memory) reports_.memory = memory_state();
    if (c.graphs) reports_.graphs = graphs();
  }

  static std::shared_ptr<const std::vector<FunctionGraph>> graphs() {
    FunctionGraph step;
    step.name = "@test.step", step.critical_ms = 2.9;
    step.operations = {{"test.scatter", "test.scatter", {}, 1.6, true},
                       {"test.walls", "test.walls", {}, 0.3, false},
                       {"test.grid", "test.grid", {0, 1}, 0.5, true},
                       {"test.gather", "test.gather", {2}, 0.8, true},
                       {"stream.done", "stream.done", {3}, 0, true}};
    FunctionGraph sort;
    sort.name = "@test.sort", sort.operations = {{"sparse.sort", "sparse.sort", {}, 0.2, true}};
    return std::make_shared<std::vector<FunctionGraph>>(std::vector{step, sort});
  }
  static std::shared_ptr<const MemoryState> memory_state() {
    auto m = std::make_shared<MemoryState>();
    TreeMemory tree;
    tree.name = "test.grid", tree.bytes = 34'000'000, tree.collections = 12, tree.collection_s = 0.0031;
    tree.nodes.resize(2);
    NodeMemory &block = tree.nodes[0], &leaf = tree.nodes[1];
    block.path = "test.grid.pointer[16,16,16]", block.has_cells = true;
    block.active = 1234, block.free = 56, block.collected = 7890, block.collections = 12;
    block.capacity = 4095, block.bytes = 33'000'000;
    leaf.path = "test.grid.pointer[16,16,16].dense[4,4,4]", leaf.depth = 1;
    leaf.active = 78'976, leaf.capacity = 262'080, leaf.bytes = 4'193'280;
    for (int i = 0; i < 60; ++i) {
      tree.history.push_back(3e7f + 1e5f * static_cast<float>(i % 40));
      block.history.push_back(1000 + 4 * static_cast<float>(i));
      leaf.history.push_back(64'000 + 256 * static_cast<float>(i));
    }
    m->trees.push_back(tree);
    m->buffers = {{"particles", 12'345'678}};
    return m;
  }
  static std::shared_ptr<const TimeReport> time_report() {
    auto r = std::make_shared<TimeReport>();
    r->steps = 256, r->step_ms = 2.5, r->longest_ms = 4, r->steps_per_s = 400, r->pace = 0.125;
    for (int i = 0; i < 120; ++i) {
      r->step_ms_history.push_back(2.5f + 0.01f * static_cast<float>(i % 20));
      r->pace_history.push_back(0.125f + 0.001f * static_cast<float>(i % 30));
    }
    const auto add = [&](const char* name, TracePlace place, int depth, double mean_ms, double calls) {
      Timing t;
      t.name = name, t.place = place, t.depth = depth, t.mean_ms = mean_ms, t.calls = calls;
      t.longest_ms = 1.4 * mean_ms;
      t.history.assign(120, static_cast<float>(mean_ms));
      r->timings.push_back(std::move(t));
    };
    add("test.scatter", TracePlace::kStream, 0, 1.6, 1);
    add("test.collect", TracePlace::kStream, 1, 0.0004, 0.03);
    add("test.gather", TracePlace::kStream, 0, 0.8, 1);
    add("solver.batch", TracePlace::kHost, 0, 2.48, 0.03);
    Timeline& t = r->last_step;
    t.rows = {"coppice.stream", "simulation", "worker 1"},
    t.names = {"test.scatter", "test.gather", "solver.batch"};
    t.events = {{0, 0, 0, 0.0f, 1.6f}, {0, 1, 0, 1.65f, 2.45f}, {1, 2, 0, 0, 2.5f}, {2, 0, 0, 0.1f, 1.5f}};
    t.length_ms = 2.5f;
    return r;
  }

  const std::string title_ = "window program";
  SimulationStatus status_;
  FakeFilm film_;
  bool refuses_films_ = false;
  Reports reports_;
  LogRing log_;
  std::vector<Parameter> parameters_;
  int owed_ = 0;
  bool has_stills_ = false;
  std::optional<Still> still_;
  bool has_volumes_ = false, refuses_reset_ = false, grows_ = false, has_fields_ = false;
  Wanted wanted_;
};

void run(const std::string& mode) {
  FakeSession session;
  const auto window = open_window({.title = session.title(), .width = 1100, .height = 760});
  pin_libraries();
  if (mode == "failed") session.fail();
  g_fails_to_pick = mode == "troubled";
  if (g_fails_to_pick) session.cannot_show_volumes();
  if (mode == "session") session.refuse_a_reset();
  if (mode == "grows") session.grow();
  if (mode == "fields") session.show_fields();
  if (mode == "stills") session.have_stills();
  window->show(session.snapshot());
  while (window->poll(session)) {
    if (!session.is_running()) continue;
    session.advance();
    if (window->wants_snapshot()) window->show(session.snapshot());
    window->wake();
  }
  say("closed");
}

void reopen(int times) {
  for (int i = 0; i < times; ++i) {
    FakeSession session;
    const auto window = open_window({.title = session.title(), .width = 640, .height = 480});
    pin_libraries();
    for (int frame = 0; frame < 5; ++frame) {
      window->show(session.snapshot());
      window->poll(session);
    }
  }
  say("reopened " + std::to_string(times));
}

}  // namespace
}  // namespace coppice::viewer

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "session";
  try {
    if (mode == "reopen") {
      coppice::viewer::reopen(argc > 2 ? std::atoi(argv[2]) : 20);
    } else {
      coppice::viewer::run(mode);
    }
    return 0;
  } catch (const coppice::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
