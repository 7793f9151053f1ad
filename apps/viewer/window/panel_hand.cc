// This panel has what the mouse does to the simulation: the tools, how far they reach, and what they
// give.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

constexpr float kLeastRadius = 0.002f, kMostRadius = 0.5f;  // of the domain's longest side
constexpr float kLeastSpeed = 0.01f, kMostSpeed = 100;      // of the one that suits it
constexpr float kFirstRadius = 0.08f;                       // where the simulation has no wish

struct ToolInfo {
  Tool tool;
  const char *name, *key, *tip;
};
constexpr ToolInfo kTools[] = {{Tool::kLook, "look", "L", "The left button turns the camera"},
                               {Tool::kEmit, "emit", "M", "Adds a ball of material where there is room"},
                               {Tool::kPush, "push", "U", "Particles go along with the mouse"},
                               {Tool::kCut, "cut", "C", "Takes particles out"}};

void draw_tools(Ui& ui) {
  bool is_first = true;
  for (const ToolInfo& t : kTools) {
    if (!offers(ui.status.hands, t.tool)) continue;
    if (!is_first) ImGui::SameLine();
    is_first = false;
    if (ImGui::RadioButton(t.name, ui.hand.tool == t.tool)) ui.hand.choose(t.tool);
    ui.widgets.note(std::string("tool:") + t.name);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s (%s)", t.tip, t.key);
    if (ui.hand.tool == t.tool) ui.widgets.say("tool", t.name);
  }
}

void draw_materials(Ui& ui) {
  const std::vector<std::string>& materials = ui.status.hands.materials;
  const std::string now = ui.hand.material(ui.status.hands);
  const bool is_open = ImGui::BeginCombo("material", now.c_str());
  ui.widgets.note("hand material");
  if (!is_open) return;
  for (size_t i = 0; i < materials.size(); ++i) {
    if (ImGui::Selectable(materials[i].c_str(), materials[i] == now)) ui.hand.material_number = i;
    ui.widgets.note("material:" + materials[i]);
  }
  ImGui::EndCombo();
}

}  // namespace

bool offers(const Hands& hands, Tool tool) {
  switch (tool) {
    case Tool::kLook:
      return hands.has_any();
    case Tool::kEmit:
      return !hands.materials.empty();
    case Tool::kPush:
      return hands.pushes;
    case Tool::kCut:
      return hands.cuts;
  }
  return false;
}

void HandChoice::choose(Tool wanted) {
  tool = wanted == tool ? Tool::kLook : wanted;
  if (tool != Tool::kLook) last = tool;
}

Tool HandChoice::tool_for(bool has_control, const Hands& hands) const {
  if (tool != Tool::kLook) return offers(hands, tool) ? tool : Tool::kLook;
  if (!has_control) return Tool::kLook;
  for (const Tool t : {last, Tool::kPush, Tool::kEmit, Tool::kCut})
    if (offers(hands, t)) return t;
  return Tool::kLook;
}

void HandChoice::begin(const Hands& hands, const Aabb3f& domain) {
  const float side = domain.size().maxCoeff();
  if (radius_m <= 0) radius_m = hands.radius_m > 0 ? hands.radius_m : kFirstRadius * side;
  if (speed_m_s <= 0) speed_m_s = hands.speed_m_s > 0 ? hands.speed_m_s : 1;
  if (side > 0) radius_m = std::clamp(radius_m, kLeastRadius * side, kMostRadius * side);
}

std::string HandChoice::material(const Hands& hands) const {
  if (hands.materials.empty()) return {};
  return hands.materials[std::min(material_number, hands.materials.size() - 1)];
}

void draw_hand(Ui& ui) {
  const Hands& hands = ui.status.hands;
  if (!hands.has_any() || !ui.shown) return;
  draw_tools(ui);
  if (ui.hand.tool == Tool::kLook) return;
  const Aabb3f& domain = ui.shown->domain;
  ui.hand.begin(hands, domain);
  const float side = domain.size().maxCoeff(), speed = hands.speed_m_s > 0 ? hands.speed_m_s : 1;
  const float width = ImGui::GetContentRegionAvail().x * 0.6f;
  ImGui::SetNextItemWidth(width);
  ImGui::SliderFloat("radius", &ui.hand.radius_m, kLeastRadius * side, kMostRadius * side, "%.3g m",
                     ImGuiSliderFlags_Logarithmic);
  ui.widgets.note("hand radius");
  ui.widgets.say("hand radius", fmt::format("{:.4g}", ui.hand.radius_m));
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Shift + wheel");
  if (ui.hand.tool == Tool::kPush) {
    ImGui::SetNextItemWidth(width);
    ImGui::SliderFloat("speed", &ui.hand.speed_m_s, kLeastSpeed * speed, kMostSpeed * speed, "%.3g m/s",
                       ImGuiSliderFlags_Logarithmic);
    ui.widgets.note("hand speed");
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("That particles get while the mouse moves by a radius");
  } else if (ui.hand.tool == Tool::kEmit) {
    ImGui::SetNextItemWidth(width);
    draw_materials(ui);
    ImGui::SetNextItemWidth(width);
    ImGui::DragFloat3("velocity", ui.hand.velocity_m_s.data(), 0.01f * speed, 0, 0, "%.3g");
    ui.widgets.note("hand velocity");
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("m/s, of what comes");
  }
}

}  // namespace coppice::viewer
