// The mouse moves the camera, and clicks somewhere.
#pragma once
#include <optional>
#include <set>

#include "apps/viewer/camera_control.h"
#include "apps/viewer/window/glfw_window.h"

namespace coppice::viewer {

class Mouse {
 public:
  struct Click {
    Vec2f position;
    bool is_double = false;
  };
  // A press or a turn of the wheel over a panel is the panel's. Returns a click, once the button is let go.
  std::optional<Click> handle(const InputEvent& event, bool is_over_panel, CameraControl& camera);
  // Handles the keys WASD and QE, which fly while the right button is held.
  void handle_key(const InputEvent& event, CameraControl& camera);
  bool is_held(int key) const { return keys_.count(key) != 0; }

 private:
  enum class Drag { kNone, kOrbit, kPan };
  void press(const InputEvent& event);
  void move(const Vec2f& to, CameraControl& camera);
  std::optional<Click> release(const InputEvent& event, CameraControl& camera);
  void fly(CameraControl& camera) const;

  Drag drag_ = Drag::kNone;
  int button_ = 0;  // that drags
  bool has_moved_ = false;
  Vec2f pressed_at_ = Vec2f::Zero(), last_ = Vec2f::Zero();
  Vec2f clicked_at_ = Vec2f::Zero();
  double clicked_s_ = -1e9;
  std::set<int> keys_;  // held
};

}  // namespace coppice::viewer
