// Reads a TOML table through its schema: the checks and the wording of every complaint about a scene.
//
// Order of checks: unknown keys (all of them, in the whole document), then table by table each declared
// key in the order of declaration.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "apps/scene/document_impl.h"
#include "apps/scene/schema.h"
#include "apps/scene/schema_text.h"
#include "core/nearest_name.h"

namespace coppice::scene {
namespace {

using Field = TableSchema::Field;

std::string node_kind(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return fmt::format("the string \"{}\"", node.ref<std::string>());
    case toml::node_type::integer:
      return fmt::format("the integer {}", node.ref<std::int64_t>());
    case toml::node_type::floating_point:
      return fmt::format("the number {}", number_text(node.ref<double>()));
    case toml::node_type::boolean:
      return node.ref<bool>() ? "true" : "false";
    default:
      return "a date or time";
  }
}

// Collects every key path of the schema ("time.frames"; array elements without index), for suggestions
// across tables.
void collect_paths(const TableSchema& schema, const std::string& prefix, std::vector<std::string>& paths) {
  for (const Field& field : schema.fields()) {
    paths.push_back(prefix + field.key);
    if (field.table) collect_paths(*field.table, prefix + field.key + ".", paths);
  }
}

std::string last_segment(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

// One read of one document. `path` is the key path of the table being read, "" for the root.
class TableReader {
 public:
  TableReader(const Document::Impl& document, const TableSchema& root) : document_(document), root_(root) {}

  void refuse_unknown_keys() const;
  void read(const TableSchema& schema, const toml::table& table, void* object, const std::string& path);

 private:
  struct UnknownKey {
    std::string path, suggestion;
    InputLocation at;
  };
  void find_unknown_keys(const TableSchema& schema, const toml::table& table, const std::string& path,
                         std::vector<UnknownKey>& found) const;
  std::string suggestion(const TableSchema& schema, const std::string& key, const std::string& path) const;
  bool applies(const TableSchema& schema, const Field& field, const void* object) const;
  void read_present(const Field& field, const toml::node& node, void* object, const std::string& path);
  void read_tables(const Field& field, const toml::node& node, void* object, const std::string& path);

  FieldValue value_of(const Field& field, const toml::node& node, const std::string& path) const;
  double number_of(const toml::node& node, const std::string& path, std::string_view expected) const;
  FieldValue string_of(const toml::node& node, const std::string& path) const;
  FieldValue integer_of(const toml::node& node, const std::string& path) const;
  FieldValue choice_of(const Field& field, const toml::node& node, const std::string& path) const;
  FieldValue vector_of(const Field& field, const toml::node& node, const std::string& path) const;
  void check_vector_size(const Field& field, const toml::node& node, const std::string& path,
                         std::vector<double>& components) const;
  std::string shown(const Field& field, const FieldValue& value) const;
  void check_bounds(const Field& field, const toml::node& node, const std::string& path,
                    const FieldValue& value) const;

  Error error_at(const toml::node& node, const std::string& message) const {
    return input_error(document_.locate(node), message);
  }
  bool is_override(const toml::node& node) const { return document_.locate(node).line == 0; }
  Error wrong_type(const toml::node& node, const std::string& path, std::string_view expected) const {
    return error_at(node, fmt::format("'{}' must be {}, not {}", path, expected, node_kind(node)));
  }

  const Document::Impl& document_;
  const TableSchema& root_;
  int dimension_ = 3;
};

void TableReader::read(const TableSchema& schema, const toml::table& table, void* object,
                       const std::string& path) {
  TableOrigin* origin = schema.origin_of_ ? schema.origin_of_(object) : nullptr;
  if (origin) origin->table = document_.locate(table);
  if (origin) {
    for (const auto& [key, node] : table) origin->keys[std::string(key.str())] = document_.locate(node, &key);
  }
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const Field& field : schema.fields()) {
    const toml::node* node = table.get(field.key);
    const std::string key_path = prefix + field.key;
    const bool allowed = applies(schema, field, object);
    const Condition& condition = field.options.only_if;
    if (!node) {
      if (!field.options.required || !allowed) continue;
      const std::string why = condition.key.empty() ? "" : fmt::format(" ({})", condition_text(condition));
      throw input_error(document_.locate(table),
                        fmt::format("'{}' is required but missing{}", key_path, why));
    }
    if (!allowed) {
      throw error_at(*node, fmt::format("'{}' does not apply here: {}", key_path, condition_text(condition)));
    }
    const std::string& other = field.options.conflicts_with;
    if (const toml::node* rival = other.empty() ? nullptr : table.get(other)) {
      // An override takes the place of what the file has, of the other key, too.
      if (is_override(*node) == is_override(*rival)) {
        throw error_at(*node, fmt::format("'{}' and '{}{}' cannot both be given", key_path, prefix, other));
      }
      if (!is_override(*node)) continue;
    }
    read_present(field, *node, object, key_path);
  }
}

void TableReader::refuse_unknown_keys() const {
  constexpr size_t kMostNamed = 8;
  std::vector<UnknownKey> found;
  find_unknown_keys(root_, document_.root, "", found);
  if (found.empty()) return;
  // toml++ sorts keys by name; the user reads from the top, and overrides come behind the file.
  std::ranges::stable_sort(found, {}, [](const UnknownKey& key) {
    return std::tuple(key.at.line == 0, key.at.line, key.at.column);
  });
  const UnknownKey& first = found.front();
  if (found.size() == 1)
    throw input_error(first.at, fmt::format("unknown key '{}'; {}", first.path, first.suggestion));
  std::string text = fmt::format("{} unknown keys: ", found.size());
  for (size_t i = 0; i < std::min(found.size(), kMostNamed); ++i) {
    const UnknownKey& key = found[i];
    const bool is_told = i == 0 || (key.at.line == 0 && key.at.file == found[i - 1].at.file);
    const std::string where = is_told            ? ""
                              : key.at.line == 0 ? fmt::format(" in {}", key.at.file)
                                                 : fmt::format(" at {}:{}", key.at.line, key.at.column);
    text += fmt::format("{}'{}'{} ({})", i == 0 ? "" : ", ", key.path, where, key.suggestion);
  }
  if (found.size() > kMostNamed) text += fmt::format(", and {} more", found.size() - kMostNamed);
  throw input_error(first.at, text);
}

void TableReader::find_unknown_keys(const TableSchema& schema, const toml::table& table,
                                    const std::string& path, std::vector<UnknownKey>& found) const {
  for (const auto& [key, node] : table) {
    const std::string name(key.str()), full = path.empty() ? name : path + "." + name;
    const auto field = std::ranges::find(schema.fields(), name, &Field::key);
    if (field == schema.fields().end()) {
      found.push_back({full, suggestion(schema, name, path), document_.locate(node, &key)});
    } else if (field->kind == FieldKind::kTable && node.is_table()) {
      find_unknown_keys(*field->table, *node.as_table(), full, found);
    } else if (field->kind == FieldKind::kTables && node.is_array()) {
      size_t index = 0;
      for (const toml::node& element : *node.as_array()) {
        const std::string element_path = fmt::format("{}[{}]", full, index++);
        if (element.is_table()) find_unknown_keys(*field->table, *element.as_table(), element_path, found);
      }
    }
  }
}

std::string TableReader::suggestion(const TableSchema& schema, const std::string& key,
                                    const std::string& path) const {
  std::vector<std::string> own;
  for (const Field& field : schema.fields()) own.push_back(field.key);
  const std::string prefix = path.empty() ? "" : path + ".";
  std::vector<std::string> all;  // the very key in another table says more than a similar one here
  collect_paths(root_, "", all);
  for (const std::string& candidate : all) {
    if (edit_distance(last_segment(candidate), key) == 0) return fmt::format("did you mean '{}'?", candidate);
  }
  if (const auto near = nearest_name(key, own)) return fmt::format("did you mean '{}{}'?", prefix, *near);
  return fmt::format("the keys here are {}", fmt::join(own, ", "));
}

bool TableReader::applies(const TableSchema& schema, const Field& field, const void* object) const {
  const Condition& condition = field.options.only_if;
  if (condition.key.empty()) return true;
  const auto chooser = std::ranges::find(schema.fields(), condition.key, &Field::key);
  const std::optional<FieldValue> chosen = chooser->load(object);
  return chosen && std::ranges::count(condition.values, std::get<std::string>(*chosen)) > 0;
}

void TableReader::read_present(const Field& field, const toml::node& node, void* object,
                               const std::string& path) {
  if (field.kind == FieldKind::kTables) {
    read_tables(field, node, object, path);
  } else if (field.kind == FieldKind::kTable) {
    if (!node.is_table()) throw wrong_type(node, path, "a table");
    read(*field.table, *node.as_table(), field.child(object), path);
  } else {
    const FieldValue value = value_of(field, node, path);
    check_bounds(field, node, path, value);
    if (field.options.is_dimension) dimension_ = static_cast<int>(std::get<std::int64_t>(value));
    field.store(object, value);
  }
}

void TableReader::read_tables(const Field& field, const toml::node& node, void* object,
                              const std::string& path) {
  const toml::array* elements = node.as_array();
  if (!elements) {
    throw wrong_type(node, path, fmt::format("a list of tables, each written under [[{}]]", path));
  }
  std::size_t index = 0;
  for (const toml::node& element : *elements) {
    const std::string element_path = fmt::format("{}[{}]", path, index++);
    if (!element.is_table()) throw wrong_type(element, element_path, "a table");
    read(*field.table, *element.as_table(), field.child(object), element_path);
  }
}

FieldValue TableReader::value_of(const Field& field, const toml::node& node, const std::string& path) const {
  switch (field.kind) {
    case FieldKind::kBool:
      if (!node.is_boolean()) throw wrong_type(node, path, "true or false");
      return node.ref<bool>();
    case FieldKind::kString:
      return string_of(node, path);
    case FieldKind::kInteger:
      return integer_of(node, path);
    case FieldKind::kNumber:
      return number_of(node, path, "a number");
    case FieldKind::kChoice:
      return choice_of(field, node, path);
    default:
      return vector_of(field, node, path);
  }
}

double TableReader::number_of(const toml::node& node, const std::string& path,
                              std::string_view expected) const {
  if (node.is_integer()) return static_cast<double>(node.ref<std::int64_t>());
  if (!node.is_floating_point()) throw wrong_type(node, path, expected);
  const double number = node.ref<double>();
  if (!std::isfinite(number))
    throw error_at(node, fmt::format("'{}' must be finite, not {}", path, number_text(number)));
  return number;
}

// Names and descriptions go to terminals, which do as control characters say.
FieldValue TableReader::string_of(const toml::node& node, const std::string& path) const {
  if (!node.is_string()) throw wrong_type(node, path, "a string");
  const std::string& text = node.ref<std::string>();
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte >= 0x20 && byte != 0x7f && !is_c1) continue;
    const int code = is_c1 ? static_cast<unsigned char>(text[i + 1]) : byte;
    throw error_at(
        node, fmt::format("'{}' has the control character U+{:04X}; expected one line of text", path, code));
  }
  return text;
}

