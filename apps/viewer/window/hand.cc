// Strokes and the ring (see hand.h).
#include "apps/viewer/window/hand.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>

#include <cmath>

#include "apps/viewer/hand_place.h"

namespace coppice::viewer {
namespace {

constexpr float kPerNotch = 1.1f;

ImU32 color_of(Tool tool, float alpha) {
  switch (tool) {
    case Tool::kEmit:
      return ImGui::ColorConvertFloat4ToU32({0.45f, 0.95f, 0.5f, alpha});
    case Tool::kCut:
      return ImGui::ColorConvertFloat4ToU32({1, 0.45f, 0.35f, alpha});
    default:
      return ImGui::ColorConvertFloat4ToU32({0.5f, 0.8f, 1, alpha});
  }
}

Vec2f viewport_of() {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  return {size.x, size.y};
}

}  // namespace

bool Hand::handle(const InputEvent& event, bool is_over_panel, Ui& ui) {
  at_ = event.position;
  switch (event.kind) {
    case InputEvent::Kind::kScroll:
      if (is_over_panel || (event.mods & GLFW_MOD_SHIFT) == 0 || tool_ == Tool::kLook) return false;
      ui.hand.radius_m *= std::pow(kPerNotch, event.notches);
      return true;
    case InputEvent::Kind::kButton:
      if (event.code != GLFW_MOUSE_BUTTON_LEFT) return false;
      if (event.action == GLFW_PRESS) return !is_over_panel && press(event, ui);
      if (!is_acting_) return false;
      ends_ = true;
      return true;
    case InputEvent::Kind::kMove:
      return is_acting_;
    case InputEvent::Kind::kKey:
      break;
  }
  return false;
}

bool Hand::press(const InputEvent& event, const Ui& ui) {
  const Tool tool = ui.hand.tool_for((event.mods & GLFW_MOD_CONTROL) != 0, ui.status.hands);
  if (tool == Tool::kLook) return false;
  tool_ = tool;
  begins_ = !is_acting_;
  is_acting_ = true;
  ends_ = false;
  return true;
}

void Hand::update(bool is_over_panel, const Under& under, Ui& ui) {
  if (!is_acting_) tool_ = ui.hand.tool_for(ImGui::GetIO().KeyCtrl, ui.status.hands);
  seen_.reset(), place_.reset();
  if (tool_ == Tool::kLook || !ui.shown || !ui.camera.has_begun() || (is_over_panel && !is_acting_)) {
    is_acting_ = begins_ = ends_ = false;
    return;
  }
  const Aabb3f& domain = ui.shown->domain;
  ui.hand.begin(ui.status.hands, domain);
  const render::Camera& camera = ui.camera.camera();
  // The point that is seen gives the depth; the middle of a particle need not be under the mouse.
  if (!is_acting_ || begins_) anchor_ = under(at_).value_or(ui.camera.pivot());
  seen_ = place_as_deep_as(camera, viewport_of(), at_, anchor_);
  place_ = place_in_domain(*seen_, domain, ui.shown->dim, ui.hand.radius_m);
  if (is_acting_) act(ui);
  begins_ = false;
  if (!ends_) return;
  is_acting_ = ends_ = false;
  acted_at_.reset();
}

void Hand::act(Ui& ui) {
  if (!place_) return acted_at_.reset();
  if (!ends_ && ui.status.obeyed < number_) return;
  const bool is_first = !acted_at_;
  const Vec3f from = acted_at_.value_or(*place_);
  // While nothing moves there is nothing to do again.
  if (!is_first && from == *place_ && ui.status.steps == acted_steps_) return;
  if (!act(from, *place_, is_first, ui)) return;
  acted_at_ = place_;
  acted_steps_ = ui.status.steps;
  number_ = ui.posted;
}

// Returns whether the hand is done with this way; else the next one covers it, too.
bool Hand::act(const Vec3f& from, const Vec3f& to, bool is_first, Ui& ui) {
  const HandChoice& hand = ui.hand;
  const Stroke stroke{from, to, hand.radius_m};
  switch (tool_) {
    case Tool::kEmit:
      return ui.post(Emit{to, hand.radius_m, hand.velocity_m_s, hand.material(ui.status.hands)});
    case Tool::kPush:
      if (is_first) return true;  // it has a place now, and a direction when it moves
      return from != to && ui.post(Push{stroke, push_velocity(to - from, hand.radius_m, hand.speed_m_s)});
    case Tool::kCut:
      return ui.post(Cut{stroke});
    case Tool::kLook:
      break;
  }
  return true;
}

void Hand::draw(Ui& ui) const {
  if (!seen_) return;
  const float radius = radius_on_screen(ui.camera.camera(), viewport_of(), *seen_, ui.hand.radius_m);
  ImDrawList& draw = *ImGui::GetBackgroundDrawList();
  const ImVec2 middle(at_.x(), at_.y());
  const ImU32 grey = ImGui::ColorConvertFloat4ToU32({0.7f, 0.7f, 0.7f, 0.6f});
  if (is_acting_ && place_) draw.AddCircleFilled(middle, radius, color_of(tool_, 0.15f), 64);
  // A dark line beside the bright one: it is seen before any colour.
  draw.AddCircle(middle, radius + 1.5f * ui.scale, ImGui::ColorConvertFloat4ToU32({0, 0, 0, 0.5f}), 64,
                 1.5f * ui.scale);
  draw.AddCircle(middle, radius, place_ ? color_of(tool_, 1) : grey, 64, 2 * ui.scale);
  ui.widgets.note("ring", at_ - Vec2f::Constant(radius), at_ + Vec2f::Constant(radius));
  if (place_)
    ui.widgets.say("hand at", fmt::format("{:.4f} {:.4f} {:.4f}", place_->x(), place_->y(), place_->z()));
}

}  // namespace coppice::viewer
