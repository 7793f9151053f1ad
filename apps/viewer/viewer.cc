// A program's own functions as a simulation, and its arguments (see viewer.h).
#include "apps/viewer/viewer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "apps/viewer/cell_text.h"
#include "apps/viewer/make_backend.h"
#include "apps/viewer/quiet_backends.h"
#include "apps/viewer/run_viewer.h"
#include "apps/viewer/tree_memory.h"
#include "core/error.h"
#include "core/stop_signals.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using viewer::Parameter;
using viewer::Snapshot;

struct PointSource {
  std::string name;
  std::function<void(std::vector<render::PackedPoint>&)> fill;
  PointLook look;
};
struct FieldSource {
  std::string name;
  std::function<Field<float>()> field;
  FieldLook look;
  IntrusivePtr<Device> device;  // of the last field: that of the packers
  std::unique_ptr<render::BrickPacker> packer;
  std::unique_ptr<render::TreeBoxPacker> tree_packer;
};
struct Slider {
  std::string name, unit;
  float* value;
  float min, max, first;
};
struct NumberSource {
  std::string name, unit;
  std::function<double()> value;
};

}  // namespace

struct Viewer::Parts {
  std::vector<std::string> words;
  std::string title;
  std::vector<PointSource> points;
  std::vector<FieldSource> fields;
  std::vector<Slider> sliders;
  std::vector<NumberSource> readings;
  std::vector<IntrusivePtr<Device>> devices;  // that are waited for
  std::optional<Aabb3f> domain;
  int dim = 3;
  double dt_s = 0;
  int steps_per_frame = 1;
  std::function<void()> reset, step;
  std::function<void(const Vec3f&, float, const Vec3f&)> emit;
  std::function<void(const Stroke&, const Vec3f&)> push;
  std::function<void(const Stroke&)> cut;
  bool is_run = false;  // run() was called

  // `what` and `name` are of what is given.
  void require_open(std::string_view what) const {
    if (is_run)
      throw Error(ErrorCode::kUsage, fmt::format("{}: everything is given to a viewer before run()", what));
  }
  template <class Function, class Given>
  void check(std::string_view what, const std::string& name, const Function& function,
             const Given& given) const {
    require_open(what);
    const auto refuse = [&](std::string_view why) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{} '{}': {}", what, name, why));
    };
    if (!function) refuse("its function is empty");
    if (std::ranges::find(given, name, [](const auto& g) -> const std::string& { return g.name; }) !=
        given.end())
      refuse("there is one of that name already");
  }
};

