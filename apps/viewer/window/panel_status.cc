// The simulation's state, its buttons, and what it has to say.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <utility>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

const char* name_of(RunState state) {
  switch (state) {
    case RunState::kStarting:
      return "starting";
    case RunState::kRunning:
      return "running";
    case RunState::kPaused:
      return "paused";
    case RunState::kFailed:
      return "failed";
    case RunState::kEnded:
      return "ended";
  }
  return "unknown";
}

ImVec4 color_of(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return {0.45f, 0.85f, 0.5f, 1};
    case RunState::kFailed:
      return {1, 0.45f, 0.4f, 1};
    case RunState::kPaused:
      return {1, 0.8f, 0.35f, 1};
    default:
      return {0.65f, 0.75f, 0.9f, 1};
  }
}

void draw_banner(const char* name, const std::string& text, const ImVec4& color, Ui& ui) {
  if (text.empty()) return;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, pad = 5 * ui.scale;
  const ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, width - 2 * pad);
  const ImVec2 high(low.x + width, low.y + size.y + 2 * pad);
  ImGui::GetWindowDrawList()->AddRectFilled(low, high, ImGui::GetColorU32(color), 3 * ui.scale);
  ImGui::SetCursorScreenPos({low.x + pad, low.y + pad});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width - 2 * pad);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::SetCursorScreenPos(low);
  ImGui::Dummy({width, size.y + 2 * pad});
  ui.widgets.note(name);
  ui.widgets.say(name, text);
}

void row(const char* name, const std::string& value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", name);
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(value.c_str());
}

void draw_numbers(const SimulationStatus& status) {
  if (!ImGui::BeginTable("numbers", 2, ImGuiTableFlags_SizingStretchProp)) return;
  row("step", fmt::format("{}", status.steps));
  row("frame", fmt::format("{}", status.frames));
  row("time", fmt::format("{:.6g} s", status.time_s));
  row("speed", fmt::format("{:.4g} steps/s", status.steps_per_s));
  row("packing", fmt::format("{:.1f} % of the time", 100 * status.pack_share));
  ImGui::EndTable();
}

// A last good kernel goes on behind an error, so that is no failure of the simulation.
void draw_kernels(Ui& ui) {
  using State = KernelReloadStatus::State;
  const KernelReloadStatus& kernels = ui.status.kernels;
  ui.widgets.say("kernels", kernels.text);
  if (kernels.state == State::kFailed) {
    draw_banner("kernel error", kernels.text, {0.55f, 0.12f, 0.1f, 1}, ui);
  } else if (kernels.state == State::kCompiling) {
    draw_banner("kernels", kernels.text, {0.12f, 0.25f, 0.4f, 1}, ui);
  } else if (kernels.state == State::kLoaded) {
    ImGui::PushStyleColor(ImGuiCol_Text, ImVec4(0.45f, 0.85f, 0.5f, 1));
    ImGui::TextWrapped("%s", kernels.text.c_str());
    ImGui::PopStyleColor();
  }
}

void draw_pace(Ui& ui) {
  double pace = ui.edited_pace.value_or(ui.status.pace);
  const double least = 0, most = 1000;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x * 0.5f);
  ImGui::DragScalar("pace", ImGuiDataType_Double, &pace, 0.01f, &least, &most,
                    pace > 0 ? "%.3g s per s" : "no limit", ImGuiSliderFlags_AlwaysClamp);
  ui.widgets.note("pace");
  if (ImGui::IsItemDeactivatedAfterEdit()) ui.post(SetPace{pace});
  ui.edited_pace = ImGui::IsItemActive() ? std::optional(pace) : std::nullopt;
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("Simulated seconds per second, at most; 0: as fast as it goes");
}

void draw_buttons(Ui& ui) {
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const ImVec2 size((ImGui::GetContentRegionAvail().x - 2 * gap) / 3, 0);
  const bool is_over = ui.status.state == RunState::kFailed || ui.status.state == RunState::kEnded;
  ImGui::BeginDisabled(is_over);
  if (ImGui::Button(ui.is_paused() ? "Play###pause" : "Pause###pause", size)) ui.toggle_pause();
  ui.widgets.note("pause");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Space");
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(is_over || !ui.is_paused());
  if (ImGui::Button("Step", size)) ui.step();
  ui.widgets.note("step");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip(".");
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (ImGui::Button("Reset", size)) ui.reset();
  ui.widgets.note("reset");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("R");
}

}  // namespace

bool Ui::post(Command command) {
  const bool is_taken = session.post(std::move(command));
  if (!is_taken) notice = "the simulation has not looked at earlier commands yet; this one is lost";
  posted += is_taken;
  return is_taken;
}

bool Ui::is_paused() const {
  const RunState s = status.state;
  return wants_pause.value_or(s == RunState::kPaused || s == RunState::kFailed || s == RunState::kEnded);
}

void Ui::toggle_pause() {
  const bool wanted = !is_paused();
  if (!post(Pause{wanted})) return;
  wants_pause = wanted;
  pause_number = posted;
}

// While it runs a step would pause it, which is what Space is for.
void Ui::step() {
  if (is_paused()) post(StepOnce{});
}

void Ui::reset() { post(Reset{}); }

void Ui::copy(const std::string& what, const std::string& text) {
  ImGui::SetClipboardText(text.c_str());
  notice = "copied: " + what;
  copied = text;
}

void draw_status(Ui& ui) {
  const SimulationStatus& status = ui.status;
  ImGui::TextColored(color_of(status.state), "%s", name_of(status.state));
  ui.widgets.say("run", name_of(status.state));
  ui.widgets.say("steps", fmt::format("{}", status.steps));
  if (ui.is_frozen) {
    ImGui::SameLine();
    ImGui::TextColored({0.5f, 0.8f, 1, 1}, "picture frozen (P)");
  }
  draw_buttons(ui);
  draw_banner(
      "message", status.message,
      status.state == RunState::kFailed ? ImVec4(0.55f, 0.12f, 0.1f, 1) : ImVec4(0.4f, 0.3f, 0.05f, 1), ui);
  draw_banner("refused", status.notice, {0.4f, 0.3f, 0.05f, 1}, ui);
  draw_banner("picture error", ui.picture_error, {0.55f, 0.12f, 0.1f, 1}, ui);
  draw_banner("notice", ui.notice, {0.12f, 0.25f, 0.4f, 1}, ui);
  if (const CompileStatus c = ui.session.compile_status(); c.done < c.asked) {
    draw_banner("compiling", fmt::format("kernels: {} of {} are there, {:.1f} s", c.done, c.asked, c.seconds),
                {0.12f, 0.25f, 0.4f, 1}, ui);
  }
  draw_kernels(ui);
  draw_numbers(status);
  draw_pace(ui);
}

}  // namespace coppice::viewer
