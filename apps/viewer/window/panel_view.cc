// This panel says what is shown and from where, and has the legend of its colours.
#include <fmt/format.h>
#include <imgui.h>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

ImU32 color_of(const render::Rgb& c) { return ImGui::ColorConvertFloat4ToU32({c.x(), c.y(), c.z(), 1}); }

// Draws as many side by side as there is room for.
void draw_swatches(const PointSet& set) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float size = ImGui::GetTextLineHeight(), gap = ImGui::GetStyle().ItemSpacing.x;
  const float right = ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x;
  for (size_t i = 0; i < set.palette.size(); ++i) {
    const std::string name = i < set.categories.size() ? set.categories[i] : fmt::format("{}", i);
    const float width = size + 2 * gap + ImGui::CalcTextSize(name.c_str()).x;
    if (i > 0) {
      ImGui::SameLine();
      if (ImGui::GetCursorScreenPos().x + width > right) ImGui::NewLine();
    }
    const ImVec2 low = ImGui::GetCursorScreenPos();
    draw.AddRectFilled(low, {low.x + size, low.y + size}, color_of(set.palette[i]), 2);
    ImGui::Dummy({size, size});
    ImGui::SameLine();
    ImGui::TextUnformatted(name.c_str());
  }
}

void layer(Ui& ui, const char* name, bool& is_shown) {
  ImGui::Checkbox(name, &is_shown);
  ui.widgets.note(name);
}

void draw_title(const std::string& name, const std::string& what, const std::string& unit) {
  ImGui::Text("%s%s%s%s", name.c_str(), what.empty() ? "" : (": " + what).c_str(), unit.empty() ? "" : " in ",
              unit.c_str());
}

void draw_bad(size_t count, const char* what) {
  if (count > 0) ImGui::TextColored({1, 0.4f, 1, 1}, "%zu %s", count, what);
}

void draw_threshold(Ui& ui, const VolumeSet& set, const ShownRange& shown) {
  float threshold = shown.threshold;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x * 0.5f);
  const std::string label = "surface at###threshold:" + set.name;
  if (ImGui::SliderFloat(label.c_str(), &threshold, shown.range.min, shown.range.max, "%.4g"))
    ui.view.colors[color_key(set)].threshold = threshold;
  ui.widgets.note("threshold:" + set.name);
}

void draw_legend(Ui& ui, const PointSet& set, const ShownRange* shown) {
  draw_title(set.name, set.attribute, set.unit);
  if (set.is_categorical) draw_swatches(set);
  ui.widgets.note("legend:" + set.name);
  if (shown == nullptr) return;
  if (!set.is_categorical) draw_colors(ui, color_key(set), *shown, set.range.has_value(), false);
  draw_bad(shown->n_bad_values, set.is_categorical ? "values are no category" : "values are not finite");
  draw_bad(shown->n_bad_positions, "positions are not finite");
}

void draw_legend(Ui& ui, const VolumeSet& set, const ShownRange* shown) {
  draw_title(set.name, "", set.unit);
  ui.widgets.note("legend:" + set.name);
  if (shown == nullptr) return;
  if (mode_of(set, ui.view) == render::VolumeMode::kSurface) {
    draw_threshold(ui, set, *shown);
  } else {
    draw_colors(ui, color_key(set), *shown, set.has_range, set.style.is_logarithmic);
  }
  draw_bad(shown->n_bad_values, "cells are not finite");
}

// Keyframes are put down at the times that are shown, and copied for a scene file.
void draw_keyframes(Ui& ui) {
  if (ui.has_path()) {
    if (ImGui::Checkbox("follow keyframes", &ui.follows_path) && ui.follows_path) ui.camera.let_go();
    ui.widgets.note("follow keyframes");
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Until a hand moves the camera");
  }
  if (ImGui::Button("Add keyframe")) put_key(ui.camera_keys, {ui.shown->time_s, ui.camera.camera()});
  ui.widgets.note("add keyframe");
  if (ui.camera_keys.empty()) return;
  ImGui::SameLine();
  if (ImGui::Button(fmt::format("Copy {}###copy keyframes", ui.camera_keys.size()).c_str()))
    ui.copy("keyframes for the scene's camera", keyframes_text(ui.camera_keys));
  ui.widgets.note("copy keyframes");
  ImGui::SameLine();
  if (ImGui::Button("Forget them")) ui.camera_keys.clear();
  ui.widgets.note("forget keyframes");
}

}  // namespace

void draw_view(Ui& ui) {
  const bool has_trees = ui.status.has_memory;  // and volumes of them; what is played has none
  layer(ui, "points", ui.view.shows_points);
  ImGui::SameLine();
  if (has_trees) {
    layer(ui, "volumes", ui.view.shows_volumes);
    ImGui::SameLine();
  }
  layer(ui, "domain", ui.view.shows_domain);
  layer(ui, "colliders", ui.view.shows_colliders);
  ImGui::SameLine();
  layer(ui, "solid", ui.view.is_solid);
  if (has_trees) {
    ImGui::SameLine();
    layer(ui, "tree", ui.view.shows_trees);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("B");
  }
  layer(ui, "fine at rest", ui.wants_stills);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("While nothing moves: the picture as F12 writes it");
  draw_volumes(ui);
  draw_trees(ui);
  if (ui.shown) {
    const auto at = [](const std::vector<ShownRange>& ranges, size_t i) {
      return i < ranges.size() ? &ranges[i] : nullptr;
    };
    for (size_t i = 0; ui.view.shows_points && i < ui.shown->points.size(); ++i)
      draw_legend(ui, ui.shown->points[i], at(ui.ranges, i));
    for (size_t i = 0; ui.view.shows_volumes && i < ui.shown->volumes.size(); ++i)
      draw_legend(ui, ui.shown->volumes[i], at(ui.volume_ranges, i));
  }
  if (!ui.camera.has_begun()) return;
  if (ImGui::Button("Frame all")) ui.camera.frame(ui.shown->domain);
  ui.widgets.note("frame all");
  if (ui.camera.is_flat()) return;
  ImGui::SameLine();
  if (ImGui::Button("Copy camera")) ui.copy("the camera as [output.camera]", ui.camera.text());
  ui.widgets.note("copy camera");
  draw_keyframes(ui);
  const render::Camera& camera = ui.camera.camera();
  const auto vector = [](const Vec3f& v) {
    return fmt::format("{:.3g}, {:.3g}, {:.3g}", v.x(), v.y(), v.z());
  };
  ImGui::TextDisabled("from %s\nto %s, %.3g°", vector(camera.position).c_str(),
                      vector(camera.look_at).c_str(), static_cast<double>(camera.fov_deg));
}

}  // namespace coppice::viewer