FieldValue TableReader::integer_of(const toml::node& node, const std::string& path) const {
  if (!node.is_integer()) throw wrong_type(node, path, "an integer");
  return node.ref<std::int64_t>();
}

FieldValue TableReader::choice_of(const Field& field, const toml::node& node, const std::string& path) const {
  const std::string allowed = fmt::format("\"{}\"", fmt::join(field.choices, "\", \""));
  if (!node.is_string()) throw wrong_type(node, path, "one of " + allowed);
  const std::string& name = node.ref<std::string>();
  if (std::ranges::count(field.choices, name) > 0) return name;
  const auto near = nearest_name(name, field.choices);
  const std::string hint = near ? fmt::format("; did you mean \"{}\"?", *near) : "";
  throw error_at(node, fmt::format("'{}' must be one of {}, not \"{}\"{}", path, allowed, name, hint));
}

FieldValue TableReader::vector_of(const Field& field, const toml::node& node, const std::string& path) const {
  std::vector<double> components;
  if (field.options.vector == VectorRule::kRotation && dimension_ == 2) {
    return std::vector<double>{0.0, 0.0, number_of(node, path, "one number (dim = 2), about z")};
  }
  const toml::array* elements = node.as_array();
  if (!elements) throw wrong_type(node, path, "a list of numbers");
  for (const toml::node& element : *elements) {
    components.push_back(number_of(element, fmt::format("{}[{}]", path, components.size()), "a number"));
  }
  check_vector_size(field, node, path, components);
  return components;
}

