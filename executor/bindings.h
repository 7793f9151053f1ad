// Bindings are what a module's text names as $name, and whoever loads the module gives: launches, nodes,
// buffers, whatever has a registered type.
//
//   Bindings bindings;
//   bindings.add("diffuse", program.bind(diffuse, over(leaf), Heat{now, next}, 0.1f));
//   auto module = LoadedModule::load(parse("... %e1 = sparse.launch $diffuse (%e0) ..."), registry, bindings);
//
// Each is looked up once, when the module is loaded, and its type compared with what the operation takes
// (Named<T>, operation.h). Copies share the values. Thread-compatible.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "core/async_value.h"

namespace coppice::executor {

class Bindings {
 public:
  // Errors: kInvalidArgument where the name is taken, or no name (letters, digits, '_' and '.').
  template <class T>
  void add(std::string_view name, T value) {
    add_value(name, make_available_async_value<T>(std::move(value)).release_rc_reference());
  }
  // Gives a name another value. Errors: kNotFound where there is none.
  template <class T>
  void replace(std::string_view name, T value) {
    replace_value(name, make_available_async_value<T>(std::move(value)).release_rc_reference());
  }
  // Returns null where there is none.
  AsyncValue* find(std::string_view name) const;
  // Returns the name that is nearest to a misspelt one, or nothing.
  std::string nearest(std::string_view name) const;
  size_t size() const { return values_.size(); }

 private:
  void add_value(std::string_view name, RCReference<AsyncValue> value);
  void replace_value(std::string_view name, RCReference<AsyncValue> value);

  std::map<std::string, RCReference<AsyncValue>, std::less<>> values_;
};

}  // namespace coppice::executor