namespace {

// Journals call the material that a program's hand emits by this name.
constexpr const char* kEmitted = "particles";

// Returns the bounds of nearly all of them: those between the 5th and the 95th percentile on each axis,
// and as far again beyond.
Aabb3f bounds_of_most(const std::vector<Vec3f>& positions) {
  Aabb3f most;
  if (positions.empty()) return most;
  std::vector<float> sorted(positions.size());
  for (int axis = 0; axis < 3; ++axis) {
    std::ranges::transform(positions, sorted.begin(), [&](const Vec3f& p) { return p[axis]; });
    std::ranges::sort(sorted);
    const float low = sorted[sorted.size() / 20], high = sorted[sorted.size() - 1 - sorted.size() / 20];
    most.min[axis] = low - (high - low), most.max[axis] = high + (high - low);
  }
  Aabb3f bounds;
  for (const Vec3f& p : positions)
    if ((p.array() >= most.min.array()).all() && (p.array() <= most.max.array()).all()) bounds.extend(p);
  return bounds;
}

// Particles and cells of one moment, with a tenth of their extent around them; nothing where there are none.
std::optional<Aabb3f> domain_of(const Snapshot& s, size_t most_points) {
  Aabb3f bounds;
  for (const viewer::PointSet& set : s.points) {
    std::vector<Vec3f> positions;
    const size_t stride = 1 + set.points.size() / most_points;
    for (size_t i = 0; i < set.points.size(); i += stride)
      if (set.points[i].position.allFinite()) positions.push_back(set.points[i].position);
    const Aabb3f most = bounds_of_most(positions);
    if (most.is_empty()) continue;
    const Vec3f radius = Vec3f::Constant(set.radius_m);
    bounds.extend(most.min - radius), bounds.extend(most.max + radius);
  }
  for (const viewer::VolumeSet& set : s.volumes) {
    const auto corner = [&](const render::CellCoord& c) {
      return Vec3f(set.placement.origin_m + set.placement.cell_m * Vec3f(static_cast<float>(c.x),
                                                                         static_cast<float>(c.y),
                                                                         static_cast<float>(c.z)));
    };
    for (const render::CellCoord& c : set.bricks.origins) {
      constexpr int b = render::kBrickCells;
      bounds.extend(corner(c)), bounds.extend(corner({c.x + b, c.y + b, c.z + b}));
    }
  }
  if (bounds.is_empty()) return std::nullopt;
  // The box is at least so large that positions in it can be told apart.
  const float largest = std::max(bounds.min.cwiseAbs().maxCoeff(), bounds.max.cwiseAbs().maxCoeff());
  const float extent = std::max({(bounds.max - bounds.min).maxCoeff(), 1e-3f * largest, 1e-6f});
  const Vec3f around = Vec3f::Constant(0.1f * extent);
  return Aabb3f{bounds.min - around, bounds.max + around};
}

// Errors: kUsage; the slider is as it was then.
void set_slider(std::vector<Slider>& sliders, const std::string& name, const std::string& text) {
  const auto found = std::ranges::find(sliders, name, &Slider::name);
  if (found == sliders.end()) {
    std::string names;
    for (const Slider& s : sliders) names += (names.empty() ? "; there are " : ", ") + s.name;
    throw Error(ErrorCode::kUsage, fmt::format("no slider '{}'{}", name, names));
  }
  float value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() ||
      !(value >= found->min && value <= found->max)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} = {}: expected a number from {} to {}", name, text, found->min, found->max));
  }
  *found->value = value;
}

// Sets the slider by the argument of --set, "NAME=VALUE", and returns its entry in the journal. Errors:
// kUsage.
viewer::JournalEntry set_by_argument(std::vector<Slider>& sliders, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos)
    throw Error(ErrorCode::kUsage, fmt::format("--set {}: expected NAME=VALUE", assignment));
  viewer::SetParameter set{assignment.substr(0, equals), assignment.substr(equals + 1)};
  try {
    set_slider(sliders, set.path, set.value);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--set {}: {}", assignment, error.what()));
  }
  return {0, std::move(set)};
}

void wait_for_all(Device& device) {
  const AsyncValueRef<Chain> done = device.default_stream().barrier();
  wait(done);
  if (done.is_error()) throw done.error();
}

// Returns the field that the program's function gives now.
Field<float> field_of(const FieldSource& from) {
  Field<float> field = from.field();
  if (!field.tree)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("field '{}': it is of no tree; Node::place() makes one", from.name));
  return field;
}

template <class Parts>
class ProgramSimulation final : public viewer::Simulation {
 public:
  explicit ProgramSimulation(Parts& parts) : p_(parts), devices_(parts.devices), domain_(parts.domain) {
    for (const FieldSource& f : p_.fields) {
      IntrusivePtr<Device> device = share(&field_of(f).tree->device());
      if (device_name_.empty()) device_name_ = device->name();
      if (std::ranges::find(devices_, device) == devices_.end()) devices_.push_back(std::move(device));
    }
  }

