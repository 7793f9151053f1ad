// This panel shows what a step's time goes to.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <functional>
#include <string>

#include "apps/viewer/window/panel_parts.h"
#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

// Neighbours in a list differ, and a name keeps its colour.
ImU32 color_of(const std::string& name) {
  const size_t h = std::hash<std::string>()(name);
  float r, g, b;
  ImGui::ColorConvertHSVtoRGB(static_cast<float>(h % 64) / 64, 0.5f,
                              0.55f + static_cast<float>(h / 64 % 4) * 0.08f, r, g, b);
  return ImGui::ColorConvertFloat4ToU32({r, g, b, 1});
}

void draw_summary(Ui& ui, const TimeReport& r) {
  if (!ImGui::BeginTable("summary", 2, ImGuiTableFlags_SizingStretchSame)) return;
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(fmt::format("{:.4g} steps/s, {}", r.steps_per_s, ms_text(r.step_ms)).c_str());
  ImGui::TableNextColumn();
  if (r.pace > 0) ImGui::TextUnformatted(fmt::format("pace {:.3g} s per s", r.pace).c_str());
  const float height = 1.6f * ImGui::GetTextLineHeight();
  ImGui::TableNextColumn();
  draw_graph("step", r.step_ms_history, height);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("ms per step, each tenth of a second that it ran");
  ImGui::TableNextColumn();
  if (r.pace > 0) draw_graph("pace", r.pace_history, height);
  if (r.pace > 0 && ImGui::IsItemHovered()) ImGui::SetTooltip("simulated seconds per second");
  ImGui::EndTable();
  ImGui::TextDisabled(
      "%s", fmt::format("means of the last {} steps; longest {}", r.steps, ms_text(r.longest_ms)).c_str());
  ui.widgets.say(
      "time", fmt::format("{} steps, {:.6g} steps/s, {} timings", r.steps, r.steps_per_s, r.timings.size()));
}

void draw_place(const TimeReport& r, TracePlace place) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const char* name = place != TracePlace::kStream ? "host"
                     : r.is_stream_ahead          ? "giving work to the GPU"
                                                  : "device";
  ImGui::TextColored({0.6f, 0.75f, 0.95f, 1}, "%s", name);
}

// Returns whether the timings that lie within this one are to be shown, too.
bool draw_timing(const TimeReport& r, const Timing& t, bool has_parts) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const auto flags = ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_SpanAvailWidth |
                     (has_parts ? 0 : ImGuiTreeNodeFlags_Leaf);
  const float indent = static_cast<float>(t.depth) * 0.8f * ImGui::GetFontSize();
  if (indent > 0) ImGui::Indent(indent);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, 0});
  const bool is_open = ImGui::TreeNodeEx(t.name.c_str(), flags);
  ImGui::PopStyleVar();
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("%s", fmt::format("{}, {:.3g} times per step", t.name, t.calls).c_str());
  if (indent > 0) ImGui::Unindent(indent);
  draw_number_cell(ms_text(t.mean_ms));
  draw_number_cell(r.step_ms > 0 ? fmt::format("{:.1f} %", 100 * t.mean_ms / r.step_ms) : "");
  draw_number_cell(ms_text(t.longest_ms));
  ImGui::TableNextColumn();
  draw_graph(t.name, t.history, ImGui::GetTextLineHeight());
  return is_open;
}

void draw_timings(Ui& ui, const TimeReport& r) {
  constexpr auto kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable("timings", 5, kFlags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 2.5f);
  ImGui::TableSetupColumn("per step", ImGuiTableColumnFlags_WidthFixed, 4.6f * em);
  ImGui::TableSetupColumn("share", ImGuiTableColumnFlags_WidthFixed, 3.6f * em);
  ImGui::TableSetupColumn("longest", ImGuiTableColumnFlags_WidthFixed, 4.6f * em);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  int deepest = 0;  // that is shown
  for (size_t i = 0; i < r.timings.size(); ++i) {
    const Timing& t = r.timings[i];
    if (i == 0 || r.timings[i - 1].place != t.place) draw_place(r, t.place), deepest = 0;
    if (t.depth > deepest) continue;
    // The row is known by its name and place in the whole, so that it stays open when times change the
    // order.
    ImGui::PushID(static_cast<int>(t.place) * 64 + t.depth);
    const bool has_parts = i + 1 < r.timings.size() && r.timings[i + 1].depth > t.depth;
    deepest = draw_timing(r, t, has_parts) ? t.depth + 1 : t.depth;
    ImGui::PopID();
  }
  ImGui::EndTable();
  ui.widgets.say("timings", [&] {
    std::string names;
    for (const Timing& t : r.timings) names += (names.empty() ? "" : " ") + t.name;
    return names;
  }());
}

