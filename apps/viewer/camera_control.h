// Turns what a hand does with a mouse and keys into a camera.
//
// A 3-D scene is seen from a turntable: y stays up, and the camera turns about a pivot, which moves with it
// when it is panned or flown. A 2-D scene is seen from the front, and is panned and zoomed only. Lengths on
// the screen are in pixels of the viewport, x to the right, y down.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/camera_path.h"

namespace coppice::viewer {

class CameraControl {
 public:
  // Starts from a camera with y up; it turns about what that looks at. The projection says whether the scene
  // is flat. Errors: kInvalidArgument for a camera that is none.
  void begin(const render::Camera& camera);
  bool has_begun() const { return has_begun_; }
  // Returns whether anything but begin() has led the camera since, or chosen what it turns about.
  bool is_led_by_hand() const { return is_led_by_hand_; }
  void let_go() { is_led_by_hand_ = false; }
  bool is_flat() const { return camera_.projection == render::Projection::kOrthographic; }
  // Ignored when either is not positive: a window may have no area.
  void set_viewport(float width, float height);

  const render::Camera& camera() const { return camera_; }
  const Vec3f& pivot() const { return pivot_; }
  // True until the camera has stood still for a moment, so that drafts are drawn meanwhile.
  bool is_moving() const { return has_begun_ && still_s_ < kSettle_s; }

  // Returns the size of a pixel of the viewport in the world, m, at the depth of the pivot.
  float metres_per_pixel() const;

  // Turns the camera about the pivot, so that the scene turns with the mouse; a flat scene is panned.
  void orbit(const Vec2f& pixels);
  // Shifts the camera so that a point as deep as the pivot follows the mouse.
  void pan(const Vec2f& pixels);
  // Each notch takes a tenth of the distance to the pivot, which is never reached. A flat scene is zoomed
  // about `at`.
  void dolly(float notches, const Vec2f& at);
  // Widens or narrows the view; the camera stays where it is. A flat scene has no angle of view.
  void change_fov(float notches);
  // The camera turns about this point from now on; the picture stays as it is.
  void set_pivot(const Vec3f& point);
  // The direction to fly in, in the camera's axes: x to the right, y up, z backwards; zero stops.
  void set_flight(const Vec3f& direction) { flight_ = direction; }
  // Advances every motion that goes on by itself. The path does not depend on how the time is cut into
  // calls.
  void advance(float seconds);
  // Moves the camera so that it sees all of a box, in the direction in which it looks now. A box that is
  // empty or not finite is ignored.
  void frame(const Aabb3f& box);

  // Returns the table [output.camera] of a scene file; a comment for a flat scene, which needs none.
  std::string text() const;

  static constexpr float kSettle_s = 0.2f;

 private:
  void turn_to(float yaw, float pitch);
  void place();
  float pivot_depth() const;
  Mat3f world_from_camera() const;
  void moved() { still_s_ = 0, is_led_by_hand_ = true; }

  render::Camera camera_;
  Vec3f pivot_ = Vec3f::Zero();
  Vec3f arm_ = Vec3f::UnitZ();  // from the pivot to the camera, in the camera's axes
  float yaw_ = 0, pitch_ = 0;   // radians; 0: from +z; positive: to the right of it, above it
  float scale_m_ = 1;           // of what was framed last; bounds how near and how far the camera gets
  float width_ = 1, height_ = 1;
  Vec3f flight_ = Vec3f::Zero();
  float still_s_ = kSettle_s;
  bool has_begun_ = false, is_led_by_hand_ = false;
};

// Adds a key at its place in time, or puts it in place of the one that has its time.
void put_key(std::vector<render::CameraKey>& keys, const render::CameraKey& key);
// Returns the tables [[output.camera.keyframe]] of a scene file.
std::string keyframes_text(std::span<const render::CameraKey> keys);

}  // namespace coppice::viewer
