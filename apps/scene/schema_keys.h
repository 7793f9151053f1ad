// Lists all keys that a struct has by its schema, with their values: for widgets.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/scene/schema.h"

namespace coppice::scene {

struct SceneKey {
  std::string path;                 // "emitter[0].jelly.youngs_modulus_Pa", as overrides take it
  const TableSchema::Field* field;  // of the schema that was listed
  std::optional<FieldValue> value;  // absent: unset
  std::string text;                 // the value as TOML; empty where it is unset
};

// Returns the keys in the order of declaration, without those whose condition does not hold. `object` is
// of the type that the schema describes; the schema outlives the result.
std::vector<SceneKey> list_keys(const TableSchema& schema, const void* object);

}  // namespace coppice::scene
