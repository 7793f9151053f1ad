// A line of a round length in the picture's corner, which says how large things are.
#include <fmt/format.h>
#include <imgui.h>

#include <cmath>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

constexpr float kMostPixels = 160;

// 1, 2 or 5 times a power of ten, as large as it may be.
float round_length(float most) {
  const float power = std::pow(10.0f, std::floor(std::log10(most)));
  for (const float digit : {5.0f, 2.0f}) {
    if (digit * power <= most) return digit * power;
  }
  return power;
}

}  // namespace

void draw_scale(Ui& ui, const Vec2f& low, const Vec2f& high) {
  const float metres = ui.camera.metres_per_pixel();
  if (!ui.view.shows_domain || !(metres > 0) || !std::isfinite(metres)) return;
  const float length_m = round_length(kMostPixels * ui.scale * metres), length = length_m / metres;
  const std::string text = fmt::format("{:g} m", length_m);
  const Vec2f size(std::max(length, ImGui::CalcTextSize(text.c_str()).x), 24 * ui.scale);
  if (high.x() - low.x() < size.x() || high.y() - low.y() < size.y()) return;
  const float x = low.x(), y = high.y() - 4 * ui.scale, tick = 4 * ui.scale;
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  const auto line = [&](float x0, float y0, float x1, float y1) {
    list.AddLine({x0 + 1, y0 + 1}, {x1 + 1, y1 + 1}, IM_COL32(0, 0, 0, 160), ui.scale);
    list.AddLine({x0, y0}, {x1, y1}, IM_COL32(230, 230, 230, 255), ui.scale);
  };
  line(x, y, x + length, y), line(x, y - tick, x, y), line(x + length, y - tick, x + length, y);
  list.AddText({x + tick + 1, y - 18 * ui.scale + 1}, IM_COL32(0, 0, 0, 160), text.c_str());
  list.AddText({x + tick, y - 18 * ui.scale}, IM_COL32(230, 230, 230, 255), text.c_str());
  ui.widgets.note("scale", {x, y - size.y()}, {x + size.x(), y});
  ui.widgets.say("scale", fmt::format("{} in {:.0f} pixels", text, length));
}

}  // namespace coppice::viewer
