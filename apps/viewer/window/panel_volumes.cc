// This panel, and keys, choose how volumes are drawn, and where their slices are.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

using render::VolumeMode;

constexpr std::array<const char*, 3> kModes = {"fog", "surface", "slices"};  // as VolumeMode
constexpr std::array<const char*, 3> kAxes = {"x", "y", "z"};

bool has_volumes(const Ui& ui) {
  return ui.shown && (!ui.shown->volumes.empty() || !ui.shown->grid_values.empty());
}

// Returns the mode that all volumes are drawn in; none where each has its own, and these differ.
std::optional<VolumeMode> mode_of(const Ui& ui) {
  if (ui.view.volume_mode || !ui.shown || ui.shown->volumes.empty())
    return ui.view.volume_mode.value_or(VolumeMode::kFog);
  const std::vector<VolumeSet>& volumes = ui.shown->volumes;
  const VolumeMode first = volumes.front().style.mode;
  const bool is_same =
      std::ranges::all_of(volumes, [&](const VolumeSet& v) { return v.style.mode == first; });
  return is_same ? std::optional(first) : std::nullopt;
}

// Returns where the simulation has a slice across an axis; none: nowhere.
std::optional<float> own_slice_m(const Ui& ui, int axis) {
  if (!ui.shown) return std::nullopt;
  for (const VolumeSet& v : ui.shown->volumes) {
    if (const auto& slice = v.style.slices[static_cast<size_t>(axis)])
      return v.placement.origin_m[axis] + *slice * v.placement.cell_m;
  }
  return std::nullopt;
}
bool has_own_slices(const Ui& ui) { return own_slice_m(ui, 0) || own_slice_m(ui, 1) || own_slice_m(ui, 2); }

// Returns whether volumes have a style of their own: fields of a program have, the grid of a scene has
// not.
bool has_own_modes(const Ui& ui) { return ui.shown && ui.shown->grid_values.empty(); }

void draw_grid_values(Ui& ui) {
  const std::vector<std::string>& values = ui.shown->grid_values;
  if (values.empty()) return;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x * 0.5f);
  if (ImGui::BeginCombo("grid", ui.view.grid.empty() ? "not shown" : ui.view.grid.c_str())) {
    if (ImGui::Selectable("not shown", ui.view.grid.empty())) ui.view.grid.clear();
    for (const std::string& value : values) {
      if (ImGui::Selectable(value.c_str(), value == ui.view.grid)) {
        ui.view.grid = value;
        if (value == kBodies) ui.view.volume_mode = VolumeMode::kSurface, ui.view.shows_points = true;
      }
      ui.widgets.note("grid:" + value);
    }
    ImGui::EndCombo();
  }
  ui.widgets.note("grid");
}

void draw_slice(Ui& ui, size_t axis) {
  std::optional<float>& slice = ui.view.slices_m[axis];
  const int k = static_cast<int>(axis);
  const Aabb3f& domain = ui.shown->domain;
  ImGui::PushID(k);
  bool is_shown = slice.has_value();
  if (ImGui::Checkbox(kAxes[axis], &is_shown)) ui.show_slice(k, is_shown);
  ui.widgets.note(fmt::format("slice {}", kAxes[axis]));
  if (slice) {
    ImGui::SameLine();
    ImGui::SetNextItemWidth(-1);
    if (ImGui::SliderFloat("##at", &*slice, domain.min[k], domain.max[k], "%.4g m")) ui.slice_axis = k;
    ui.widgets.note(fmt::format("slice {} at", kAxes[axis]));
  }
  ImGui::PopID();
}

}  // namespace

void Ui::show_points(bool alone) {
  view.shows_points = true;
  if (alone) view.shows_volumes = false;
}