  bool wait_advance(int most_steps) override {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < most_steps; ++i) {
      p_.step();
      // Else launches would pile up while nothing is packed, and a batch would take as long as they need.
      for (const IntrusivePtr<Device>& device : devices_) wait_for_all(*device);
      ++steps_;
      if (steps_ % static_cast<uint64_t>(p_.steps_per_frame) == 0) return true;
      if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(10)) break;
    }
    return false;
  }
  void wait_reset() override {
    if (!p_.reset) throw Error(ErrorCode::kUsage, "this program has no way back to the beginning");
    for (const IntrusivePtr<Device>& device : devices_) device->default_stream().clear_error();
    p_.reset();
    for (const IntrusivePtr<Device>& device : devices_) wait_for_all(*device);
    for (FieldSource& field : p_.fields)
      if (field.packer) field.packer->forget_format();
    steps_ = 0;
  }
  void wait_pack(Snapshot& s) override {
    s.points.resize(p_.points.size());
    for (size_t i = 0; i < p_.points.size(); ++i) {
      const PointSource& from = p_.points[i];
      viewer::PointSet& to = s.points[i];
      to.name = from.name, to.attribute = from.look.attribute, to.unit = from.look.unit;
      to.radius_m = from.look.radius_m, to.is_categorical = from.look.is_categorical;
      const auto palette = render::default_palette();
      const size_t named = from.look.categories.size();
      to.palette.assign(palette.begin(), named == 0 ? palette.end() : palette.begin() + named);
      to.categories = from.look.categories;
      to.map = from.look.map, to.range = from.look.range;
      from.fill(to.points);
    }
    // While the domain is not known, volumes are packed in any case: it is guessed from particles and
    // cells.
    s.volumes.resize(s.wanted.volumes || !domain_ ? p_.fields.size() : 0);
    for (size_t i = 0; i < s.volumes.size(); ++i) {
      FieldSource& from = p_.fields[i];
      viewer::VolumeSet& to = s.volumes[i];
      const Field<float> field = field_of(from);
      if (!from.packer || from.device.get() != &field.tree->device()) {
        from.device = share(&field.tree->device());
        from.packer = std::make_unique<render::BrickPacker>(from.device);
        from.tree_packer.reset();
      }
      from.packer->wait_pack(field, to.bricks);
      to.name = from.name, to.unit = from.look.unit, to.placement = from.look.placement;
      to.style = from.look.style, to.has_range = from.look.has_range;
      if (to.bricks.dim < 3 && to.style.mode == render::VolumeMode::kFog) {
        to.style.mode = render::VolumeMode::kSlices;  // fog that is one cell thick cannot be seen
        to.style.slices = {std::nullopt, std::nullopt, 0.5f};
      }
    }
    pack_trees(s);
    read_cells(s);
    if (!p_.domain) guess_domain(s);
    s.domain = domain_.value_or(Aabb3f{Vec3f::Zero(), Vec3f::Ones()}), s.dim = p_.dim;
    s.readings.clear();
    for (const NumberSource& n : p_.readings) s.readings.push_back({n.name, n.value(), n.unit});
  }
  // Reports the memory of the trees that its fields are placed on.
  viewer::MemoryState wait_memory() override {
    viewer::MemoryState state;
    std::vector<const TreeStorage*> seen;
    for (const FieldSource& from : p_.fields) {
      const TreeRef tree = field_of(from).tree;
      if (std::ranges::find(seen, tree.get()) != seen.end()) continue;
      seen.push_back(tree.get());
      state.trees.push_back(viewer::tree_memory(tree->options().name, wait_memory_report(tree)));
    }
    return state;
  }
  bool has_memory() const override { return !p_.fields.empty(); }
  std::string device_name() const override { return device_name_; }
  uint64_t steps() const override { return steps_; }
  double time_s() const override { return p_.dt_s * static_cast<double>(steps_); }

  std::vector<Parameter> parameters() const override {
    std::vector<Parameter> all;
    for (const Slider& s : p_.sliders) {
      Parameter p;
      p.path = s.name, p.value = fmt::format("{}", *s.value), p.numbers = {*s.value};
      p.min = s.min, p.max = s.max, p.unit = s.unit, p.acts = Acts::kNow;
      p.is_changed = *s.value != s.first;
      all.push_back(std::move(p));
    }
    return all;
  }
  void wait_set(const std::string& path, const std::string& text) override {
    set_slider(p_.sliders, path, text);
  }

  viewer::Hands hands() const override {
    viewer::Hands hands;
    if (p_.emit) hands.materials = {kEmitted};
    hands.pushes = static_cast<bool>(p_.push), hands.cuts = static_cast<bool>(p_.cut);
    return hands;
  }
  using Simulation::wait_act;  // of what is not offered
  void wait_act(const viewer::Emit& emit) override {
    if (!p_.emit) return Simulation::wait_act(emit);
    if (emit.material != kEmitted)
      throw Error(ErrorCode::kUsage,
                  fmt::format("emit: no material '{}'; expected {}", emit.material, kEmitted));
    check_finite({emit.center, emit.center, emit.radius_m}, emit.velocity_m_s);
    p_.emit(emit.center, emit.radius_m, emit.velocity_m_s);
    for (const IntrusivePtr<Device>& device : devices_) wait_for_all(*device);
  }
  void wait_act(const viewer::Push& push) override {
    if (!p_.push) return Simulation::wait_act(push);
    check_finite(push.stroke, push.velocity_m_s);
    p_.push(push.stroke, push.velocity_m_s);
    for (const IntrusivePtr<Device>& device : devices_) wait_for_all(*device);
  }
  void wait_act(const viewer::Cut& cut) override {
    if (!p_.cut) return Simulation::wait_act(cut);
    check_finite(cut.stroke, Vec3f::Zero());
    p_.cut(cut.stroke);
    for (const IntrusivePtr<Device>& device : devices_) wait_for_all(*device);
  }

 private:
  static void check_finite(const Stroke& s, const Vec3f& velocity) {
    if (s.radius_m > 0 && std::isfinite(s.radius_m) && (s.from + s.to + velocity).allFinite()) return;
    throw Error(
        ErrorCode::kUsage,
        fmt::format("a hand with a radius of {} m; expected a positive one, and finite places and velocities",
                    s.radius_m));
  }
  // Sets the domain to what there is to see, once there is something; and anew when that has become much
  // larger, as when a drop spreads.
  void guess_domain(const Snapshot& s) {
    constexpr float kMuchLarger = 4;
    const std::optional<Aabb3f> now = domain_of(s, domain_ ? 2'000 : 100'000);
    if (!now) return;
    if (!domain_ || now->size().maxCoeff() > kMuchLarger * domain_->size().maxCoeff()) domain_ = now;
  }
  // Fields of one node are read together.
  void read_cells(Snapshot& s) {
    s.cells.clear();
    std::vector<FieldId> nodes;  // of s.cells
    for (FieldSource& from : p_.fields) {
      if (!s.wanted.cell_m) break;
      const Field<float> field = field_of(from);
      field.tree->freeze();  // a tree has its dimensions from then on
      const int dim = static_cast<int>(field.tree->layout().dims());
      viewer::CellReading cell;
      const Vec3i at = viewer::cell_at(*s.wanted.cell_m, from.look.placement, dim, cell.bounds);
      const detail::HostCoord coord{at[0], at[1], at[2]};
      size_t i = 0;
      while (i < nodes.size() && (nodes[i].tree != field.id.tree || nodes[i].node != field.id.node)) ++i;
      if (i == nodes.size()) {
        cell.name = fmt::format("{} {}", field.tree->options().name, viewer::name_of_cell(at, dim));
        cell.is_active = detail::node_of(field.tree, field.id.node).wait_is_active(coord);
        nodes.push_back(field.id), s.cells.push_back(std::move(cell));
      }
      s.cells[i].values.push_back({from.name, wait_read(field, coord), from.look.unit});
    }
  }
  // Packs the tree once for each node that has fields.
  void pack_trees(Snapshot& s) {
    size_t n = 0;
    std::vector<FieldId> done;
    for (FieldSource& from : p_.fields) {
      if (!s.wanted.trees) break;
      const Field<float> field = field_of(from);
      const auto is_same = [&](const FieldId& d) {
        return d.tree == field.id.tree && d.node == field.id.node;
      };
      if (std::ranges::any_of(done, is_same)) continue;
      done.push_back(field.id);
      if (!from.tree_packer)
        from.tree_packer = std::make_unique<render::TreeBoxPacker>(share(&field.tree->device()));
      s.trees.resize(std::max(s.trees.size(), n + 1));
      viewer::TreeSet& to = s.trees[n++];
      to.name = field.tree->options().name;
      from.tree_packer->wait_pack(detail::node_of(field.tree, field.id.node), from.look.placement, to.boxes);
    }
    s.trees.resize(n);
  }

  Parts& p_;
  std::vector<IntrusivePtr<Device>> devices_;
  std::string device_name_;       // of the first field
  std::optional<Aabb3f> domain_;  // that is given, or guessed so far
  uint64_t steps_ = 0;
};

}  // namespace

