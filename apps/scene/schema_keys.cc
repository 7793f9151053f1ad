// Lists the keys of a struct (see schema_keys.h).
#include "apps/scene/schema_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/scene/schema_text.h"

namespace coppice::scene {
namespace {

using Field = TableSchema::Field;

struct Lister {
  std::vector<SceneKey> keys;
  int dimension = 3;

  static bool applies(const TableSchema& schema, const Field& field, const void* object) {
    const Condition& only_if = field.options.only_if;
    if (only_if.key.empty()) return true;
    const auto chooser = std::ranges::find(schema.fields(), only_if.key, &Field::key);
    const std::optional<FieldValue> chosen = chooser->load(object);
    return chosen && std::ranges::count(only_if.values, std::get<std::string>(*chosen)) > 0;
  }

  // In 2-D a rotation is one number, the one about z.
  std::string text_of(const Field& field, const FieldValue& value) const {
    const bool is_angle = field.options.vector == VectorRule::kRotation && dimension == 2;
    const auto* components = std::get_if<std::vector<double>>(&value);
    return is_angle && components != nullptr ? value_text(components->back()) : value_text(value);
  }

  void list(const TableSchema& schema, const void* object, const std::string& prefix) {
    for (const Field& field : schema.fields()) {
      if (!applies(schema, field, object)) continue;
      if (!field.table) {
        SceneKey key{prefix + field.key, &field, field.load(object), ""};
        if (key.value) key.text = text_of(field, *key.value);
        if (field.options.is_dimension && key.value)
          dimension = static_cast<int>(std::get<std::int64_t>(*key.value));
        keys.push_back(std::move(key));
        continue;
      }
      const std::vector<const void*> children = field.children(object);
      for (size_t i = 0; i < children.size(); ++i) {
        const std::string index = field.kind == FieldKind::kTables ? fmt::format("[{}]", i) : "";
        list(*field.table, children[i], prefix + field.key + index + ".");
      }
    }
  }
};

}  // namespace

std::vector<SceneKey> list_keys(const TableSchema& schema, const void* object) {
  Lister lister;
  lister.list(schema, object, "");
  return std::move(lister.keys);
}

}  // namespace coppice::scene
