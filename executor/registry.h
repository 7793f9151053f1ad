// The operations and value types that functions can name.
//
//   Registry registry;
//   add_builtin_operations(registry);                       // builtin_operations.h, control_flow.h
//   registry.add_type<Mesh>("mesh");
//   registry.add("mesh.area", [](const Mesh& m) { return m.area(); }, {.cost = 20});
//
// operation.h says what a C++ function may look like; its arguments, results and attributes are read off
// its type. Registering is for one thread at a time; afterwards any thread may read a registry.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "executor/operation_info.h"
#include "executor/signature.h"

namespace coppice::executor {

// A handle: copies share what is registered, and each loaded module holds one.
class Registry {
 public:
  Registry();
  Registry(const Registry&) = default;
  Registry& operator=(const Registry&) = default;

  // Names a payload type. Chain ("chain"), bool, int32_t ("i32"), int64_t, float ("f32"),
  // double, std::string and HostBytes ("bytes") are there.
  template <class T>
  void add_type(std::string_view name) {
    constexpr bool kIsNumber = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_empty_v<T>;
    add_type(typeid(T), name, !kIsNumber || !std::is_trivially_copyable_v<T>);
  }
  // A name that is taken is a failed check, and so is an argument or result whose type has no name.
  template <class F>
  void add(std::string_view name, F function, OperationTraits traits = {}, InferTypes infer = nullptr);

  // Adds an out variant: a function that writes its results of type `bytes` where its OutBytes parameters
  // say. If no operation has the name, there is one now, which does the same with memory of its own, and
  // uses that no variant matches are errors when a module is loaded; else the signatures are the same, or a
  // check fails. All variants come before the modules that are to use them.
  template <class F>
  void add_out_variant(std::string_view name, F function,
                       std::function<bool(const OperationUse&)> matches = {}, int in_place = -1);
  // Adds another function for a registered operation, which makes its results itself. It takes plain values,
  // constants and named things, and returns plain values; functions of that kind given to add() are native
  // already, unless they run where they may block.
  template <class F>
  void add_native(std::string_view name, F function, std::function<bool(const OperationUse&)> matches = {});

  const OperationInfo* find(std::string_view name) const;
  // Returns the registered name that is nearest to a misspelt one, or nothing.
  std::string nearest(std::string_view name) const;
  bool has_type(std::string_view name) const;
  std::string_view type_name(std::type_index type) const;  // failed check when there is none
  // Returns whether values of the type may refer to other values' memory: all but numbers and empty types.
  bool may_refer(std::string_view name) const;
  // Returns whether a value, which may come from outside, is known to hold, now or later, the type with
  // that name.
  bool is_type(const AsyncValue& value, std::string_view name) const;
  // Returns the name of the type that it holds; a type that has no name here is shown as in C++.
  std::string type_name_of(const AsyncValue& value) const;

 private:
  void add_type(std::type_index type, std::string_view name, bool may_refer);
  void add(OperationInfo info);
  void add(std::string_view name, Implementation implementation, const OperationInfo& signature, bool is_out);

  struct Tables {
    std::unordered_map<std::type_index, std::string> type_names;
    std::unordered_map<std::string_view, std::type_index> types;  // by the names in type_names
    std::unordered_map<std::string_view, bool> may_refer;         // by these, too
    std::map<std::string, OperationInfo, std::less<>> operations;
  };
  std::shared_ptr<Tables> tables_ = std::make_shared<Tables>();
};

}  // namespace coppice::executor

#include "executor/registry_inl.h"
