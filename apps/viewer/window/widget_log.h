// Tells a test where the widgets are: with COPPICE_VIEW_TEST=file, each frame rewrites that
// file as JSON, whole or not at all.
//
//   {"frame": 7, "state": {"run": "paused", ...}, "widgets": {"pause": [x0, y0, x1, y1], ...}}
//
// Rectangles are in the screen's units from its top-left corner; those of parameters are named
// parameter:<path>.
#pragma once
#include <map>
#include <string>

#include "core/math.h"

namespace coppice::viewer {

class WidgetLog {
 public:
  WidgetLog();  // reads the environment
  bool is_on() const { return !path_.empty(); }

  void begin_frame();
  // Notes the item that Dear ImGui was given last.
  void note(const std::string& name);
  void note(const std::string& name, const Vec2f& low, const Vec2f& high);
  void say(const std::string& key, const std::string& value);
  // `origin`: of the window on the screen. Errors: kIo.
  void publish(const Vec2i& origin);

 private:
  std::string path_;
  uint64_t frame_ = 0;
  std::map<std::string, Vec4f> widgets_;
  std::map<std::string, std::string> state_;
};

}  // namespace coppice::viewer
