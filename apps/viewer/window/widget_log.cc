// Writes the widgets' rectangles.
#include "apps/viewer/window/widget_log.h"

#include <fmt/format.h>
#include <imgui.h>

#include <cstdlib>

#include "apps/viewer/parameter_text.h"
#include "core/atomic_file.h"

namespace coppice::viewer {

WidgetLog::WidgetLog() {
  if (const char* path = std::getenv("COPPICE_VIEW_TEST")) path_ = path;
}

void WidgetLog::begin_frame() {
  ++frame_;
  widgets_.clear();
  state_.clear();
}

void WidgetLog::note(const std::string& name) {
  if (!is_on() || !ImGui::IsItemVisible()) return;
  const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
  note(name, {low.x, low.y}, {high.x, high.y});
}

void WidgetLog::note(const std::string& name, const Vec2f& low, const Vec2f& high) {
  if (is_on()) widgets_[name] = {low.x(), low.y(), high.x(), high.y()};
}

void WidgetLog::say(const std::string& key, const std::string& value) {
  if (is_on()) state_[key] = value;
}

void WidgetLog::publish(const Vec2i& origin) {
  if (!is_on()) return;
  const float x = static_cast<float>(origin.x()), y = static_cast<float>(origin.y());
  std::string state, widgets;
  // TOML's basic strings are JSON's.
  for (const auto& [key, value] : state_) {
    state += fmt::format("{}{}: {}", state.empty() ? "" : ", ", toml_text(key), toml_text(value));
  }
  for (const auto& [name, box] : widgets_) {
    widgets += fmt::format("{}{}: [{}, {}, {}, {}]", widgets.empty() ? "" : ", ", toml_text(name), box[0] + x,
                           box[1] + y, box[2] + x, box[3] + y);
  }
  AtomicFile file(path_);
  file.write(
      fmt::format("{{\"frame\": {}, \"state\": {{{}}}, \"widgets\": {{{}}}}}\n", frame_, state, widgets));
  file.commit();
}

}  // namespace coppice::viewer
