// A scene behind the viewer's interface (see scene_simulation.h).
#include "apps/run/scene_simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "apps/run/frame_view.h"
#include "apps/run/scene_points.h"
#include "apps/viewer/cell_text.h"
#include "apps/viewer/function_graph.h"
#include "apps/viewer/tree_memory.h"
#include "core/error.h"
#include "gpu/stream.h"

namespace coppice {
namespace {

// Water and jelly make up bodies, with a surface; snow and sand are grains. Clear bodies are drawn behind
// opaque ones, over what is seen through them.
constexpr std::array kBodyKinds = {scene::MaterialKind::kJelly, scene::MaterialKind::kWater};
constexpr float kBodyThreshold = 0.45f;

bool has_kind(const scene::SceneConfig& scene, scene::MaterialKind kind) {
  return std::ranges::any_of(scene.materials,
                             [&](const auto& m) { return scene::kind_of_material(m) == kind; });
}
bool has_bodies(const scene::SceneConfig& scene) {
  return std::ranges::any_of(kBodyKinds, [&](scene::MaterialKind kind) { return has_kind(scene, kind); });
}

render::VolumeStyle body_style(const scene::SceneConfig& scene, scene::MaterialKind kind,
                               const Aabb3f& domain) {
  render::VolumeStyle style;
  style.mode = render::VolumeMode::kSurface;
  style.threshold = kBodyThreshold;
  style.range = {0, 1};
  style.opacity = {{0.0f, 0.0f}, {1.0f, 0.15f}};
  style.surface_color = render::default_palette()[static_cast<size_t>(kind)];
  style.bounds_m = domain;
  if (kind == scene::MaterialKind::kWater)
    style.absorption = render::water_absorption(domain) * static_cast<float>(scene.dx_m());
  return style;
}

// Half of what the lightest material weighs is where its surface is.
render::VolumeStyle grid_style(const scene::SceneConfig& scene, bool is_density) {
  render::VolumeStyle style;
  style.opacity = {{0.0f, 0.0f}, {1.0f, 0.15f}};
  if (!is_density) return style;
  double lightest = std::numeric_limits<double>::max();
  for (const scene::MaterialParameters& m : scene.materials)
    lightest = std::min(lightest, scene::density_kg_m3(m));
  style.threshold = static_cast<float>(0.5 * lightest);
  const auto kind = static_cast<size_t>(scene::kind_of_material(scene.materials.front()));
  if (scene.materials.size() == 1) style.surface_color = render::default_palette()[kind];
  return style;
}

}  // namespace

SceneSimulation::SceneSimulation(IntrusivePtr<Device> device, scene::SceneConfig scene,
                                 std::vector<scene::SceneOverride> overrides)
    : device_(std::move(device)),
      parameters_(std::move(scene), std::move(overrides)),
      scene_(parameters_.wanted()),
      solver_(mpm::Solver::create(device_, scene_)),
      tree_packer_(device_),
      brick_packer_(device_) {
  solver_->wait_ready();
}

SceneSimulation::~SceneSimulation() = default;

void SceneSimulation::wait_reset() {
  // A launch that failed has left its error on the stream.
  wait(device_->default_stream().barrier());
  device_->default_stream().clear_error();
  // The new one first: where that fails, the old one can still be looked at.
  std::unique_ptr<mpm::Solver> fresh = mpm::Solver::create(device_, parameters_.wanted());
  fresh->wait_ready();
  solver_ = std::move(fresh);
  scene_ = parameters_.wanted();
  packed_.clear();
}

void SceneSimulation::wait_pack(viewer::Snapshot& s) {
  s.dim = scene_.dim;
  s.domain = {scene_.domain.min.cast<float>(), scene_.domain.max.cast<float>()};
  s.colliders = colliders_at(scene_, solver_->time_s());
  s.points.resize(1);
  viewer::PointSet& p = s.points[0];
  const mpm::PointValue value = describe_points(scene_, p);
  solver_->wait_pack(value, p.points);
  choose_looks(p);
  s.trees.resize(s.wanted.trees ? 1 : 0);
  if (s.wanted.trees) {
    s.trees[0].name = "grid";
    tree_packer_.wait_pack(solver_->grid_leaf(), solver_->grid_placement(), s.trees[0].boxes);
  }
  pack_grid(s);
  read_cell(s);
  s.readings = {{"particles", static_cast<double>(solver_->num_particles()), ""},
                {"frame", static_cast<double>(solver_->frame()), ""},
                {"largest speed", solver_->max_speed_m_s(), "m/s"}};
}

viewer::MemoryState SceneSimulation::wait_memory() {
  viewer::MemoryState state;
  state.trees.push_back(viewer::tree_memory("mpm.grid", solver_->wait_memory_report()));
  for (auto& [name, bytes] : solver_->buffer_bytes()) state.buffers.push_back({name, bytes});
  return state;
}

// Steps in a row are left out: they have no times of their own.
std::vector<viewer::FunctionGraph> SceneSimulation::graphs() const {
  std::vector<viewer::FunctionGraph> graphs;
  for (const Function& function : solver_->functions()) {
    const executor::LoadedFunction& main = *function.loaded().functions().front();
    const auto is_of_one = [&](const executor::LoadedOperation& op) {
      return op.info->name.starts_with("sparse.repeat");
    };
    if (std::ranges::none_of(main.operations, is_of_one)) graphs.push_back(viewer::function_graph(main));
  }
  return graphs;
}

void SceneSimulation::pack_bodies(viewer::Snapshot& s) {
  viewer::PointSet& p = s.points[0];
  p.is_enclosed.assign(p.points.size(), 0);
  s.volumes.resize(kBodyKinds.size());
  size_t n = 0;
  for (const scene::MaterialKind kind : kBodyKinds) {
    if (!has_kind(scene_, kind)) continue;
    viewer::VolumeSet& v = s.volumes[n++];
    v.name = enum_names(scene::MaterialKind())[static_cast<size_t>(kind)], v.unit.clear();
    v.placement = solver_->grid_placement();
    brick_packer_.wait_pack(solver_->wait_body_field(kind, kBodyThreshold, enclosed_),
                            render::BrickFormat::kHalf, v.bricks);
    v.style = body_style(scene_, kind, s.domain);
    v.has_range = v.is_body = true;
    std::ranges::transform(p.is_enclosed, enclosed_, p.is_enclosed.begin(), std::bit_or<uint8_t>());
  }
  s.volumes.resize(n);
}

void SceneSimulation::pack_grid(viewer::Snapshot& s) {
  s.grid_values.clear();
  s.points[0].is_enclosed.clear();
  if (scene_.dim == 3) s.grid_values = {"density", "speed"};
  if (scene_.dim == 3 && has_bodies(scene_)) s.grid_values.insert(s.grid_values.begin(), viewer::kBodies);
  const auto wanted = std::ranges::find(s.grid_values, s.wanted.grid);
  const bool is_wanted = s.wanted.volumes && wanted != s.grid_values.end();
  if (is_wanted && *wanted == viewer::kBodies) return pack_bodies(s);
  s.volumes.resize(is_wanted ? 1 : 0);
  if (!is_wanted) return;
  const bool is_density = *wanted == "density";
  viewer::VolumeSet& v = s.volumes[0];
  v.has_range = v.is_body = false;
  v.name = *wanted, v.unit = is_density ? "kg/m^3" : "m/s";
  v.placement = solver_->grid_placement();
  if (std::exchange(packed_, v.name) != v.name) brick_packer_.forget_format();
  brick_packer_.wait_pack(
      solver_->wait_grid_field(is_density ? mpm::GridValue::kDensity : mpm::GridValue::kSpeed), v.bricks);
  v.style = grid_style(scene_, is_density);
  if (is_density) return;
  float fastest = 0;
  for (const render::BrickStats& b : v.bricks.stats)
    if (std::isfinite(b.max)) fastest = std::max(fastest, b.max);
  v.style.threshold = 0.5f * fastest;
}

void SceneSimulation::read_cell(viewer::Snapshot& s) {
  s.cells.clear();
  if (!s.wanted.cell_m) return;
  viewer::CellReading cell;
  const Vec3i at = viewer::cell_at(*s.wanted.cell_m, solver_->grid_placement(), scene_.dim, cell.bounds);
  const mpm::GridNode node = solver_->wait_grid_node(at);
  cell.name = "grid " + viewer::name_of_cell(at, scene_.dim);
  cell.is_active = node.is_active;
  const double volume = std::pow(scene_.dx_m(), scene_.dim);
  cell.values = {{"mass", node.mass_kg, "kg"},
                 {"density", node.mass_kg / volume, scene_.dim == 2 ? "kg/m^2" : "kg/m^3"},
                 {"speed", node.velocity_m_s.norm(), "m/s"}};
  for (int axis = 0; axis < scene_.dim; ++axis)
    cell.values.push_back({std::string("velocity ") + "xyz"[axis], node.velocity_m_s[axis], "m/s"});
  s.cells.push_back(std::move(cell));
}

// Each particle's material decides; where values do not tell it and there are several, it is packed, too.
void SceneSimulation::choose_looks(viewer::PointSet& p) {
  const scene::ColorBy color = scene_.output.color;
  const auto& emitters = scene_.emitters;
  const bool is_uniform = std::ranges::all_of(
      emitters, [&](const scene::Emitter& e) { return e.material == emitters.front().material; });
  if (is_uniform) {
    p.looks.assign(p.points.size(), look_of(emitters.front().material, color));
    return;
  }
  if (color != scene::ColorBy::kMaterial) solver_->wait_pack(mpm::PointValue::kMaterial, kinds_);
  const std::vector<render::PackedPoint>& kinds = color == scene::ColorBy::kMaterial ? p.points : kinds_;
  p.looks.resize(kinds.size());
  std::ranges::transform(kinds, p.looks.begin(), [&](const render::PackedPoint& point) {
    return look_of(static_cast<scene::MaterialKind>(static_cast<int>(point.value)), color);
  });
}

void SceneSimulation::wait_set(const std::string& path, const std::string& value) {
  parameters_.set(path, value);
  solver_->set_parameters(parameters_.wanted());
  scene_.output = parameters_.wanted().output;
}

viewer::Hands SceneSimulation::hands() const {
  viewer::Hands hands;
  for (size_t i = 0; i < scene_.emitters.size(); ++i) {
    const auto kind = static_cast<size_t>(scene_.emitters[i].material);
    hands.materials.push_back(fmt::format("emitter[{}].{}", i, enum_names(scene::MaterialKind())[kind]));
  }
  hands.pushes = hands.cuts = true;
  const Vec3d size = scene_.domain.max - scene_.domain.min;
  hands.radius_m = static_cast<float>(0.08 * size.maxCoeff());
  hands.speed_m_s =
      static_cast<float>(std::sqrt(9.81 * size.y()));  // of what has fallen from half the height
  return hands;
}

void SceneSimulation::wait_act(const viewer::Emit& emit) {
  const std::vector<std::string> materials = hands().materials;
  const auto found = std::ranges::find(materials, emit.material);
  if (found == materials.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("emit: no material '{}'; expected {}", emit.material,
                                               fmt::join(materials, ", ")));
  }
  solver_->wait_emit(static_cast<size_t>(found - materials.begin()), emit.center, emit.radius_m,
                     emit.velocity_m_s);
}

void SceneSimulation::wait_act(const viewer::Push& push) {
  solver_->wait_push(push.stroke, push.velocity_m_s);
}

void SceneSimulation::wait_act(const viewer::Cut& cut) { solver_->wait_cut(cut.stroke); }

}  // namespace coppice
