// The table of what is bound (see bindings.h).
#include "executor/bindings.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/error.h"
#include "core/nearest_name.h"
#include "executor/names.h"

namespace coppice::executor {

void Bindings::add_value(std::string_view name, RCReference<AsyncValue> value) {
  if (!is_name(name))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{:?} is no name to bind: expected letters, digits, '_' and '.'", name));
  if (!values_.emplace(name, std::move(value)).second)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("${} is bound twice", name));
}

void Bindings::replace_value(std::string_view name, RCReference<AsyncValue> value) {
  const auto found = values_.find(name);
  if (found == values_.end()) throw Error(ErrorCode::kNotFound, fmt::format("${} is not bound", name));
  found->second = std::move(value);
}

AsyncValue* Bindings::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second.get();
}

std::string Bindings::nearest(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, value] : values_) names.push_back(known);
  return nearest_name(name, names).value_or("");
}

}  // namespace coppice::executor
