// Drags, clicks, the wheel and flight.
#include "apps/viewer/window/mouse.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace coppice::viewer {
namespace {

constexpr float kStill = 4;  // a press that moves no farther is a click
constexpr double kDoubleClick_s = 0.35;

}  // namespace

std::optional<Mouse::Click> Mouse::handle(const InputEvent& event, bool is_over_panel,
                                          CameraControl& camera) {
  switch (event.kind) {
    case InputEvent::Kind::kMove:
      move(event.position, camera);
      break;
    case InputEvent::Kind::kScroll:
      if (is_over_panel) break;
      if ((event.mods & GLFW_MOD_CONTROL) != 0) {
        camera.change_fov(event.notches);
      } else {
        camera.dolly(event.notches, event.position);
      }
      break;
    case InputEvent::Kind::kButton:
      if (event.action == GLFW_PRESS && drag_ == Drag::kNone && !is_over_panel) press(event);
      if (event.action == GLFW_RELEASE && drag_ != Drag::kNone && event.code == button_)
        return release(event, camera);
      break;
    case InputEvent::Kind::kKey:
      handle_key(event, camera);
      break;
  }
  return std::nullopt;
}

void Mouse::press(const InputEvent& event) {
  const bool is_middle = event.code == GLFW_MOUSE_BUTTON_MIDDLE,
             has_shift = (event.mods & GLFW_MOD_SHIFT) != 0;
  if (event.code == GLFW_MOUSE_BUTTON_LEFT || (is_middle && !has_shift)) {
    drag_ = Drag::kOrbit;
  } else if (event.code == GLFW_MOUSE_BUTTON_RIGHT || is_middle) {
    drag_ = Drag::kPan;
  } else {
    return;
  }
  button_ = event.code;
  has_moved_ = false;
  pressed_at_ = last_ = event.position;
}

void Mouse::move(const Vec2f& to, CameraControl& camera) {
  if (drag_ == Drag::kNone) return;
  if (!has_moved_ && (to - pressed_at_).norm() <= kStill) return;
  has_moved_ = true;
  if (drag_ == Drag::kOrbit) {
    camera.orbit(to - last_);
  } else {
    camera.pan(to - last_);
  }
  last_ = to;
}

std::optional<Mouse::Click> Mouse::release(const InputEvent& event, CameraControl& camera) {
  move(event.position, camera);
  drag_ = Drag::kNone;
  fly(camera);
  if (event.code != GLFW_MOUSE_BUTTON_LEFT || has_moved_) return std::nullopt;
  const bool is_double =
      event.time_s - clicked_s_ < kDoubleClick_s && (event.position - clicked_at_).norm() <= kStill;
  clicked_s_ = is_double ? -1e9 : event.time_s;
  clicked_at_ = event.position;
  return Click{event.position, is_double};
}

void Mouse::handle_key(const InputEvent& event, CameraControl& camera) {
  if (event.action == GLFW_PRESS) keys_.insert(event.code);
  if (event.action == GLFW_RELEASE) keys_.erase(event.code);
  fly(camera);
}

void Mouse::fly(CameraControl& camera) const {
  const auto axis = [&](int positive, int negative) {
    return static_cast<float>(static_cast<int>(keys_.count(positive)) -
                              static_cast<int>(keys_.count(negative)));
  };
  const bool flies = drag_ == Drag::kPan && button_ == GLFW_MOUSE_BUTTON_RIGHT;
  camera.set_flight(
      flies ? Vec3f(axis(GLFW_KEY_D, GLFW_KEY_A), axis(GLFW_KEY_E, GLFW_KEY_Q), axis(GLFW_KEY_S, GLFW_KEY_W))
            : Vec3f::Zero());
}

}  // namespace coppice::viewer
