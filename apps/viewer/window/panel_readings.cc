// Numbers of the moment that is shown, and of the point that was clicked.
#include <fmt/format.h>
#include <imgui.h>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

void row(const std::string& name, const std::string& value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", name.c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(value.c_str());
}

}  // namespace

void draw_readings(Ui& ui) {
  if (!ui.shown || !ImGui::BeginTable("readings", 2, ImGuiTableFlags_SizingStretchProp)) return;
  for (const Reading& reading : ui.shown->readings) {
    row(reading.name, fmt::format("{:.6g} {}", reading.value, reading.unit));
    ui.widgets.say("reading:" + reading.name, fmt::format("{:.6g}", reading.value));
  }
  ImGui::EndTable();
}

void draw_picked(Ui& ui) {
  if (!ui.picked || !ImGui::BeginTable("picked", 2, ImGuiTableFlags_SizingStretchProp)) return;
  const PickedPoint& p = *ui.picked;
  row("point", fmt::format("{} of {}", p.where.point, p.set));
  row("at step", fmt::format("{}", p.steps));
  row("position", fmt::format("{:.4g}, {:.4g}, {:.4g} m", p.position.x(), p.position.y(), p.position.z()));
  row(p.attribute.empty() ? "value" : p.attribute, fmt::format("{:.6g} {}", p.value, p.unit));
  ImGui::EndTable();
  ui.widgets.say("picked", fmt::format("{} {} {:.6g}", p.set, p.where.point, p.value));
}

void draw_cells(Ui& ui) {
  // The snapshot may be older than the click, and stays so while nothing is packed.
  if (!(ui.shown->wanted.cell_m == ui.view.cell_m)) {
    const char* why = "read behind the batch under way";
    if (ui.is_frozen) why = "not read: the picture is frozen (P)";
    if (ui.status.state == RunState::kFailed) why = "not read: the simulation has failed";
    ImGui::TextDisabled("%s", why);
    return ui.widgets.say("cell", why);
  }
  for (size_t i = 0; i < ui.shown->cells.size(); ++i) {
    const CellReading& cell = ui.shown->cells[i];
    ImGui::Text("%s%s", cell.name.c_str(), cell.is_active ? "" : ", not active");
    // Trees of one name have cells of one name.
    if (!ImGui::BeginTable(fmt::format("cell {}", i).c_str(), 2, ImGuiTableFlags_SizingStretchProp)) continue;
    for (const Reading& reading : cell.values)
      row(reading.name, fmt::format("{:.6g} {}", reading.value, reading.unit));
    ImGui::EndTable();
    ui.widgets.say("cell", cell.name);
  }
}

}  // namespace coppice::viewer
