// The viewer's window: hears input, draws the picture and the panels over it, and sleeps while there is
// nothing to do.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/viewer/backend.h"
#include "apps/viewer/window/glfw_window.h"
#include "apps/viewer/window/hand.h"
#include "apps/viewer/window/mouse.h"
#include "apps/viewer/window/panels.h"
#include "apps/viewer/window/picture.h"

namespace coppice::viewer {

class WindowBackend final : public ViewerBackend {
 public:
  using LoadGl = int (*)(render::GlProcLoader loader, render::GlFunctions* gl, char* error,
                         size_t error_bytes);
  // Errors: std::runtime_error with one line.
  WindowBackend(const char* title, int width, int height, LoadGl load_gl);
  ~WindowBackend() override;

  bool wants_snapshot() const override;
  void show(std::shared_ptr<const Snapshot> snapshot) override;
  bool poll(Session& session) override;  // throws nothing: what goes wrong is shown
  void wake() override;

 private:
  void start(Session& session);
  void sleep();
  bool is_due();
  bool has_work() const;
  void redraw();
  template <class F>
  void attempt(F&& act);
  void take_shown();
  void place_camera();
  void ask();
  void handle_input();
  bool scroll_slice(const InputEvent& event);
  void press(const InputEvent& event);
  void choose_tool(Tool tool);
  void click(const Mouse::Click& click);
  Vec2i pixel_at(const Vec2f& position) const;
  std::optional<PickedPoint> pick(const Vec2f& position);
  std::optional<Vec3f> seen_at(const Vec2f& position, const std::optional<PickedPoint>& picked);
  void frame_selection();
  void save_picture();
  void toggle_film();
  void add_to_film();
  void update_still();
  bool is_at_rest() const;
  void draw_picture();
  void draw_panels();
  void publish();

  GlfwWindow window_;
  render::GlFunctions gl_;
  std::unique_ptr<Picture> picture_;
  std::unique_ptr<Ui> ui_;  // from the first poll on
  ParameterPanel parameters_;
  BreakpointPanel breakpoints_;
  TimelinePanel timeline_;
  Mouse mouse_;
  Hand hand_;
  std::shared_ptr<const Snapshot> offered_;  // shown with the next frame
  std::atomic<bool> has_news_{true};
  Wanted asked_;  // last, of the simulation
  bool is_frozen_ = false;
  std::optional<render::Camera> placed_;  // where place_camera() has put it; none: a hand has led it since
  Aabb3f framed_;                         // the domain that it saw from there
  std::string noticed_;                   // the window's notice, and since when it is there
  double noticed_s_ = 0;
  std::string kernels_;   // what was said of them last
  Film* film_ = nullptr;  // the session's
  double film_began_s_ = 0;
  Vec2i film_size_ = Vec2i::Zero();
  uint64_t rested_ = 0, asked_still_ = 0;  // versions of the picture: seen last, and asked for
  double rested_s_ = 0;                    // since when it is that one
  Vec2i refused_still_ = Vec2i::Zero();    // the size of the last still picture, if it could not be drawn
  int frames_owed_ = 3;                    // panels need some frames until they have their sizes
  double drawn_s_ = -1, moved_s_ = 0;
  Vec2i laid_out_ = Vec2i::Zero();  // the size of the window that the panels were placed in
};

}  // namespace coppice::viewer
