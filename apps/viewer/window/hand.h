// The mouse acts as a hand in the simulation: this has its place, its strokes, and the ring around its
// reach.
//
// A stroke stays as deep as where it began. It posts one command a frame at most, and none while the
// simulation has not looked at the last one; the next one then covers that way, too.
#pragma once
#include <functional>
#include <optional>

#include "apps/viewer/window/glfw_window.h"
#include "apps/viewer/window/panels.h"

namespace coppice::viewer {

class Hand {
 public:
  // It returns the place in the world that is seen at a place of the screen.
  using Under = std::function<std::optional<Vec3f>(const Vec2f& at)>;

  // Returns true if the event was the hand's, and is nobody else's.
  bool handle(const InputEvent& event, bool is_over_panel, Ui& ui);
  // Is called once a frame, when its events were handled.
  void update(bool is_over_panel, const Under& under, Ui& ui);
  // Draws the ring, behind all panels; called between GlfwWindow::begin_ui() and end_ui().
  void draw(Ui& ui) const;
  bool is_acting() const { return is_acting_; }

 private:
  bool press(const InputEvent& event, const Ui& ui);
  void act(Ui& ui);
  bool act(const Vec3f& from, const Vec3f& to, bool is_first, Ui& ui);

  Tool tool_ = Tool::kLook;  // of the stroke; else what a press would begin
  bool is_acting_ = false, begins_ = false, ends_ = false;
  Vec2f at_ = Vec2f::Zero();       // the mouse
  std::optional<Vec3f> seen_;      // where it is in the world; none: over a panel, or nothing is shown
  std::optional<Vec3f> place_;     // the same, in the domain
  Vec3f anchor_ = Vec3f::Zero();   // as deep as the stroke is
  std::optional<Vec3f> acted_at_;  // where its last command ended
  uint64_t acted_steps_ = 0;       // that the simulation had made then
  uint64_t number_ = 0;            // of that command
};

}  // namespace coppice::viewer
