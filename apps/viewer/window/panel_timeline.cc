// This bar along the bottom of the window shows where in time a recorded run stands.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {

bool Ui::go_to_frame(int64_t frame) {
  if (!shown || !shown->playback) return false;
  const Playback& t = *shown->playback;
  return post(SetParameter{kPlaybackPath, fmt::format("{}", std::clamp(frame, t.first, t.last))});
}

float TimelinePanel::draw(Ui& ui, const Vec2f& low, const Vec2f& high) {
  if (!ui.shown || !ui.shown->playback) return 0;
  const Playback& t = *ui.shown->playback;
  ImGui::SetNextWindowPos({low.x(), high.y()}, ImGuiCond_Always, {0, 1});
  ImGui::SetNextWindowSize({high.x() - low.x(), 0}, ImGuiCond_Always);
  constexpr int kBare = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize |
                        ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoSavedSettings;
  if (ImGui::Begin("Timeline", nullptr, kBare)) {
    int64_t frame = dragged_.value_or(t.now);
    const std::string text = fmt::format("frame %lld of {}, {:.4g} s", t.last, ui.shown->time_s);
    ImGui::SetNextItemWidth(-1);
    const bool has_moved =
        ImGui::SliderScalar("##frame", ImGuiDataType_S64, &frame, &t.first, &t.last, text.c_str());
    ui.widgets.note("timeline");
    ui.widgets.say("frame", fmt::format("{}", t.now));
    if (has_moved) dragged_ = frame;
    // Commands are posted one at a time: frames take longer to read than a hand to move.
    if (dragged_ && dragged_ != posted_ && ui.status.obeyed >= number_ && ui.go_to_frame(*dragged_))
      posted_ = dragged_, number_ = ui.posted;
    if (!ImGui::IsItemActive() && dragged_ == posted_ && ui.status.obeyed >= number_)
      dragged_.reset(), posted_.reset();
  }
  const float height = ImGui::GetWindowHeight();
  ImGui::End();
  return height;
}

}  // namespace coppice::viewer
