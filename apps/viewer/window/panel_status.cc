// The simulation's state, its buttons, and what it has to say.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// A line of messages may be this wide, in the screen's units.
constexpr float kMessageWidth = 480;

struct Banner {
  const char* name;
  std::string text;
  ImVec4 color;
};
const ImVec4 kBad{0.55f, 0.12f, 0.1f, 1}, kWarning{0.4f, 0.3f, 0.05f, 1}, kNews{0.12f, 0.25f, 0.4f, 1};

float height_of(const Banner& banner, float width, float pad) {
  return ImGui::CalcTextSize(banner.text.c_str(), nullptr, false, width - 2 * pad).y + 2 * pad;
}

// Draws the banner from `low` on, over all else; returns where it ends.
float draw_banner(const Banner& banner, const ImVec2& low, float width, Ui& ui) {
  const auto& [name, text, color] = banner;
  const float pad = 5 * ui.scale, wrap = width - 2 * pad;
  const ImVec2 high(low.x + width, low.y + height_of(banner, width, pad));
  ImDrawList& draw = *ImGui::GetForegroundDrawList();
  draw.AddRectFilled(low, high, ImGui::GetColorU32(color), 3 * ui.scale);
  draw.AddText(ImGui::GetFont(), ImGui::GetFontSize(), {low.x + pad, low.y + pad},
               ImGui::GetColorU32(ImGuiCol_Text), text.c_str(), nullptr, wrap);
  ui.widgets.note(name, {low.x, low.y}, {high.x, high.y});
  ui.widgets.say(name, text);
  return high.y;
}

void row(const char* name, const std::string& value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", name);
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(value.c_str());
}

// Draws the step, frame and so on; a recorded run has the frame that is seen, and no steps.
void draw_numbers(Ui& ui) {
  const SimulationStatus& status = ui.status;
  if (!ImGui::BeginTable("numbers", 2, ImGuiTableFlags_SizingStretchProp)) return;
  const Playback* const played = ui.shown && ui.shown->playback ? &*ui.shown->playback : nullptr;
  if (played == nullptr) row("step", fmt::format("{}", status.steps));
  const std::string frame = played != nullptr ? fmt::format("{} of {}", played->now, played->last)
                                              : fmt::format("{}", status.frames);
  row("frame", frame);
  row("time", fmt::format("{:.6g} s", played != nullptr ? ui.shown->time_s : status.time_s));
  row("speed", fmt::format("{:.4g} {}/s", status.steps_per_s, played != nullptr ? "frames" : "steps"));
  row("packing", fmt::format("{:.1f} % of the time", 100 * status.pack_share));
  ImGui::EndTable();
  ui.widgets.say("frame row", frame);
}

// A last good kernel goes on behind an error, so that is no failure of the simulation.
Banner kernels_banner(const KernelReloadStatus& kernels) {
  using State = KernelReloadStatus::State;
  if (kernels.state == State::kFailed) return {"kernel error", kernels.text, kBad};
  return {"kernels", kernels.state == State::kCompiling ? kernels.text : std::string(), kNews};
}

std::vector<Banner> banners_of(const Ui& ui) {
  const SimulationStatus& s = ui.status;
  std::vector<Banner> all{{"message", s.message, s.state == RunState::kFailed ? kBad : kWarning},
                          {"refused", s.notice, kWarning},
                          {"picture error", ui.picture_error, kBad},
                          {"notice", ui.notice, kNews},
                          kernels_banner(s.kernels)};
  if (const CompileStatus c = ui.session.compile_status(); c.done < c.asked)
    all.push_back({"compiling",
                   fmt::format("kernels: {} of {} are there, {:.1f} s", c.done, c.asked, c.seconds), kNews});
  std::erase_if(all, [](const Banner& b) { return b.text.empty(); });
  return all;
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
  draw_numbers(ui);
  draw_pace(ui);
}

void draw_messages(Ui& ui, const Vec2f& low, const Vec2f& high) {
  ui.widgets.say("kernels", ui.status.kernels.text);
  const ImVec2 all = ImGui::GetIO().DisplaySize;
  const float most = kMessageWidth * ui.scale, gap = low.y();
  const bool has_room = high.x() - low.x() > 0.5f * most;
  const float width = std::min(has_room ? high.x() - low.x() : all.x - 2 * gap, most);
  ImVec2 at(0.5f * ((has_room ? low.x() + high.x() : all.x) - width), gap);
  const std::vector<Banner> banners = banners_of(ui);
  if (!has_room) {  // at the foot of a window that is all panels, whose buttons are at its head
    at.y = all.y - gap;
    for (const Banner& banner : banners) at.y -= height_of(banner, width, 5 * ui.scale) + 0.5f * gap;
  }
  for (const Banner& banner : banners) at.y = draw_banner(banner, at, width, ui) + 0.5f * gap;
}

}  // namespace coppice::viewer
