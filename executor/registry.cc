// The registry's tables.
#include "executor/registry.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#include "core/nearest_name.h"
#include "executor/names.h"

namespace coppice::executor {
Registry::Registry() {
  add_type<Chain>("chain");
  add_type<bool>("bool");
  add_type<int32_t>("i32");
  add_type<int64_t>("i64");
  add_type<float>("f32");
  add_type<double>("f64");
  add_type<std::string>("string");
  add_type<HostBytes>("bytes");
  add_type<AnyValue>("any");
}

void Registry::add_type(std::type_index type, std::string_view name, bool may_refer) {
  COPPICE_CHECK(!has_type(name), "the type name {} is taken", name);
  const auto [entry, is_new] = tables_->type_names.emplace(type, name);
  COPPICE_CHECK(is_new, "the type of {} has another name already", name);
  tables_->types.emplace(entry->second, type);
  tables_->may_refer.emplace(entry->second, may_refer);
}

bool Registry::may_refer(std::string_view name) const {
  const auto found = tables_->may_refer.find(name);
  return found != tables_->may_refer.end() && found->second;
}

bool Registry::has_type(std::string_view name) const {
  return name == "event" || tables_->types.contains(name);
}

std::string_view registered_name(const Registry& registry, std::type_index type) {
  return registry.type_name(type);
}

std::string_view Registry::type_name(std::type_index type) const {
  const auto found = tables_->type_names.find(type);
  COPPICE_CHECK(found != tables_->type_names.end(),
                "{} has no type name: add_type() before the operations that use it", type.name());
  return found->second;
}

bool Registry::is_type(const AsyncValue& value, std::string_view name) const {
  if (name == "event") return value.is_payload(typeid(Chain));
  const auto found = tables_->types.find(name);
  return found != tables_->types.end() && value.is_payload(found->second);
}

std::string Registry::type_name_of(const AsyncValue& value) const {
  const std::type_info* const type = value.payload_type();
  if (type == nullptr) return "of no type";
  const auto found = tables_->type_names.find(*type);
  if (found != tables_->type_names.end()) return found->second;
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed), &std::free);
  return failed == 0 ? name.get() : type->name();
}

void Registry::add(OperationInfo info) {
  COPPICE_CHECK(is_operation_name(info.name), "{} is no name for an operation", info.name);
  COPPICE_CHECK(find(info.name) == nullptr, "the operation {} is registered already", info.name);
  COPPICE_CHECK(!(info.more_results && !info.infer), "{}: remaining results need their types inferred",
                info.name);
  if (info.traits.non_strict) {
    for (Needs& needs : info.needs) needs = Needs::kNothing;
    info.more_needs = Needs::kNothing;
  }
  std::string name = info.name;
  tables_->operations.emplace(std::move(name), std::move(info));
}

void Registry::add(std::string_view name, Implementation implementation, const OperationInfo& signature,
                   bool is_out) {
  const auto found = tables_->operations.find(name);
  COPPICE_CHECK(found != tables_->operations.end(), "there is no operation {} to implement", name);
  OperationInfo& info = found->second;
  const auto is_same = [](const AttributeType& a, const AttributeType& b) {
    return a.kind == b.kind && a.binding_type == b.binding_type;
  };
  COPPICE_CHECK(info.argument_types == signature.argument_types &&
                    info.result_types == signature.result_types &&
                    std::equal(info.attributes.begin(), info.attributes.end(), signature.attributes.begin(),
                               signature.attributes.end(), is_same) &&
                    !info.more_arguments && !info.more_results && !info.more_attributes,
                "an implementation of {} takes and returns the same as the operation", name);
  const auto k = static_cast<size_t>(implementation.in_place);
  COPPICE_CHECK(
      implementation.in_place < 0 || (k < info.argument_types.size() && info.argument_types[k] == "bytes"),
      "{} cannot be made in the place of argument {}", name, implementation.in_place);
  (is_out ? info.out_variants : info.natives).push_back(std::move(implementation));
}

const OperationInfo* Registry::find(std::string_view name) const {
  const auto found = tables_->operations.find(name);
  return found == tables_->operations.end() ? nullptr : &found->second;
}

std::string Registry::nearest(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, info] : tables_->operations)
    names.push_back(known);  // the first of equals is taken
  return nearest_name(name, names).value_or("");
}

const Implementation* first_match(const std::vector<Implementation>& all, const OperationUse& use) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Implementation& implementation) {
    return !implementation.matches || implementation.matches(use);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace coppice::executor
