#include "executor/module.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "executor/names.h"

namespace coppice::executor {
namespace {

using FunctionNames = std::unordered_map<std::string_view, Position>;

// Quotes a name for messages; the name may be anything, and is cut to 40 bytes.
std::string in_quotes(std::string_view name) { return fmt::format("{:?}", name.substr(0, 40)); }

class FunctionChecker {
 public:
  FunctionChecker(const Module& module, const Function& function, FunctionNames& names)
      : module_(module), function_(function), names_(names) {}

  void add_name();
  // Is called when all functions' names were added.
  void check() const {
    check_signature();
    check_register_names();
    uint32_t next = static_cast<uint32_t>(function_.argument_types.size());
    for (const Operation& operation : function_.operations) check_operation(operation, next);
    if (next != function_.registers.size())
      fail(function_.position, "register {} is never set in function @{}", name_of(next), function_.name);
    for (const uint32_t r : function_.returns) check_index(r, function_.return_position, "`return`");
    check_uses();
  }

 private:
  template <class... Arguments>
  [[noreturn]] void fail(Position place, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Arguments>(arguments)...),
                {module_.file, static_cast<int>(place.line), static_cast<int>(place.column)});
  }
  std::string name_of(uint32_t r) const { return '%' + function_.registers[r].name; }

  void check_signature() const;
  void check_register_names() const;
  void check_operation(const Operation& operation, uint32_t& next) const;
  void check_result(const Operation& operation, uint32_t r, uint32_t next) const;
  void check_index(uint32_t r, Position place, std::string_view user) const;
  void check_uses() const;

  const Module& module_;
  const Function& function_;
  FunctionNames& names_;
};

void FunctionChecker::add_name() {
  const Function& f = function_;
  if (!is_name(f.name))
    fail(f.position, "{} is no name of a function: expected letters, digits, '_' and '.'", in_quotes(f.name));
  const auto [first, is_new] = names_.try_emplace(f.name, f.position);
  const auto [line, column] = first->second;
  if (!is_new)
    fail(f.position, "function @{} is defined twice; first at line {}, column {}", f.name, line, column);
}

void FunctionChecker::check_signature() const {
  const Function& f = function_;
  for (const auto* types : {&f.argument_types, &f.result_types}) {
    for (const std::string& type : *types)
      if (!is_name(type))
        fail(f.position, "{} is no name of a type: expected letters, digits, '_' and '.'", in_quotes(type));
  }
  if (f.argument_types.size() > f.registers.size())
    fail(f.position, "function @{} has {} arguments and only {} registers", f.name, f.argument_types.size(),
         f.registers.size());
  if (f.returns.size() != f.result_types.size())
    fail(f.return_position, "function @{} has {} results and returns {}", f.name, f.result_types.size(),
         f.returns.size());
}

void FunctionChecker::check_register_names() const {
  std::unordered_set<std::string_view> names;
  for (const Register& r : function_.registers) {
    if (!is_name(r.name))
      fail(function_.position, "{} is no name of a register: expected letters, digits, '_' and '.'",
           in_quotes(r.name));
    if (!names.insert(r.name).second)
      fail(function_.position, "two registers of function @{} have the name %{}", function_.name, r.name);
  }
}

void FunctionChecker::check_operation(const Operation& operation, uint32_t& next) const {
  if (!is_operation_name(operation.name))
    fail(operation.position,
         "{} is no name of an operation: expected letters, digits, '_' and '.', the first a letter or '_', "
         "and no word of "
         "the text form",
         in_quotes(operation.name));
  for (const uint32_t r : operation.arguments) check_index(r, operation.position, operation.name);
  for (const uint32_t r : operation.results) check_result(operation, r, next++);
  for (const Attribute& attribute : operation.attributes) {
    const auto* ref = std::get_if<FunctionRef>(&attribute);
    if (ref != nullptr && !names_.contains(ref->name))
      fail(operation.position, "{} refers to {}, and there is no such function", operation.name,
           in_quotes(ref->name));
    const auto* binding = std::get_if<BindingRef>(&attribute);
    if (binding != nullptr && !is_name(binding->name))
      fail(operation.position, "{} names {}, which is no name: expected letters, digits, '_' and '.'",
           operation.name, in_quotes(binding->name));
    const auto* reals = std::get_if<std::vector<double>>(&attribute);
    const auto* strings = std::get_if<std::vector<std::string>>(&attribute);
    if ((reals != nullptr && reals->empty()) || (strings != nullptr && strings->empty()))
      fail(operation.position, "{} has an empty list that is not one of integers", operation.name);
  }
}

// Registers are numbered as they are set, so that there is one index that each result can have.
void FunctionChecker::check_result(const Operation& operation, uint32_t r, uint32_t next) const {
  check_index(r, operation.position, operation.name);
  if (r < next)
    fail(operation.position, "{} sets register {}, which is set already", operation.name, name_of(r));
  if (r > next)
    fail(operation.position, "{} sets register {}, and the next in order is {}", operation.name, name_of(r),
         name_of(next));
}

void FunctionChecker::check_index(uint32_t r, Position place, std::string_view user) const {
  if (r >= function_.registers.size())
    fail(place, "{} names register number {}, and function @{} has {}", user, r, function_.name,
         function_.registers.size());
}

void FunctionChecker::check_uses() const {
  struct Found {
    uint32_t use_count = 1, n_users = 0;
  };
  const auto& registers = function_.registers;
  std::vector<Found> found(registers.size());
  const auto is_recorded = [&](uint32_t r, uint32_t op) {
    const auto& used_by = registers[r].used_by;
    uint32_t& n = found[r].n_users;
    if (n > 0 && used_by[n - 1] == op) return true;  // the second use by this operation
    return n < used_by.size() && used_by[n++] == op;
  };
  for (uint32_t op = 0; op < function_.operations.size(); ++op) {
    const Operation& operation = function_.operations[op];
    for (const uint32_t r : operation.arguments) {
      ++found[r].use_count;
      if (!is_recorded(r, op))
        fail(operation.position, "the used-by record of {} lacks the use by {}, or is not ascending",
             name_of(r), operation.name);
    }
  }
  for (const uint32_t r : function_.returns) ++found[r].use_count;
  for (uint32_t r = 0; r < registers.size(); ++r) {
    if (registers[r].use_count != found[r].use_count)
      fail(function_.position, "register {} has use count {}, and its uses in function @{} make {}",
           name_of(r), registers[r].use_count, function_.name, found[r].use_count);
    if (registers[r].used_by.size() != found[r].n_users)
      fail(function_.position, "the used-by record of {} names an operation that does not use it",
           name_of(r));
  }
}

}  // namespace

void count_uses(Function& function) {
  for (Register& r : function.registers) r.use_count = 1, r.used_by.clear();
  for (uint32_t op = 0; op < function.operations.size(); ++op) {
    for (const uint32_t argument : function.operations[op].arguments) {
      Register& r = function.registers[argument];
      ++r.use_count;
      if (r.used_by.empty() || r.used_by.back() != op) r.used_by.push_back(op);
    }
  }
  for (const uint32_t returned : function.returns) ++function.registers[returned].use_count;
}

void check(const Module& module) {
  FunctionNames names;
  for (const Function& function : module.functions) FunctionChecker(module, function, names).add_name();
  for (const Function& function : module.functions) FunctionChecker(module, function, names).check();
}

}  // namespace coppice::executor
