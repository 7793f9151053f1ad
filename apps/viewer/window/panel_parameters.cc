// This panel has one widget per parameter, by its kind; a change is posted when the hand lets go.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "apps/viewer/parameter_text.h"
#include "apps/viewer/window/panels.h"

namespace coppice::viewer {
namespace {

constexpr double kDecades = 1e3;       // from this ratio of the bounds on, a slider is logarithmic
constexpr double kPatience_s = 5;      // how long a posted value is shown that the simulation has not taken
constexpr double kWidest = 1000;       // bounds farther apart are too far to slide between, but by decades
constexpr double kMostInteger = 1e15;  // that a double still has all of

const char* words_of(Acts acts) {
  switch (acts) {
    case Acts::kNow:
      return "now";
    case Acts::kRestart:
      return "restart";
  }
  return "";
}

// "emitter[0].jelly" of "emitter[0].jelly.nu".
std::string group_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// Returns the name without the unit that some names end with: that has a column.
std::string name_in_group(const Parameter& p) {
  std::string name = p.path.substr(p.path.rfind('.') + 1);
  if (!p.unit.empty() && name.ends_with("_" + p.unit)) name.resize(name.size() - p.unit.size() - 1);
  return name;
}

// Returns the contents of a TOML string, for an input field; escapes but those of quotes and backslashes
// stay as they are.
std::string unquoted(const std::string& toml) {
  if (toml.size() < 2 || toml.front() != '"') return toml;
  std::string text;
  for (size_t i = 1; i + 1 < toml.size(); ++i) {
    if (toml[i] == '\\' && (toml[i + 1] == '"' || toml[i + 1] == '\\')) ++i;
    text += toml[i];
  }
  return text;
}

// A group is open at first where something in it acts at once.
bool draw_group(Ui& ui, const std::string& group) {
  const bool acts_now = std::any_of(ui.parameters.begin(), ui.parameters.end(), [&](const Parameter& p) {
    return group_of(p.path) == group && p.acts == Acts::kNow;
  });
  const bool is_open = ImGui::CollapsingHeader(group.c_str(), acts_now ? ImGuiTreeNodeFlags_DefaultOpen : 0);
  ui.widgets.note("group:" + group);
  return is_open;
}

}  // namespace

bool ParameterPanel::draw_numbers(const Parameter& p, Value& value) {
  const bool is_logarithmic = p.min > 0 && p.max >= kDecades * p.min && std::isfinite(p.max);
  const bool is_slider = is_logarithmic || (p.max > p.min && p.max - p.min <= kWidest);
  const bool is_integer = p.kind == Parameter::Kind::kInteger;
  std::vector<int64_t> integers(value.numbers.begin(), value.numbers.end());
  const int64_t least = is_integer ? std::llround(std::max(p.min, -kMostInteger)) : 0;
  const int64_t most = is_integer ? std::llround(std::min(p.max, kMostInteger)) : 0;
  const double low = p.min, high = p.max;
  const auto type = is_integer ? ImGuiDataType_S64 : ImGuiDataType_Double;
  void* const data = is_integer ? static_cast<void*>(integers.data()) : value.numbers.data();
  const void* const from = is_integer ? static_cast<const void*>(&least) : &low;
  const void* const to = is_integer ? static_cast<const void*>(&most) : &high;
  const int count = static_cast<int>(value.numbers.size());
  const char* const format = is_integer ? "%lld" : "%.6g";
  if (is_slider) {
    const int flags = ImGuiSliderFlags_AlwaysClamp | (is_logarithmic ? ImGuiSliderFlags_Logarithmic : 0);
    ImGui::SliderScalarN("##value", type, data, count, from, to, format, flags);
  } else {
    double size = 0;
    for (const double number : value.numbers) size = std::max(size, std::abs(number));
    const float speed =
        static_cast<float>(is_integer ? std::max(0.2, 0.01 * size) : std::max(1e-3, 0.01 * size));
    // A drag's bounds act only when both are given: the other is far away.
    const double far_low = std::max(p.min, -1e300), far_high = std::min(p.max, 1e300);
    ImGui::DragScalarN("##value", type, data, count, speed, is_integer ? from : &far_low,
                       is_integer ? to : &far_high, format, ImGuiSliderFlags_AlwaysClamp);
  }
  if (is_integer) value.numbers.assign(integers.begin(), integers.end());
  value.text = toml_value(p.kind, value.numbers);
  return ImGui::IsItemDeactivatedAfterEdit();
}

bool ParameterPanel::draw_text(const Parameter& p, Value& value) {
  if (edited_ != p.path) {
    const std::string text = unquoted(value.text);
    std::memset(buffer_, 0, sizeof(buffer_));
    text.copy(buffer_, sizeof(buffer_) - 1);
  }
  ImGui::InputText("##value", buffer_, sizeof(buffer_));
  value.text = toml_text(buffer_);
  return ImGui::IsItemDeactivatedAfterEdit();
}

bool ParameterPanel::draw_widget(const Parameter& p, Value& value) {
  switch (p.kind) {
    case Parameter::Kind::kBool: {
      bool is_on = value.text == "true";
      const bool is_changed = ImGui::Checkbox("##value", &is_on);
      value.text = is_on ? "true" : "false";
      return is_changed;
    }
    case Parameter::Kind::kChoice: {
      const std::string now = unquoted(value.text);
      bool is_changed = false;
      if (!ImGui::BeginCombo("##value", now.empty() ? "not set" : now.c_str())) return false;
      for (const std::string& choice : p.choices) {
        if (!ImGui::Selectable(choice.c_str(), choice == now)) continue;
        value.text = toml_text(choice);
        is_changed = choice != now;
      }
      ImGui::EndCombo();
      return is_changed;
    }
    case Parameter::Kind::kText:
      return draw_text(p, value);
    default:
      break;
  }
  if (!value.numbers.empty()) return draw_numbers(p, value);
  if (p.kind == Parameter::Kind::kVector) {
    ImGui::TextDisabled("not set");
    return false;
  }
  if (!ImGui::Button("not set")) return false;
  value.numbers = {std::clamp(0.0, p.min, p.max)};
  value.text = toml_value(p.kind, value.numbers);
  return true;
}

void ParameterPanel::draw_tooltip(const Parameter& p) const {
  ImGui::BeginTooltip();
  ImGui::TextUnformatted(p.path.c_str());
  ImGui::PushTextWrapPos(25 * ImGui::GetFontSize());
  if (!p.doc.empty()) ImGui::TextUnformatted(p.doc.c_str());
  std::string more = fmt::format("acts: {}", words_of(p.acts));
  if (!p.unit.empty()) more += fmt::format("; unit: {}", p.unit);
  if (std::isfinite(p.min) || std::isfinite(p.max))
    more += fmt::format("; from {:.6g} to {:.6g}", p.min, p.max);
  ImGui::TextDisabled("%s", more.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void ParameterPanel::draw_row(Ui& ui, const Parameter& p) {
  ImGui::PushID(p.path.c_str());
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  const std::string name = name_in_group(p) + (p.is_changed ? " *" : "");
  ImGui::TextColored(p.is_changed ? ImVec4(1, 0.8f, 0.35f, 1) : ImGui::GetStyleColorVec4(ImGuiCol_Text), "%s",
                     name.c_str());
  if (ImGui::IsItemHovered()) draw_tooltip(p);

  ImGui::TableNextColumn();
  Value value{p.numbers, p.value};
  const auto posted = posted_.find(p.path);
  if (posted != posted_.end()) {
    const Posted& mine = posted->second;
    const bool is_answered = p.value != mine.before || ui.status.notice != mine.notice;
    if (is_answered || ImGui::GetTime() - mine.time_s > kPatience_s) {
      posted_.erase(posted);
    } else {
      value = mine.value;
    }
  }
  if (edited_ == p.path) value = edit_;
  ImGui::SetNextItemWidth(-1);
  const bool is_done = draw_widget(p, value);
  ui.widgets.note("parameter:" + p.path);
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) draw_tooltip(p);
  if (ImGui::IsItemActive()) {
    edited_ = p.path;
    edit_ = value;
  } else if (edited_ == p.path) {
    edited_.clear();
  }
  if (is_done) {
    posted_[p.path] = {value, p.value, ui.status.notice, ImGui::GetTime()};
    if (ui.post(SetParameter{p.path, value.text}) && p.acts == Acts::kRestart) ui.restart_number = ui.posted;
  }

  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", p.unit.c_str());
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", words_of(p.acts));
  ImGui::PopID();
}

void ParameterPanel::draw(Ui& ui) {
  if (ui.parameters.empty()) {
    ImGui::TextDisabled("none that can be changed");
    return;
  }
  const bool has_changed = std::any_of(ui.parameters.begin(), ui.parameters.end(),
                                       [](const Parameter& p) { return p.is_changed; });
  ImGui::BeginDisabled(!has_changed);
  if (ImGui::Button("Copy as TOML"))
    ui.copy("the changed parameters as TOML", changed_as_toml(ui.parameters));
  ui.widgets.note("copy toml");
  ImGui::SameLine();
  if (ImGui::Button("Copy as --set"))
    ui.copy("the changed parameters as --set", changed_as_arguments(ui.parameters));
  ui.widgets.note("copy set");
  ImGui::EndDisabled();
  if (ui.restart_number > ui.status.reset) {
    ImGui::SameLine();
    if (ImGui::Button("Apply: reset")) ui.reset();
    ui.widgets.note("apply");
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Something was changed that acts after a reset");
  }

  std::string group;
  bool is_open = true, has_table = false;
  const auto end_table = [&] {
    if (has_table) ImGui::EndTable();
    has_table = false;
  };
  for (const Parameter& p : ui.parameters) {
    if (group_of(p.path) != group) {
      end_table();
      group = group_of(p.path);
      is_open = group.empty() || draw_group(ui, group);
    }
    if (!is_open) continue;
    if (!has_table) {
      has_table = ImGui::BeginTable(("##" + group).c_str(), 4);
      if (!has_table) continue;
      ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthStretch, 0.9f);
      ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch, 1.1f);
      ImGui::TableSetupColumn("unit", ImGuiTableColumnFlags_WidthFixed, ImGui::CalcTextSize("degrees").x);
      ImGui::TableSetupColumn("acts", ImGuiTableColumnFlags_WidthFixed, ImGui::CalcTextSize("restart").x);
    }
    draw_row(ui, p);
  }
  end_table();
}

}  // namespace coppice::viewer