void Ui::show_volumes(VolumeMode mode, bool alone) {
  if (!has_volumes(*this)) {
    notice = "there is no volume to show";
    return;
  }
  const bool is_again = view.volume_mode == mode && view.shows_volumes && alone && !view.shows_points;
  if (is_again && has_own_modes(*this)) return show_own_volumes();
  view.volume_mode = mode;
  view.shows_volumes = true;
  const std::vector<std::string>& values = shown->grid_values;
  const bool has_bodies = !values.empty() && values.front() == kBodies;
  // Bodies are surfaces; they hide the points that they enclose, and others are seen beside them.
  if (has_bodies && mode == VolumeMode::kSurface && (alone || view.grid.empty())) view.grid = kBodies;
  if (view.grid == kBodies && mode != VolumeMode::kSurface) view.grid.clear();
  if (view.grid.empty() && !values.empty()) view.grid = values[has_bodies ? 1 : 0];
  if (alone) view.shows_points = view.grid == kBodies;
  const bool is_cut = std::ranges::any_of(view.slices_m, [](const auto& slice) { return slice.has_value(); });
  if (mode == VolumeMode::kSlices && !is_cut && !has_own_slices(*this)) show_slice(slice_axis, true);
}

void Ui::show_own_volumes() {
  view.volume_mode.reset();
  view.slices_m = {};
}

void Ui::show_slice(int axis, bool is_shown) {
  std::optional<float>& slice = view.slices_m[static_cast<size_t>(axis)];
  if (!is_shown) {
    slice.reset();
    return;
  }
  slice_axis = axis;
  if (!slice && shown) slice = own_slice_m(*this, axis).value_or(shown->domain.center()[axis]);
}

void Ui::choose_slice(int axis, bool beside) {
  if (!has_volumes(*this)) return;
  const bool is_shown = view.slices_m[static_cast<size_t>(axis)].has_value();
  if (beside) return show_slice(axis, !is_shown);
  for (int other = 0; other < 3; ++other)
    if (other != axis) show_slice(other, false);
  show_slice(axis, true);
}

void Ui::move_slice(int axis, float cells) {
  std::optional<float>& slice = view.slices_m[static_cast<size_t>(axis)];
  if (!slice && own_slice_m(*this, axis)) show_slice(axis, true);
  if (!slice || !shown) return;
  const Aabb3f& domain = shown->domain;
  const float size = domain.size()[axis];
  const float cell_m = shown->volumes.empty() ? size / 64 : shown->volumes.front().placement.cell_m;
  slice = std::clamp(*slice + cells * cell_m, domain.min[axis], domain.max[axis]);
}

void draw_volumes(Ui& ui) {
  if (!has_volumes(ui) || !ui.view.shows_volumes) return;
  draw_grid_values(ui);
  if (ui.view.grid.empty() && ui.shown->volumes.empty()) return;
  const std::optional<VolumeMode> mode = mode_of(ui);
  const bool is_own = has_own_modes(ui) && !ui.view.volume_mode;
  for (size_t i = 0; i < kModes.size(); ++i) {
    if (i > 0) ImGui::SameLine();
    const auto of_button = static_cast<VolumeMode>(i);
    if (ImGui::RadioButton(kModes[i], !is_own && mode == of_button)) ui.show_volumes(of_button, false);
    ui.widgets.note(kModes[i]);
  }
  if (has_own_modes(ui)) {
    ImGui::SameLine();
    if (ImGui::RadioButton("own", is_own)) ui.show_own_volumes();
    ui.widgets.note("own");
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Each as the program says; so does its key once more");
  }
  ui.widgets.say("volume mode", is_own || !mode ? "own" : kModes[static_cast<size_t>(*mode)]);
  if (mode && mode != VolumeMode::kSlices) return;
  for (size_t axis = 0; axis < 3; ++axis) {
    draw_slice(ui, axis);
    const std::optional<float>& slice = ui.view.slices_m[axis];
    if (slice) ui.widgets.say(fmt::format("slice {}", kAxes[axis]), fmt::format("{:.6g}", *slice));
  }
  ImGui::Checkbox("interpolated", &ui.view.interpolates_slices);
  ui.widgets.note("interpolated");
}

}  // namespace coppice::viewer
