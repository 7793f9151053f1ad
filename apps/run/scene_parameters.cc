// A scene whose keys somebody changes (see scene_parameters.h).
#include "apps/run/scene_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "apps/scene/schema_keys.h"
#include "core/error.h"

namespace coppice {
namespace {

using viewer::Parameter;

Parameter::Kind kind_of(scene::FieldKind kind) {
  switch (kind) {
    case scene::FieldKind::kBool:
      return Parameter::Kind::kBool;
    case scene::FieldKind::kInteger:
      return Parameter::Kind::kInteger;
    case scene::FieldKind::kNumber:
      return Parameter::Kind::kNumber;
    case scene::FieldKind::kChoice:
      return Parameter::Kind::kChoice;
    case scene::FieldKind::kVector:
      return Parameter::Kind::kVector;
    case scene::FieldKind::kString:
    case scene::FieldKind::kTable:
    case scene::FieldKind::kTables:
      break;
  }
  return Parameter::Kind::kText;
}

std::vector<double> numbers_of(const std::optional<scene::FieldValue>& value) {
  if (!value) return {};
  if (const auto* number = std::get_if<double>(&*value)) return {*number};
  if (const auto* integer = std::get_if<int64_t>(&*value)) return {static_cast<double>(*integer)};
  if (const auto* vector = std::get_if<std::vector<double>>(&*value)) return *vector;
  return {};
}

// The others say what is written to files, or what the scene is called, or what all other keys are made for.
bool is_offered(std::string_view path) {
  if (path.starts_with("output."))
    return path == "output.color" || path == "output.colormap" || path == "output.color_range";
  return path != "name" && path != "description" && path != "dim" && path != "time.frames";
}

// The keys of the same table that a key cannot stand beside, whichever of the two says so.
std::vector<std::string> rivals_of(const std::vector<scene::SceneKey>& keys, const std::string& path) {
  const auto table_of = [](const std::string& p) { return p.substr(0, p.rfind('.') + 1); };
  const auto conflict_of = [&](const scene::SceneKey& key) {
    const std::string& other = key.field->options.conflicts_with;
    return other.empty() ? "" : table_of(key.path) + other;
  };
  std::vector<std::string> rivals;
  for (const scene::SceneKey& key : keys) {
    if (key.path == path && !conflict_of(key).empty()) rivals.push_back(conflict_of(key));
    if (conflict_of(key) == path) rivals.push_back(key.path);
  }
  return rivals;
}

const scene::Schema<scene::SceneConfig>& schema() {
  using Schema = scene::Schema<scene::SceneConfig>;
  static const auto& the_schema =
      *new Schema(scene::scene_schema());  // never destroyed: the viewer's threads
  return the_schema;
}

}  // namespace

SceneParameters::SceneParameters(scene::SceneConfig scene, std::vector<scene::SceneOverride> overrides)
    : at_start_(std::move(scene)), wanted_(at_start_), overrides_(std::move(overrides)) {}

scene::SceneConfig SceneParameters::parse(std::span<const scene::SceneOverride> overrides) const {
  scene::SceneConfig scene = scene::parse_scene(at_start_.text, at_start_.file.string(), overrides);
  scene.file = at_start_.file;
  return scene;
}

std::vector<Parameter> SceneParameters::list() const {
  const std::vector<scene::SceneKey> now = scene::list_keys(schema(), &wanted_),
                                     before = scene::list_keys(schema(), &at_start_);
  std::vector<Parameter> all;
  for (const scene::SceneKey& key : now) {
    if (!is_offered(key.path)) continue;
    Parameter p;
    p.path = key.path, p.kind = kind_of(key.field->kind), p.value = key.text;
    p.numbers = numbers_of(key.value);
    p.choices = key.field->choices;
    p.min = key.field->options.bounds.min, p.max = key.field->options.bounds.max;
    p.unit = key.field->options.unit, p.doc = key.field->doc, p.acts = key.field->options.acts;
    if (p.kind == Parameter::Kind::kVector && !key.text.starts_with("[") && !p.numbers.empty())
      p.kind = Parameter::Kind::kNumber, p.numbers = {p.numbers.back()};  // a rotation in the plane
    const auto old = std::ranges::find(before, key.path, &scene::SceneKey::path);
    p.is_changed = old == before.end() || old->text != key.text;
    all.push_back(std::move(p));
  }
  return all;
}

void SceneParameters::set(const std::string& path, const std::string& value) {
  if (!is_offered(path))
    throw Error(ErrorCode::kUsage, fmt::format("'{}' cannot be changed in a viewer", path));
  std::vector<scene::SceneOverride> overrides = overrides_;
  std::vector<std::string> replaced = rivals_of(scene::list_keys(schema(), &wanted_), path);
  replaced.push_back(path);
  std::erase_if(overrides, [&](const scene::SceneOverride& o) {
    return std::ranges::any_of(replaced,
                               [&](const std::string& p) { return o.assignment.starts_with(p + "="); });
  });
  const std::string assignment = fmt::format("{}={}", path, value);
  overrides.push_back({assignment, assignment});
  // The whole scene is read and checked again, so that a value that does not fit the others changes nothing.
  wanted_ = parse(overrides);
  overrides_ = std::move(overrides);
}

}  // namespace coppice
