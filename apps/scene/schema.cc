// Schema construction and the reference text that a schema writes about itself.
#include "apps/scene/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cmath>

#include "apps/scene/schema_text.h"
#include "core/check.h"

namespace coppice::scene {
namespace {

using Field = TableSchema::Field;

const Field* find_field(const std::vector<Field>& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

std::string kind_text(const Field& field) {
  switch (field.kind) {
    case FieldKind::kBool:
      return "true or false";
    case FieldKind::kInteger:
      return "integer";
    case FieldKind::kNumber:
      return "number";
    case FieldKind::kString:
      return "string";
    case FieldKind::kChoice:
      return fmt::format("one of \"{}\"", fmt::join(field.choices, "\", \""));
    case FieldKind::kVector:
      break;
    case FieldKind::kTable:
    case FieldKind::kTables:
      return "table";
  }
  switch (field.options.vector) {
    case VectorRule::kSpatial:
      return "vector";
    case VectorRule::kRotation:
      return "[x, y, z]; in 2-D one number";
    case VectorRule::kFixed:
      break;
  }
  return "list of numbers";
}

// Leaves out limits that only catch slips and the C++ type's overflow: a scene's author need not know
// these. Errors still name them.
Bounds stated_bounds(const Bounds& bounds) {
  constexpr double kSlip = 1.0e6;
  Bounds stated = bounds;
  if (bounds.min <= -kSlip) stated.min = -std::numeric_limits<double>::infinity();
  if (bounds.max >= kSlip) stated.max = std::numeric_limits<double>::infinity();
  return stated;
}

std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".";
}

std::string field_line(const Field& field) {
  const FieldOptions& options = field.options;
  std::string text = fmt::format("- `{}`: {}", field.key, kind_text(field));
  if (!options.unit.empty()) text += fmt::format(", {}", options.unit);
  if (const std::string range = bounds_text(stated_bounds(options.bounds)); !range.empty())
    text += fmt::format(", {}", range);
  if (options.required) {
    text += ", **required**";
  } else if (!options.default_text.empty()) {
    text += fmt::format(", default {}", options.default_text);
  } else if (field.default_value) {
    text += fmt::format(", default {}", value_text(*field.default_value));
  }
  if (!options.only_if.key.empty()) text += fmt::format("; {}", condition_text(options.only_if));
  if (!options.conflicts_with.empty())
    text += fmt::format("; not together with `{}`", options.conflicts_with);
  return fmt::format("{}. {}\n", text, sentence(field.doc));
}

}  // namespace

void TableSchema::add(Field field) {
  COPPICE_CHECK(!find_field(fields_, field.key), "a schema declares key '{}' twice", field.key);
  COPPICE_CHECK(field.table || !field.doc.empty(), "'{}' has no sentence for the reference", field.key);
  const Condition& condition = field.options.only_if;
  if (!condition.key.empty()) {
    const Field* chooser = find_field(fields_, condition.key);
    COPPICE_CHECK(chooser && chooser->kind == FieldKind::kChoice,
                  "'{}' depends on '{}', which is no earlier choice", field.key, condition.key);
    for (const std::string& value : condition.values) {
      COPPICE_CHECK(std::ranges::count(chooser->choices, value) == 1, "'{}' depends on unknown {} \"{}\"",
                    field.key, condition.key, value);
    }
  }
  fields_.push_back(std::move(field));
}

std::string TableSchema::describe_table(const std::string& path) const {
  std::string text = doc_ + "\n\n";
  std::string tables;
  for (const Field& field : fields_) {
    if (!field.table) {
      text += field_line(field);
      continue;
    }
    const std::string table_path = path.empty() ? field.key : path + "." + field.key;
    tables += field.kind == FieldKind::kTables ? fmt::format("\n## [[{}]]", table_path)
                                               : fmt::format("\n## [{}]", table_path);
    if (!field.options.only_if.key.empty())
      tables += fmt::format(", {}", condition_text(field.options.only_if));
    tables += "\n\n" + field.table->describe_table(table_path);
  }
  return text + tables;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value == 0.0 ? 0.0 : value);  // no "-0"
}

std::string value_text(const FieldValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("\"{}\"", *text);
  std::vector<std::string> components;
  for (const double component : std::get<std::vector<double>>(value))
    components.push_back(number_text(component));
  return fmt::format("[{}]", fmt::join(components, ", "));
}

std::string bounds_text(const Bounds& bounds) {
  const bool has_min = std::isfinite(bounds.min);
  const bool has_max = std::isfinite(bounds.max);
  const std::string min =
      fmt::format("{} {}", bounds.min_excluded ? "above" : "at least", number_text(bounds.min));
  const std::string max =
      fmt::format("{} {}", bounds.max_excluded ? "below" : "at most", number_text(bounds.max));
  if (has_min && has_max && !bounds.min_excluded && !bounds.max_excluded) {
    return fmt::format("{} to {}", number_text(bounds.min), number_text(bounds.max));
  }
  if (has_min && has_max) return min + " and " + max;
  return has_min ? min : has_max ? max : "";
}

std::string condition_text(const Condition& condition) {
  return fmt::format("only with {} = \"{}\"", condition.key, fmt::join(condition.values, "\" or \""));
}

}  // namespace coppice::scene
