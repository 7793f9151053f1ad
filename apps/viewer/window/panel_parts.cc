// Numbers and graphs (see panel_parts.h).
#include "apps/viewer/window/panel_parts.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

namespace coppice::viewer {

std::string ms_text(double ms) {
  if (ms >= 1000) return fmt::format("{:.2f} s", 1e-3 * ms);
  if (ms >= 1) return fmt::format("{:.2f} ms", ms);
  return fmt::format("{:.{}f} \u00b5s", 1e3 * ms, ms >= 0.1 ? 0 : ms >= 0.001 ? 1 : 3);
}

std::string bytes_text(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024, unit = larger;
  }
  return fmt::format("{:.4g} {}", bytes, unit);
}

std::string count_text(uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ' ');
  return text;
}

void draw_graph(const std::string& id, const std::vector<float>& history, float height) {
  if (history.empty()) return;
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, 0});
  const float most = *std::max_element(history.begin(), history.end());
  ImGui::PlotLines(("##" + id).c_str(), history.data(), static_cast<int>(history.size()), 0, nullptr, 0,
                   most > 0 ? 1.1f * most : 1, {ImGui::GetContentRegionAvail().x, height});
  ImGui::PopStyleVar();
}

void draw_number_cell(const std::string& text) {
  ImGui::TableNextColumn();
  const float width = ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
  ImGui::TextUnformatted(text.c_str());
}

}  // namespace coppice::viewer
