// The functions that a step runs: a box per operation, below those that it waits for.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/viewer/window/panel_parts.h"
#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

// The longest way, in operations, that leads to each.
std::vector<int> layers_of(const std::vector<GraphOperation>& operations) {
  std::vector<int> layers(operations.size(), 0);
  for (size_t round = 0; round < operations.size(); ++round) {
    for (size_t op = 0; op < operations.size(); ++op) {
      for (const uint32_t w : operations[op].waits) {
        const int below = std::min(layers[w] + 1, static_cast<int>(operations.size()) - 1);
        layers[op] = std::max(layers[op], below);
      }
    }
  }
  return layers;
}

struct Box {
  ImVec2 low, high;
};

std::vector<Box> place(const FunctionGraph& graph, const ImVec2& from, float width, float height, float gap) {
  const std::vector<int> layers = layers_of(graph.operations);
  std::vector<int> in_layer(graph.operations.size() + 1, 0), number(graph.operations.size());
  for (size_t op = 0; op < layers.size(); ++op) number[op] = in_layer[static_cast<size_t>(layers[op])]++;
  std::vector<Box> boxes;
  for (size_t op = 0; op < layers.size(); ++op) {
    const float each = width / static_cast<float>(in_layer[static_cast<size_t>(layers[op])]);
    const ImVec2 low(from.x + each * static_cast<float>(number[op]),
                     from.y + static_cast<float>(layers[op]) * (height + gap));
    boxes.push_back({low, {low.x + each - 0.5f * gap, low.y + height}});
  }
  return boxes;
}

void draw_edge(ImDrawList& draw, const Box& from, const Box& to, ImU32 color, float arrow) {
  const ImVec2 a(0.5f * (from.low.x + from.high.x), from.high.y), b(0.5f * (to.low.x + to.high.x), to.low.y);
  draw.AddLine(a, b, color, 1.5f);
  draw.AddTriangleFilled(b, {b.x - 0.5f * arrow, b.y - arrow}, {b.x + 0.5f * arrow, b.y - arrow}, color);
}

void draw_operation(ImDrawList& draw, const GraphOperation& op, const Box& box, double most_ms, float pad) {
  const ImU32 hot = IM_COL32(255, 170, 60, 255), ink = ImGui::GetColorU32(ImGuiCol_Text);
  draw.AddRectFilled(box.low, box.high, ImGui::GetColorU32(ImGuiCol_FrameBg), 3);
  const float share = most_ms > 0 ? static_cast<float>(op.ms / most_ms) : 0;
  draw.AddRectFilled(box.low, {box.low.x + share * (box.high.x - box.low.x), box.high.y},
                     IM_COL32(150, 95, 30, 150), 3);
  draw.AddRect(box.low, box.high, op.is_critical ? hot : ImGui::GetColorU32(ImGuiCol_TextDisabled), 3, 0,
               op.is_critical ? 1.5f : 1.0f);
  const std::string time = op.ms > 0 ? ms_text(op.ms) : "";
  const float time_width = ImGui::CalcTextSize(time.c_str()).x, y = box.low.y + 0.5f * pad;
  draw.AddText({box.high.x - pad - time_width, y}, ink, time.c_str());
  draw.PushClipRect(box.low, {box.high.x - 2 * pad - time_width, box.high.y}, true);
  const bool has_kernel = !op.text.starts_with(op.event);
  draw.AddText({box.low.x + pad, y}, ink, op.text.c_str());
  if (has_kernel) {
    const float x =
        box.low.x + 2 * pad + std::max(ImGui::CalcTextSize(op.text.c_str()).x, 11 * ImGui::GetFontSize());
    draw.AddText({x, y}, ImGui::GetColorU32(ImGuiCol_TextDisabled), op.event.c_str());
  }
  draw.PopClipRect();
}

void draw_function(Ui& ui, const FunctionGraph& graph) {
  double sum_ms = 0, most_ms = 0;
  for (const GraphOperation& op : graph.operations) sum_ms += op.ms, most_ms = std::max(most_ms, op.ms);
  ImGui::TextDisabled("critical path %s of %s, a single run", ms_text(graph.critical_ms).c_str(),
                      ms_text(sum_ms).c_str());
  if (!ImGui::BeginChild("graph")) return ImGui::EndChild();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float pad = 0.4f * ImGui::GetFontSize(), height = ImGui::GetTextLineHeight() + pad,
              gap = 1.1f * ImGui::GetFontSize();
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const float width = std::max(ImGui::GetContentRegionAvail().x, 1.0f);
  const std::vector<Box> boxes = place(graph, from, width, height, gap);
  const ImU32 hot = IM_COL32(255, 170, 60, 255), faint = ImGui::GetColorU32(ImGuiCol_TextDisabled);
  float bottom = from.y;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const GraphOperation& op = graph.operations[i];
    for (const uint32_t w : op.waits) {
      const bool is_hot = op.is_critical && graph.operations[w].is_critical;
      draw_edge(draw, boxes[w], boxes[i], is_hot ? hot : faint, 0.5f * gap);
    }
    bottom = std::max(bottom, boxes[i].high.y);
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    const GraphOperation& op = graph.operations[i];
    draw_operation(draw, op, boxes[i], most_ms, pad);
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(boxes[i].low, boxes[i].high))
      ImGui::SetTooltip("%s\n%s, %s", op.text.c_str(), op.event.c_str(),
                        op.ms > 0 ? ms_text(op.ms).c_str() : "no time of its own on the device");
  }
  ImGui::Dummy({width, bottom - from.y});
  ImGui::EndChild();
  std::string path;
  for (const GraphOperation& op : graph.operations) {
    if (op.is_critical) path += (path.empty() ? "" : " ") + op.event;
  }
  ui.widgets.say("graph", graph.name + ": " + path);
}

}  // namespace

void draw_graphs(Ui& ui) {
  if (ui.reports.graphs == nullptr || ui.reports.graphs->empty())
    return ImGui::TextDisabled("%s", "asked for behind the batch under way");
  const std::vector<FunctionGraph>& graphs = *ui.reports.graphs;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (i > 0) ImGui::SameLine();
    if (ImGui::RadioButton(graphs[i].name.c_str(), ui.graph == i)) ui.graph = i;
    ui.widgets.note("graph:" + graphs[i].name);
  }
  draw_function(ui, graphs[std::min(ui.graph, graphs.size() - 1)]);
}

}  // namespace coppice::viewer
