// This panel shows what trees' memory is spent on, node by node.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <string>

#include "apps/viewer/window/panel_parts.h"
#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

// "dense[8,8,8]" of "grid.pointer[64,64,64].dense[8,8,8]".
std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

void draw_node(const NodeMemory& n) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const float indent = static_cast<float>(n.depth) * 0.8f * ImGui::GetFontSize();
  if (indent > 0) ImGui::Indent(indent);
  ImGui::TextUnformatted(last_part(n.path).c_str());
  if (ImGui::IsItemHovered()) {
    ImGui::SetTooltip("%s%s", n.path.c_str(),
                      n.has_cells ? "" : "\nIts memory lies in the cells of the node above.");
  }
  if (indent > 0) ImGui::Unindent(indent);
  draw_number_cell(count_text(n.active));
  draw_number_cell(n.has_cells ? count_text(n.free) : "");
  draw_number_cell(n.has_cells ? count_text(n.collected) : "");
  if (n.has_cells && ImGui::IsItemHovered()) {
    const std::string tip = fmt::format("made free by {} collections so far; {} wait for the next one",
                                        count_text(n.collections), count_text(n.recycled));
    ImGui::SetTooltip("%s", tip.c_str());
  }
  draw_number_cell(count_text(n.capacity));
  draw_number_cell(bytes_text(static_cast<double>(n.bytes)));
  ImGui::TableNextColumn();
  draw_graph(n.path, n.history, ImGui::GetTextLineHeight());
}

void draw_tree(Ui& ui, const TreeMemory& t) {
  ImGui::TextColored({0.6f, 0.75f, 0.95f, 1}, "%s", t.name.c_str());
  ImGui::SameLine();
  const std::string summary =
      fmt::format("{} committed, {} collections in {}", bytes_text(static_cast<double>(t.bytes)),
                  count_text(t.collections), ms_text(1e3 * t.collection_s));
  ImGui::TextUnformatted(summary.c_str());
  draw_graph(t.name, t.history, 1.6f * ImGui::GetTextLineHeight());
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("bytes committed, each tenth of a second");
  constexpr auto kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable(t.name.c_str(), 7, kFlags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupColumn("node", ImGuiTableColumnFlags_WidthStretch, 2.5f);
  for (const char* name : {"active", "free", "recycled", "capacity"})
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed, 4.4f * em);
  ImGui::TableSetupColumn("memory", ImGuiTableColumnFlags_WidthFixed, 5 * em);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  for (const NodeMemory& n : t.nodes) {
    ImGui::PushID(n.path.c_str());
    draw_node(n);
    ImGui::PopID();
  }
  ImGui::EndTable();
  ui.widgets.say("memory:" + t.name,
                 fmt::format("{} bytes, {} nodes, {} collections", t.bytes, t.nodes.size(), t.collections));
}

}  // namespace

void draw_memory(Ui& ui) {
  if (ui.reports.memory == nullptr) return ImGui::TextDisabled("%s", "asked for behind the batch under way");
  const MemoryState& m = *ui.reports.memory;
  for (size_t i = 0; i < m.trees.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));  // several may have one name
    draw_tree(ui, m.trees[i]);
    ImGui::PopID();
  }
  if (m.buffers.empty()) return;
  std::string beside;
  for (const BufferMemory& b : m.buffers) {
    if (b.bytes == 0) continue;
    beside += fmt::format("{}{} {}", beside.empty() ? "beside the trees: " : ", ", b.name,
                          bytes_text(static_cast<double>(b.bytes)));
  }
  ImGui::TextWrapped("%s", beside.c_str());
}

}  // namespace coppice::viewer
