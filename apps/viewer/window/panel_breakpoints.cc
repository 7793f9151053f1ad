// This panel sets the breakpoints that the simulation pauses at.
#include <imgui.h>

#include <algorithm>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

// Returns whether a number was changed, and its widget left.
template <class T>
bool draw_number(const char* id, ImGuiDataType type, T& number, const char* format) {
  ImGui::TableNextColumn();
  ImGui::SetNextItemWidth(-1);
  ImGui::InputScalar(id, type, &number, nullptr, nullptr, format);
  return ImGui::IsItemDeactivatedAfterEdit();
}

}  // namespace

SetBreakpoints BreakpointPanel::wanted(const Ui& ui) {
  if (ui.status.obeyed >= number_) posted_.reset();
  return posted_.value_or(ui.status.breakpoints);
}

bool BreakpointPanel::draw_row(Ui& ui, const char* name, bool& is_on, const char* tip) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool is_clicked = ImGui::Checkbox(name, &is_on);
  ui.widgets.note(std::string("breakpoint:") + name);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", tip);
  return is_clicked;
}

void BreakpointPanel::draw(Ui& ui) {
  const SetBreakpoints now = wanted(ui);
  // The numbers are those of the simulation while it has them.
  if (!ImGui::IsAnyItemActive()) {
    time_s_ = now.time_s.value_or(time_s_);
    step_ = now.step.value_or(step_);
    max_speed_m_s_ = now.max_speed_m_s.value_or(max_speed_m_s_);
  }
  bool at_time = now.time_s.has_value(), at_step = now.step.has_value(),
       at_speed = now.max_speed_m_s.has_value(), not_finite = now.not_finite;
  bool is_changed = false;
  if (!ImGui::BeginTable("breakpoints", 2, ImGuiTableFlags_SizingStretchSame)) return;
  is_changed |= draw_row(ui, "time", at_time, "Pauses when the simulated time is reached");
  is_changed |= draw_number("##time", ImGuiDataType_Double, time_s_, "%.6g s") && at_time;
  ui.widgets.note("breakpoint value:time");
  is_changed |=
      draw_row(ui, "step", at_step, "Pauses behind the batch, of at most 32 steps, that makes this step");
  is_changed |= draw_number("##step", ImGuiDataType_U64, step_, "%llu") && at_step;
  ui.widgets.note("breakpoint value:step");
  is_changed |= draw_row(ui, "speed", at_speed, "Pauses when something moves as fast");
  is_changed |= draw_number("##speed", ImGuiDataType_Double, max_speed_m_s_, "%.4g m/s") && at_speed;
  ui.widgets.note("breakpoint value:speed");
  is_changed |= draw_row(ui, "not finite", not_finite,
                         "Pauses at the first position or value that is shown and is no number");
  ImGui::EndTable();
  if (!is_changed) return;
  SetBreakpoints next;
  if (at_time) next.time_s = time_s_;
  if (at_step) next.step = step_;
  if (at_speed) next.max_speed_m_s = max_speed_m_s_;
  next.not_finite = not_finite;
  if (!ui.post(next)) return;
  posted_ = next;
  number_ = ui.posted;
}

}  // namespace coppice::viewer
