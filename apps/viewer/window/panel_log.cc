// The program's log, by level and words.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

constexpr size_t kMostLines = 1000;

ImVec4 color_of(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return {1, 0.45f, 0.4f, 1};
    case LogLevel::kWarning:
      return {1, 0.8f, 0.35f, 1};
    case LogLevel::kDebug:
      return {0.6f, 0.6f, 0.6f, 1};
    default:
      return {0.95f, 0.95f, 0.95f, 1};
  }
}

bool has(const std::string& text, const char* words) {
  const std::string wanted = words;
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(),
                     [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }) !=
         text.end();
}

}  // namespace

void LogPanel::keep(Ui& ui) {
  if (ui.notice != notice_ && !ui.notice.empty()) ui.session.log(LogLevel::kInfo, "window: " + ui.notice);
  if (ui.picture_error != picture_error_ && !ui.picture_error.empty())
    ui.session.log(LogLevel::kError, "window: " + ui.picture_error);
  notice_ = ui.notice, picture_error_ = ui.picture_error;
}

void LogPanel::take(Ui& ui) {
  for (auto& line : ui.session.log_lines(last_)) {
    last_ = line->number;
    lines_.push_back(std::move(line));
  }
  if (lines_.size() > kMostLines)
    lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(kMostLines));
}

bool LogPanel::passes(const LogLine& line) const {
  return static_cast<int>(line.level) >= least_ && (filter_[0] == 0 || has(line.text, filter_));
}

void LogPanel::draw(Ui& ui) {
  take(ui);
  const CompileStatus c = ui.session.compile_status();
  if (c.asked > 0) {
    ImGui::TextDisabled("kernels: %llu of %llu, %llu compiled, the others from the cache; %.2f s",
                        static_cast<unsigned long long>(c.done), static_cast<unsigned long long>(c.asked),
                        static_cast<unsigned long long>(c.compiled), c.seconds);
  }
  ImGui::SetNextItemWidth(7 * ImGui::GetFontSize());
  ImGui::Combo("##level", &least_, "debug\0info\0warning\0error\0");
  ui.widgets.note("log level");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(-1);
  ImGui::InputTextWithHint("##filter", "lines that have this", filter_, sizeof filter_);
  ui.widgets.note("log filter");
  std::vector<const LogLine*> shown;
  for (const auto& line : lines_) {
    if (passes(*line)) shown.push_back(line.get());
  }
  if (ImGui::BeginChild("lines", {0, 0}, true, ImGuiWindowFlags_HorizontalScrollbar)) {
    // It follows the last line, unless somebody has gone up.
    const bool follows = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(shown.size()));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const LogLine& line = *shown[static_cast<size_t>(i)];
        ImGui::TextDisabled("%8.2f s", line.time_s);
        ImGui::SameLine();
        ImGui::PushStyleColor(ImGuiCol_Text, color_of(line.level));
        ImGui::TextUnformatted(line.text.c_str());
        ImGui::PopStyleColor();
      }
    }
    if (follows) ImGui::SetScrollHereY(1);
  }
  ImGui::EndChild();
  ui.widgets.say("log", fmt::format("{} of {} lines", shown.size(), lines_.size()));
  if (!shown.empty()) ui.widgets.say("last line", shown.back()->text);
}

void draw_log(Ui& ui) { ui.log.draw(ui); }

}  // namespace coppice::viewer
