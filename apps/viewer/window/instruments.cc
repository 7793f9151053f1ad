// The window of the instrument that is open, and what is measured for it.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <string>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

struct Entry {
  Instrument which;
  const char *name, *tip;
  void (*draw)(Ui& ui);
  bool (*is_there)(const SimulationStatus& status);  // the simulation has something to show
};
constexpr std::array kInstruments = {
    Entry{Instrument::kTime, "Time", "What a step's time goes to, and the last step's timeline", &draw_time,
          [](const SimulationStatus&) { return true; }},
    Entry{Instrument::kMemory, "Memory", "Trees, node by node: cells, bytes, collections", &draw_memory,
          [](const SimulationStatus& s) { return s.has_memory; }},
    Entry{Instrument::kGraph, "Graph", "The functions of a step: what waits for what, and for how long",
          &draw_graphs, [](const SimulationStatus& s) { return s.has_graphs; }},
    Entry{Instrument::kLog, "Log", "What the program logs, and compilations", &draw_log,
          [](const SimulationStatus&) { return true; }},
};

// It covers as little of the picture as it can, and all of a small window's width.
constexpr float kHeight = 300, kLeastWidth = 360;

Watch needs_of(Instrument which) {
  return {.time = which == Instrument::kTime,
          .memory = which == Instrument::kMemory,
          .graphs = which == Instrument::kGraph};
}

}  // namespace

void post_watch(Ui& ui) {
  const Watch needed = ui.sees_instrument ? needs_of(ui.instrument) : Watch();
  if (needed != ui.watched && ui.post(needed)) ui.watched = needed;
}

void draw_instrument_switches(Ui& ui) {
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const ImVec2 size((ImGui::GetContentRegionAvail().x - 3 * gap) / 4, 0);
  for (const Entry& e : kInstruments) {
    if (!e.is_there(ui.status)) continue;
    if (e.which != kInstruments.front().which) ImGui::SameLine();
    const bool is_open = ui.instrument == e.which;
    if (is_open) ImGui::PushStyleColor(ImGuiCol_Button, ImGui::GetStyleColorVec4(ImGuiCol_ButtonActive));
    if (ImGui::Button(e.name, size)) ui.instrument = is_open ? Instrument::kNone : e.which;
    if (is_open) ImGui::PopStyleColor();
    ui.widgets.note(std::string("instrument:") + e.name);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", e.tip);
  }
}

void draw_instrument(Ui& ui, const Vec2f& low, const Vec2f& high, bool is_new) {
  const auto found = std::find_if(kInstruments.begin(), kInstruments.end(),
                                  [&](const Entry& e) { return e.which == ui.instrument; });
  if (found == kInstruments.end()) return;
  Vec2f from = low, to = high;
  if (to.x() - from.x() < kLeastWidth * ui.scale) {
    const ImVec2 all = ImGui::GetIO().DisplaySize;
    const float gap = high.y() - all.y;
    from.x() = -gap, to.x() = all.x + gap;
  }
  const float height = std::min(kHeight * ui.scale, to.y() - from.y());
  const auto when = is_new ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
  ImGui::SetNextWindowPos({from.x(), to.y()}, when, {0, 1});
  ImGui::SetNextWindowSize({to.x() - from.x(), height}, when);
  bool stays_open = true;
  ui.sees_instrument = ImGui::Begin(found->name, &stays_open, ImGuiWindowFlags_NoFocusOnAppearing);
  if (ui.sees_instrument) found->draw(ui);
  const ImVec2 at = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ui.widgets.note(std::string("panel:") + found->name, {at.x, at.y}, {at.x + size.x, at.y + size.y});
  ImGui::End();
  if (!stays_open) ui.instrument = Instrument::kNone;
}

}  // namespace coppice::viewer