Viewer::Viewer(int argc, const char* const* argv, std::string title) : parts_(std::make_unique<Parts>()) {
  parts_->words.assign(argv + std::min(argc, 1), argv + argc);
  parts_->title = std::move(title);
}
Viewer::~Viewer() = default;

void Viewer::points(std::string name, std::function<void(std::vector<render::PackedPoint>&)> fill,
                    PointLook look) {
  parts_->check("points", name, fill, parts_->points);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("points '{}': {}", name, why));
  };
  if (const size_t most = render::default_palette().size(); look.categories.size() > most)
    refuse(fmt::format("{} categories; there are {} colours", look.categories.size(), most));
  if (!(look.radius_m > 0) || !std::isfinite(look.radius_m))
    refuse(fmt::format("a radius of {} m", look.radius_m));
  if (look.range && !(look.range->min < look.range->max))
    refuse(fmt::format("a range from {} to {}", look.range->min, look.range->max));
  parts_->points.push_back({std::move(name), std::move(fill), std::move(look)});
}
void Viewer::field(std::string name, std::function<Field<float>()> field, FieldLook look) {
  parts_->check("field", name, field, parts_->fields);
  if (!(look.placement.cell_m > 0) || !std::isfinite(look.placement.cell_m))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("field '{}': cells of {} m", name, look.placement.cell_m));
  FieldSource source;
  source.name = std::move(name), source.field = std::move(field), source.look = std::move(look);
  parts_->fields.push_back(std::move(source));
}
void Viewer::slider(std::string name, float& value, float min, float max, std::string unit) {
  parts_->check("slider", name, true, parts_->sliders);
  if (!(min < max) || !std::isfinite(min) || !std::isfinite(max))
    throw Error(ErrorCode::kInvalidArgument, fmt::format("slider '{}' from {} to {}", name, min, max));
  // It is a word in journals.
  if (name.empty() || name.find_first_of(" \t\r\n") != std::string::npos)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("slider '{}': a name without blanks is needed", name));
  parts_->sliders.push_back({std::move(name), std::move(unit), &value, min, max, value});
}
void Viewer::device(IntrusivePtr<Device> device) {
  parts_->require_open("device");
  if (!device) throw Error(ErrorCode::kInvalidArgument, "device: there is none");
  parts_->devices.push_back(std::move(device));
}
void Viewer::domain(const Aabb3f& domain, int dim) {
  parts_->require_open("domain");
  if (dim < 2 || dim > 3)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("domain: {} dimensions; 2 or 3 are drawn", dim));
  if (domain.is_empty() || !domain.min.allFinite() || !domain.max.allFinite())
    throw Error(ErrorCode::kInvalidArgument, "domain: it is empty or not finite");
  parts_->domain = domain, parts_->dim = dim;
}
void Viewer::reading(std::string name, std::function<double()> value, std::string unit) {
  parts_->check("reading", name, value, parts_->readings);
  parts_->readings.push_back({std::move(name), std::move(unit), std::move(value)});
}
void Viewer::on_reset(std::function<void()> reset) {
  parts_->require_open("on_reset");
  parts_->reset = std::move(reset);
}
void Viewer::on_emit(std::function<void(const Vec3f&, float, const Vec3f&)> emit) {
  parts_->require_open("on_emit");
  if (!emit) throw Error(ErrorCode::kInvalidArgument, "on_emit: its function is empty");
  parts_->emit = std::move(emit);
}
void Viewer::on_push(std::function<void(const Stroke&, const Vec3f&)> push) {
  parts_->require_open("on_push");
  if (!push) throw Error(ErrorCode::kInvalidArgument, "on_push: its function is empty");
  parts_->push = std::move(push);
}
void Viewer::on_cut(std::function<void(const Stroke&)> cut) {
  parts_->require_open("on_cut");
  if (!cut) throw Error(ErrorCode::kInvalidArgument, "on_cut: its function is empty");
  parts_->cut = std::move(cut);
}
void Viewer::time_step(double dt_s, int steps_per_frame) {
  parts_->require_open("time_step");
  if (!(dt_s > 0) || !std::isfinite(dt_s) || steps_per_frame < 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("time_step: {} s, {} steps per frame", dt_s, steps_per_frame));
  parts_->dt_s = dt_s, parts_->steps_per_frame = steps_per_frame;
}

