// A colour bar, and what can be chosen of it: the map, its range, and how it runs.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "apps/render/color_scale.h"
#include "apps/render/legend.h"
#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

using render::ColorMap;

constexpr std::array kMaps = {ColorMap::kViridis, ColorMap::kInferno,  ColorMap::kMagma,
                              ColorMap::kTurbo,   ColorMap::kCoolwarm, ColorMap::kGray};
constexpr std::array<const char*, 3> kRanges = {"as given", "percentiles", "fixed"};  // as RangeChoice

ImU32 color_of(const render::Rgb& c) { return ImGui::ColorConvertFloat4ToU32({c.x(), c.y(), c.z(), 1}); }

void draw_bar(ColorMap map, const render::ColorScale& scale) {
  constexpr int kSegments = 64, kMostTicks = 5;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight(), height = line;
  // Labels of the outermost ticks stay inside.
  const float pad = 0.5f * ImGui::CalcTextSize("-0.0000").x;
  const float x0 = low.x + pad, width = std::max(ImGui::GetContentRegionAvail().x - 2 * pad, 1.0f);
  for (int i = 0; i < kSegments; ++i) {
    const float a = static_cast<float>(i) / kSegments, b = static_cast<float>(i + 1) / kSegments;
    const ImU32 left = color_of(color_at(map, a)), right = color_of(color_at(map, b));
    draw.AddRectFilledMultiColor({x0 + a * width, low.y}, {x0 + b * width, low.y + height}, left, right,
                                 right, left);
  }
  const ImU32 ink = ImGui::GetColorU32(ImGuiCol_Text);
  const render::ScalarRange& range = scale.range();
  for (const double value : scale.is_logarithmic()
                                ? render::logarithmic_ticks(range.min, range.max, kMostTicks)
                                : render::legend_ticks(range.min, range.max, kMostTicks)) {
    const float x = x0 + width * scale.at(static_cast<float>(value));
    const std::string text = fmt::format("{:.4g}", value);
    const float half = 0.5f * ImGui::CalcTextSize(text.c_str()).x;
    draw.AddLine({x, low.y + height}, {x, low.y + height + 0.3f * line}, ink);
    draw.AddText({x - half, low.y + height + 0.3f * line}, ink, text.c_str());
  }
  ImGui::Dummy({ImGui::GetContentRegionAvail().x, height + 1.4f * line});
}

void choose_map(Ui& ui, ColorChoice& choice, ColorMap shown, const std::string& key) {
  const auto name = [](ColorMap map) { return std::string(name_of(map)); };
  if (ImGui::BeginCombo("map", name(shown).c_str())) {
    for (const ColorMap map : kMaps) {
      if (ImGui::Selectable(name(map).c_str(), map == shown)) choice.map = map;
      ui.widgets.note("map:" + name(map));
    }
    ImGui::EndCombo();
  }
  ui.widgets.note("map of " + key);
}

void choose_range(Ui& ui, ColorChoice& choice, const render::ScalarRange& shown, const std::string& key) {
  const auto chosen = static_cast<size_t>(choice.range);
  if (ImGui::BeginCombo("range", kRanges[chosen])) {
    for (size_t i = 0; i < kRanges.size(); ++i) {
      if (ImGui::Selectable(kRanges[i], i == chosen)) {
        choice.range = static_cast<RangeChoice>(i);
        if (choice.range == RangeChoice::kFixed) choice.fixed = shown;  // goes on from what is seen
      }
      ui.widgets.note(std::string("range:") + kRanges[i]);
    }
    ImGui::EndCombo();
  }
  ui.widgets.note("range of " + key);
}

// A minimum and a maximum; they stay as they are when those that are given are not in order.
void edit_pair(Ui& ui, float& low, float& high, float speed, const char* format) {
  std::array<float, 2> pair = {low, high};
  ImGui::DragFloat2("from, to", pair.data(), speed, 0, 0, format);
  ui.widgets.note("from, to");
  const bool is_finite = std::isfinite(pair[0]) && std::isfinite(pair[1]);
  if (is_finite && pair[0] < pair[1]) low = pair[0], high = pair[1];
}

void edit_range(Ui& ui, ColorChoice& choice) {
  if (choice.range == RangeChoice::kPercentiles) {
    render::Percentiles& p = choice.percentiles;
    edit_pair(ui, p.low, p.high, 0.1f, "%.3g %%");
    p.low = std::clamp(p.low, 0.0f, 99.0f), p.high = std::clamp(p.high, p.low, 100.0f);
  } else if (choice.range == RangeChoice::kFixed) {
    render::ScalarRange& r = choice.fixed;
    edit_pair(ui, r.min, r.max, 0.005f * (r.max - r.min), "%.4g");
  }
}

const char* source_of(const ColorChoice& choice, bool is_given) {
  if (choice.range == RangeChoice::kFixed) return ", fixed";
  if (choice.range == RangeChoice::kPercentiles) return ", percentiles";
  return is_given ? "" : ", of the values";
}

}  // namespace

void draw_color_bar(ColorMap map, const render::ScalarRange& range, bool is_logarithmic,
                    const std::string& what) {
  draw_bar(map, render::ColorScale(range, is_logarithmic));
  ImGui::TextDisabled("%s", what.c_str());
}

void draw_colors(Ui& ui, const std::string& key, const ShownRange& shown, bool is_given,
                 bool is_given_logarithmic) {
  const auto found = ui.view.colors.find(key);
  ColorChoice choice = found == ui.view.colors.end() ? ColorChoice() : found->second;
  const std::string text =
      fmt::format("{}, {:.4g} to {:.4g}", name_of(shown.map), shown.range.min, shown.range.max);
  draw_color_bar(shown.map, shown.range, shown.is_logarithmic, text + source_of(choice, is_given));
  ui.widgets.say("colors of " + key, text + (shown.is_logarithmic ? ", logarithmic" : ""));
  ImGui::PushID(key.c_str());
  const bool is_open = ImGui::TreeNode("colours");
  ui.widgets.note("colors of " + key);
  if (is_open) {
    ImGui::PushItemWidth(ImGui::GetContentRegionAvail().x * 0.65f);
    choose_map(ui, choice, shown.map, key);
    choose_range(ui, choice, shown.range, key);
    edit_range(ui, choice);
    ImGui::PopItemWidth();
    bool is_logarithmic = shown.is_logarithmic;
    if (ImGui::Checkbox("logarithmic", &is_logarithmic)) {
      choice.is_logarithmic.reset();
      if (is_logarithmic != is_given_logarithmic) choice.is_logarithmic = is_logarithmic;
    }
    ui.widgets.note("logarithmic " + key);
    ImGui::TreePop();
  }
  ImGui::PopID();
  if (choice == ColorChoice()) {
    ui.view.colors.erase(key);
  } else {
    ui.view.colors[key] = choice;
  }
}

}  // namespace coppice::viewer