// A bar per event, a lane per row of the trace and depth.
void draw_timeline(Ui& ui, const Timeline& t) {
  ImGui::TextDisabled(
      "the last step, %s%s", ms_text(t.length_ms).c_str(),
      t.left_out > 0 ? fmt::format("; {} short events are left out", t.left_out).c_str() : "");
  if (!ImGui::BeginChild("timeline")) return ImGui::EndChild();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float lane = ImGui::GetTextLineHeight() + 2, names = 8 * ImGui::GetFontSize();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = std::max(ImGui::GetContentRegionAvail().x - names, 1.0f);
  std::vector<int> first_lane(t.rows.size() + 1, 0);
  for (const Timeline::Event& e : t.events)
    first_lane[e.row + 1] = std::max(first_lane[e.row + 1], e.depth + 1);
  for (size_t i = 0; i < t.rows.size(); ++i) first_lane[i + 1] += first_lane[i];
  const ImU32 ink = ImGui::GetColorU32(ImGuiCol_Text), faint = ImGui::GetColorU32(ImGuiCol_TextDisabled);
  for (size_t i = 0; i < t.rows.size(); ++i) {
    const float y = low.y + static_cast<float>(first_lane[i]) * lane + 3 * static_cast<float>(i);
    draw.AddText({low.x, y}, faint, t.rows[i].c_str());
  }
  for (const Timeline::Event& e : t.events) {
    const std::string& name = t.names[e.name];
    const float y =
        low.y + static_cast<float>(first_lane[e.row] + e.depth) * lane + 3 * static_cast<float>(e.row);
    const float scale = width / std::max(t.length_ms, 1e-6f), x0 = low.x + names + scale * e.begin_ms;
    const ImVec2 a(x0, y), b(std::max(low.x + names + scale * e.end_ms, x0 + 1), y + lane - 1);
    draw.AddRectFilled(a, b, color_of(name), 2);
    if (b.x - a.x > 2 * ImGui::GetFontSize()) {
      draw.PushClipRect(a, b, true);
      draw.AddText({a.x + 3, a.y}, ink, name.c_str());
      draw.PopClipRect();
    }
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(a, b))
      ImGui::SetTooltip("%s\n%s, from %s on", name.c_str(), ms_text(e.end_ms - e.begin_ms).c_str(),
                        ms_text(e.begin_ms).c_str());
  }
  ImGui::Dummy({width, static_cast<float>(first_lane.back()) * lane + 3 * static_cast<float>(t.rows.size())});
  ImGui::EndChild();
  ui.widgets.say("timeline", fmt::format("{} rows, {} events", t.rows.size(), t.events.size()));
}

}  // namespace

void draw_time(Ui& ui) {
  if (ui.reports.time == nullptr) return ImGui::TextDisabled("%s", "measured while the simulation runs");
  const TimeReport& r = *ui.reports.time;
  draw_summary(ui, r);
  if (!r.why_not.empty()) return ImGui::TextDisabled("%s", r.why_not.c_str());
  if (r.timings.empty()) return;
  if (r.dropped > 0)
    ImGui::TextColored({1, 0.8f, 0.35f, 1}, "%llu events did not fit",
                       static_cast<unsigned long long>(r.dropped));
  if (!ImGui::BeginTabBar("time")) return;
  const bool has_stages = ImGui::BeginTabItem("Stages");
  ui.widgets.note("tab:stages");
  if (has_stages) {
    draw_timings(ui, r);
    ImGui::EndTabItem();
  }
  const bool has_timeline = ImGui::BeginTabItem("Last step");
  ui.widgets.note("tab:timeline");
  if (has_timeline) {
    draw_timeline(ui, r.last_step);
    ImGui::EndTabItem();
  }
  ImGui::EndTabBar();
}

}  // namespace coppice::viewer
