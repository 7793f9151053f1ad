// Finding the events between operations (see function_events.h).
#include "sparse/function_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sparse/device_operations.h"
#include "sparse/operations.h"

namespace coppice {
namespace {

using executor::Operation;

bool is_join(const Operation& op) { return op.name == "stream.join"; }

// Registers are the argument, and an event for each operation in order.
void number_registers(executor::Function& f) {
  std::vector<executor::Register> registers{f.registers[0]};
  for (Operation& op : f.operations) {
    registers.push_back(std::move(f.registers[op.results[0]]));
    op.results = {static_cast<uint32_t>(registers.size() - 1)};
  }
  f.registers = std::move(registers);
}

// Returns the number of a name that is like another one: 1 of "x", 3 of "x.3"; 0 of what is not like "x".
size_t number_of(std::string_view name, std::string_view like) {
  if (!name.starts_with(like)) return 0;
  if (name.size() == like.size()) return 1;
  const std::string_view digits = name.substr(like.size() + 1);
  size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size() && digits[0] != '0';
  return name[like.size()] == '.' && is_number ? number : 0;
}

// Returns "x", or the first of "x.2", "x.3"... that no register has. Cost: linear in their number.
std::string unused_name(const executor::Function& f, std::string_view like) {
  std::vector<bool> is_used(f.registers.size() + 2, false);
  for (const executor::Register& r : f.registers) {
    const size_t number = number_of(r.name, like);
    if (number < is_used.size()) is_used[number] = true;
  }
  const auto first = std::find(is_used.begin() + 1, is_used.end(), false);
  const auto number = first - is_used.begin();
  return number == 1 ? std::string(like) : fmt::format("{}.{}", like, number);
}

// Lets each operation come behind the one before, so that the module can be loaded.
void order_as_written(executor::Function& f) {
  std::erase_if(f.operations, is_join);
  number_registers(f);
  uint32_t last = 0;
  for (Operation& op : f.operations) op.arguments = {last}, last = op.results[0];
  f.returns = {last};
  count_uses(f);
}

void order_as_used(executor::Function& f, const std::vector<ResourceUses>& uses) {
  const Predecessors before = order_by_uses(uses);
  std::vector<bool> is_last(f.operations.size(), true);
  for (size_t i = 0; i < f.operations.size(); ++i) {
    std::vector<uint32_t>& arguments = f.operations[i].arguments;
    arguments.clear();
    for (const uint32_t earlier : before[i]) {
      arguments.push_back(f.operations[earlier].results[0]);
      is_last[earlier] = false;
    }
    if (arguments.empty()) arguments = {0};
  }
  Operation join{.name = "stream.join"};
  for (size_t i = 0; i < f.operations.size(); ++i) {
    if (is_last[i]) join.arguments.push_back(f.operations[i].results[0]);
  }
  if (join.arguments.size() > 1) {
    f.registers.push_back({.name = unused_name(f, "end")});
    join.results = {static_cast<uint32_t>(f.registers.size() - 1)};
    f.returns = join.results;
    f.operations.push_back(std::move(join));
  } else {
    f.returns = join.arguments.empty() ? std::vector<uint32_t>{0} : join.arguments;
  }
  count_uses(f);
}

}  // namespace

executor::Function event_function(std::string name) {
  executor::Function f;
  f.name = std::move(name);
  f.argument_types = f.result_types = {"event"};
  f.registers.push_back({.name = "begin"});
  f.returns = {0};
  count_uses(f);
  return f;
}

void add_operation(executor::Function& f, Operation operation, std::string_view name, size_t at) {
  f.registers.push_back({.name = unused_name(f, name)});
  operation.results = {static_cast<uint32_t>(f.registers.size() - 1)};
  at = std::min(at, f.operations.size());
  f.operations.insert(f.operations.begin() + static_cast<ptrdiff_t>(at), std::move(operation));
}

void remove_operation(executor::Function& f, size_t at) {
  f.operations.erase(f.operations.begin() + static_cast<ptrdiff_t>(at));
}

std::vector<size_t> reachable_functions(const executor::Module& module) {
  std::unordered_map<std::string_view, size_t> unfound;
  for (size_t i = 1; i < module.functions.size(); ++i) unfound.emplace(module.functions[i].name, i);
  std::vector<size_t> found{0};
  const auto add = [&](const std::string& name) {
    const auto body = unfound.find(name);
    if (body == unfound.end()) return;
    found.push_back(body->second);
    unfound.erase(body);
  };
  for (size_t next = 0; next < found.size(); ++next) {
    for (const Operation& op : module.functions[found[next]].operations) {
      for (const executor::Attribute& attribute : op.attributes) {
        if (const auto* const body = std::get_if<executor::FunctionRef>(&attribute)) add(body->name);
      }
    }
  }
  return found;
}

void sort_operations(executor::Module& module, const executor::LoadedModule& loaded) {
  for (const size_t i : reachable_functions(module)) {
    std::vector<Operation> sorted;
    for (const uint32_t op : run_order(*loaded.functions()[i]))
      sorted.push_back(std::move(module.functions[i].operations[op]));
    module.functions[i].operations = std::move(sorted);
  }
}

void order_events(executor::Module& module, const executor::Bindings& bindings) {
  const std::vector<size_t> functions = reachable_functions(module);
  for (const size_t i : functions) order_as_written(module.functions[i]);
  const auto loaded = executor::LoadedModule::load(module, function_registry(), bindings);
  for (const size_t i : functions)
    order_as_used(module.functions[i], uses_of_operations(*loaded->functions()[i]));
}

}  // namespace coppice