void TableReader::check_vector_size(const Field& field, const toml::node& node, const std::string& path,
                                    std::vector<double>& components) const {
  const std::size_t member_size = field.vector_size;
  const bool planar = field.options.vector == VectorRule::kSpatial && dimension_ == 2;
  const std::size_t expected = planar ? 2 : member_size;
  if (planar && components.size() == 3 && components[2] == 0.0) return;
  if (planar && components.size() == 3) {
    throw error_at(node, fmt::format("'{}' must have 2 numbers (dim = 2) or a third one that is 0, not {}",
                                     path, number_text(components[2])));
  }
  if (components.size() != expected) {
    const bool spatial = field.options.vector != VectorRule::kFixed;
    throw error_at(node,
                   fmt::format("'{}' must have {} numbers{}, not {}", path, expected,
                               spatial ? fmt::format(" (dim = {})", dimension_) : "", components.size()));
  }
  components.resize(member_size, 0.0);
}

// Returns the value as it is written: in two dimensions without what only three have.
std::string TableReader::shown(const Field& field, const FieldValue& value) const {
  const auto* components = std::get_if<std::vector<double>>(&value);
  const bool is_planar =
      components != nullptr && dimension_ == 2 && field.options.vector != VectorRule::kFixed;
  if (!is_planar) return value_text(value);
  if (field.options.vector == VectorRule::kRotation) return number_text(components->back());
  return value_text(std::vector<double>(components->begin(), components->begin() + 2));
}

void TableReader::check_bounds(const Field& field, const toml::node& node, const std::string& path,
                               const FieldValue& value) const {
  const Bounds& bounds = field.options.bounds;
  const auto check = [&](double number, std::size_t index) {
    const bool unused = field.kind == FieldKind::kVector && field.options.vector == VectorRule::kSpatial &&
                        index >= static_cast<std::size_t>(dimension_);
    if (unused || bounds.contains(number)) return;
    const std::string unit = field.options.unit.empty() ? "" : " " + field.options.unit;
    throw error_at(node, fmt::format("'{}' is {}; allowed is {}{}", path, shown(field, value),
                                     bounds_text(bounds), unit));
  };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) check(static_cast<double>(*integer), 0);
  if (const auto* number = std::get_if<double>(&value)) check(*number, 0);
  if (const auto* components = std::get_if<std::vector<double>>(&value)) {
    for (std::size_t i = 0; i < components->size(); ++i) check((*components)[i], i);
  }
}

void TableSchema::read_into(void* object, const Document& document) const {
  TableReader reader(document.impl(), *this);
  reader.refuse_unknown_keys();
  reader.read(*this, document.impl().root, object, "");
}

}  // namespace coppice::scene
