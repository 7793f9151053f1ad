// This is a GLFW window with an OpenGL 3.3 core context and Dear ImGui in it; it keeps the input since
// one last asked.
#pragma once
#include <string>
#include <vector>

#include "apps/viewer/key_queue.h"
#include "core/math.h"

struct GLFWwindow;

namespace coppice::viewer {

struct InputEvent {
  enum class Kind { kKey, kButton, kMove, kScroll };
  Kind kind;
  int code = 0;    // GLFW's key or button
  int action = 0;  // GLFW_PRESS, GLFW_RELEASE, GLFW_REPEAT
  int mods = 0;    // GLFW_MOD_...
  Vec2f position =
      Vec2f::Zero();  // of the mouse then; the screen's units from the window's top-left corner, y down
  float notches = 0;  // of the wheel
  double time_s = 0;
};

class GlfwWindow {
 public:
  // There is one window at a time. Errors: std::runtime_error with one line.
  GlfwWindow(const char* title, int width, int height);
  ~GlfwWindow();
  GlfwWindow(const GlfwWindow&) = delete;
  GlfwWindow& operator=(const GlfwWindow&) = delete;

  void make_current();
  void release_current();
  // Waits for events until there is one, or for so long; not at all when it is not positive.
  void wait(double seconds);
  // Returns events in order; none when nothing was done since the last call.
  std::vector<InputEvent> take_events();
  // Returns whether anything happened since the last call that the picture may depend on: input, size,
  // exposure, focus.
  bool take_touched();
  bool should_close() const;
  void close();
  void hide();

  void begin_ui();  // of the keys that wait, it has those of one frame; for more there is to be another frame
  void end_ui();    // draws it and shows the frame

  Vec2i size() const;      // the screen's units
  Vec2i pixels() const;    // of the framebuffer; zero while the window is nothing
  Vec2i position() const;  // of its inside on the screen
  float ui_scale() const { return ui_scale_; }
  const std::string& renderer() const { return renderer_; }

  GLFWwindow* handle() const { return window_; }
  void heard(InputEvent event);  // the callbacks'
  void heard(const KeyEvent& event);
  void touch() { is_touched_ = true; }

 private:
  void open(const char* title, int width, int height);
  void hear();
  void begin_imgui();
  void hear_keys();
  void shut();

  GLFWwindow* window_ = nullptr;
  bool has_ui_ = false, has_ui_platform_ = false, has_ui_renderer_ = false;
  float ui_scale_ = 1;
  std::string renderer_;
  std::vector<InputEvent> events_;
  KeyQueue keys_;                // for Dear ImGui
  Vec2f mouse_ = Vec2f::Zero();  // at the last event
  bool is_touched_ = true;
};

}  // namespace coppice::viewer
