// The tree's levels: which are shown, how many boxes they have, and how full those are.
#include <fmt/format.h>
#include <imgui.h>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

void draw_level(Ui& ui, size_t number, const render::TreeLevel& level, bool is_first_tree) {
  ImGui::PushID(static_cast<int>(number));
  if (is_first_tree) {
    ImGui::Checkbox("##level", &ui.view.tree_levels[number]);
    ui.widgets.note(fmt::format("tree level {}", number));
    ImGui::SameLine();
  }
  const render::Rgb color = tree_level_color(number);
  const ImVec4 ink(color.x(), color.y(), color.z(), 1);
  ImGui::TextColored(ui.view.colors_by_fill ? ImGui::GetStyleColorVec4(ImGuiCol_Text) : ink, "%s",
                     level.name.c_str());
  ImGui::PopID();
  ImGui::SameLine();
  const auto total = static_cast<size_t>(level.total);
  if (level.boxes.size() < level.total) {
    ImGui::TextColored({1, 0.8f, 0.35f, 1}, "%zu: too many", total);
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("At most %zu boxes of a level are drawn",
                        static_cast<size_t>(render::TreeBoxPacker::kMostBoxes));
  } else {
    const double cells = static_cast<double>(level.capacity) * static_cast<double>(level.total);
    ImGui::TextDisabled("%zu, %.3g %% full", total,
                        cells > 0 ? 100 * static_cast<double>(level.live) / cells : 0.0);
  }
  ui.widgets.say(fmt::format("tree level {}", number), fmt::format("{} {}", level.boxes.size(), level.total));
}

}  // namespace

void Ui::toggle_trees() {
  if (!status.has_memory) {
    notice = "there is no tree to show";
    return;
  }
  view.shows_trees = !view.shows_trees;
}

void draw_trees(Ui& ui) {
  if (!ui.view.shows_trees || !ui.shown) return;
  bool is_first = true;
  for (const TreeSet& tree : ui.shown->trees) {
    ImGui::Text("tree %s", tree.name.c_str());
    for (size_t i = 0; i < tree.boxes.levels.size() && i < kMostTreeLevels; ++i)
      draw_level(ui, i, tree.boxes.levels[i], is_first);
    is_first = false;
  }
  if (is_first) return;
  if (ImGui::RadioButton("by level", !ui.view.colors_by_fill)) ui.view.colors_by_fill = false;
  ui.widgets.note("tree by level");
  ImGui::SameLine();
  if (ImGui::RadioButton("by fill", ui.view.colors_by_fill)) ui.view.colors_by_fill = true;
  ui.widgets.note("tree by fill");
  if (ui.view.colors_by_fill) draw_color_bar(kFillMap, {0, 100}, false, "% of the cells active");
}

}  // namespace coppice::viewer