int Viewer::run(std::function<void()> step) {
  if (parts_->is_run) throw Error(ErrorCode::kUsage, "run: a viewer runs once");
  if (!step) throw Error(ErrorCode::kInvalidArgument, "run: the function of a step is empty");
  parts_->is_run = true;
  parts_->step = std::move(step);
  CLI::App app{parts_->title};
  app.name(parts_->title);
  viewer::BackendOptions back;
  viewer::ViewerRun run;
  std::string journal, replay;
  std::vector<std::string> assignments;
  int64_t frames = -1;
  app.add_option("--view", back.where, "where it is shown: in a window, as picture files, or nowhere")
      ->check(CLI::IsMember(viewer::backend_names()));
  app.add_option("--frames", frames, "frames, then the simulation ends; a window stays open")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  back.folder = std::filesystem::path("out") / parts_->title;
  const CLI::Option* const folder =
      app.add_option("-o,--output", back.folder,
                     fmt::format("folder for pictures and screenshots (default: {})", back.folder.string()));
  app.add_flag("--overwrite", back.overwrite, "replace pictures that are already in the folder");
  app.add_flag("--paused", run.options.is_paused, "begin paused");
  app.add_option("--set", assignments, "give a slider a value before the first step; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--journal", journal,
                 "write what was done to the simulation, and when (-: to the terminal)");
  app.add_option("--replay", replay, "do again what a journal tells");
  bool no_reload = false;
  app.add_flag("--no-reload", no_reload, "leave kernel files alone that are changed while the program runs");
  try {
    std::vector<std::string> reversed(parts_->words.rbegin(), parts_->words.rend());
    app.parse(reversed);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: error: {}; try --help\n", parts_->title, error.what());
    return 2;
  }
  try {
    for (const std::string& assignment : assignments)
      run.journal_begin.push_back(set_by_argument(parts_->sliders, assignment));
    if (!replay.empty()) run.options.replay = viewer::read_journal(replay, journal);
    if (frames < 0 && back.where == "file")
      throw Error(ErrorCode::kUsage, "--view file needs --frames N, for it would write for ever");
    viewer::check_flags(back.where,
                        {run.options.is_paused, folder->count() > 0, /*overwrites=*/back.overwrite});
    run.title = parts_->title, run.journal = journal, run.screenshot_folder = back.folder;
    run.make = [this] { return std::make_unique<ProgramSimulation<Parts>>(*parts_); };
    run.options.last_frame = frames;
    run.options.shows_every_frame = back.where == "file";
    run.options.reloads_kernels = !no_reload;
    run.options.nice = back.where == "window" ? viewer::kNiceBesideWindow : 0;
    const std::unique_ptr<viewer::ViewerBackend> backend = viewer::make_backend(back);
    const StopSignals signals;
    const viewer::ViewerOutcome outcome = viewer::run_viewer(run, *backend, signals.requested());
    if (const auto* files = dynamic_cast<const viewer::FileBackend*>(backend.get()))
      files->wait_finish(viewer::Film::kFps);
    return outcome == viewer::ViewerOutcome::kStopped ? 130 : 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}: error: {}\n", parts_->title, error.what());
    return error.code() == ErrorCode::kUsage ? 2 : 1;
  }
}

}  // namespace coppice
