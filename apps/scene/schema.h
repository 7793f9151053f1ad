// A schema: the keys of a TOML table declared once, in code, as members of a struct. The one declaration
// parses, checks and documents.
//
//   Schema<Time> schema("Frames and time steps.");
//   schema.field("frames", &Time::frames, "frames to write", {.bounds = between(1, 100000)})
//       .field("fps", &Time::fps, "frames per second", {.unit = "1/s", .bounds = above(0)});
//   Time time = schema.read(document);
//
// The default of a key is what a default-constructed struct holds. Member types: bool, integers, floating
// point, std::string, enums with enum_names() (see below), Vec2d, Vec3d, structs (table), std::optional of
// these, and std::vector of structs (tables). A member `TableOrigin origin` is filled with where the keys
// were written. Every error is one line with file, line, column and key path. Schemas are immutable once
// built and copy cheaply enough to be built per use.
//
// An enum E takes part by `std::span<const std::string_view> enum_names(E)` in its own namespace: the names
// in the order of the enumerators, which count up from 0.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "apps/scene/document.h"
#include "apps/scene/field_types.h"

namespace coppice::scene {

// Says where a table and its keys were written. Keys that were not given are absent.
struct TableOrigin {
  InputLocation table;
  std::map<std::string, InputLocation, std::less<>> keys;

  bool has(std::string_view key) const { return keys.find(key) != keys.end(); }
  // The key's own place, or the table's when it was not given.
  const InputLocation& of(std::string_view key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? table : found->second;
  }
};

// Type-erased schema of one table: `void*` always points at the struct that Schema<T> was made for.
class TableSchema {
 public:
  struct Field {
    std::string key;
    FieldKind kind = FieldKind::kTable;
    std::string doc;
    FieldOptions options;
    std::vector<std::string> choices;                            // kChoice only
    std::size_t vector_size = 0;                                 // kVector only: components of the member
    std::optional<FieldValue> default_value;                     // absent: unset by default
    std::function<std::optional<FieldValue>(const void*)> load;  // values only
    std::function<void(void*, const FieldValue&)> store;         // values only
    std::function<void*(void*)> child;  // kTable: the member; kTables: a new last element
    std::function<std::vector<const void*>(const void*)>
        children;                              // kTable: the member, if any; kTables: all elements
    std::shared_ptr<const TableSchema> table;  // kTable, kTables
  };

  explicit TableSchema(std::string doc) : doc_(std::move(doc)) {}

  const std::string& doc() const { return doc_; }
  const std::vector<Field>& fields() const { return fields_; }

  // Fills `*object`, which must be default-constructed. Throws kUsage for all unknown keys, or else at the
  // first mistake.
  void read_into(void* object, const Document& document) const;

  // The reference in Markdown: this table's keys, then each sub-table under a heading of its own.
  std::string describe() const { return describe_table(""); }

 protected:
  void add(Field field);

  std::function<TableOrigin*(void*)> origin_of_;  // empty when T has no member `origin`

 private:
  friend class TableReader;

  std::string describe_table(const std::string& path) const;

  std::string doc_;
  std::vector<Field> fields_;
};

template <class T>
class Schema : public TableSchema {
 public:
  explicit Schema(std::string doc) : TableSchema(std::move(doc)) {
    if constexpr (requires(T & t) { TableOrigin(t.origin); }) {
      origin_of_ = [](void* object) { return &static_cast<T*>(object)->origin; };
    }
  }

  template <class M>
  Schema& field(std::string key, M T::*member, std::string doc, FieldOptions options = {}) {
    Field f{
        .key = std::move(key), .kind = kind_of<M>(), .doc = std::move(doc), .options = std::move(options)};
    f.options.bounds = intersect(f.options.bounds, natural_bounds<M>());
    f.choices = choices_of<M>();
    f.vector_size = vector_size_of<M>();
    f.default_value = to_value(T{}.*member);
    f.load = [member](const void* object) { return to_value(static_cast<const T*>(object)->*member); };
    f.store = [member](void* object, const FieldValue& value) {
      from_value(value, static_cast<T*>(object)->*member);
    };
    add(std::move(f));
    return *this;
  }

  template <class M>
  Schema& table(std::string key, M T::*member, Schema<M> schema, FieldOptions options = {}) {
    Field f{
        .key = std::move(key), .kind = FieldKind::kTable, .doc = schema.doc(), .options = std::move(options)};
    f.child = [member](void* object) -> void* { return &(static_cast<T*>(object)->*member); };
    f.children = [member](const void* object) {
      return std::vector<const void*>{&(static_cast<const T*>(object)->*member)};
    };
    f.table = std::make_shared<Schema<M>>(std::move(schema));
    add(std::move(f));
    return *this;
  }

  // A table that may be absent: its keys are none of the struct's then.
  template <class M>
  Schema& table(std::string key, std::optional<M> T::*member, Schema<M> schema, FieldOptions options = {}) {
    Field f{
        .key = std::move(key), .kind = FieldKind::kTable, .doc = schema.doc(), .options = std::move(options)};
    f.child = [member](void* object) -> void* { return &(static_cast<T*>(object)->*member).emplace(); };
    f.children = [member](const void* object) {
      const std::optional<M>& table = static_cast<const T*>(object)->*member;
      return table ? std::vector<const void*>{&*table} : std::vector<const void*>{};
    };
    f.table = std::make_shared<Schema<M>>(std::move(schema));
    add(std::move(f));
    return *this;
  }

  template <class M>
  Schema& tables(std::string key, std::vector<M> T::*member, Schema<M> schema, FieldOptions options = {}) {
    Field f{.key = std::move(key),
            .kind = FieldKind::kTables,
            .doc = schema.doc(),
            .options = std::move(options)};
    f.child = [member](void* object) -> void* { return &(static_cast<T*>(object)->*member).emplace_back(); };
    f.children = [member](const void* object) {
      std::vector<const void*> all;
      for (const M& element : static_cast<const T*>(object)->*member) all.push_back(&element);
      return all;
    };
    f.table = std::make_shared<Schema<M>>(std::move(schema));
    add(std::move(f));
    return *this;
  }

  T read(const Document& document) const {
    T value{};
    read_into(&value, document);
    return value;
  }
};

}  // namespace coppice::scene
