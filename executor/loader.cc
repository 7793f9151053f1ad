// Binding a module to its operations: signatures and types checked, registers and users laid out.
#include "executor/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "executor/attribute_kinds.h"

namespace coppice::executor {

using FunctionsByName = std::unordered_map<std::string_view, const LoadedFunction*>;

namespace {

// Returns the numbers below n so that each comes behind its producers, in their own order wherever that is
// one: of those that can come next, the least. What waits for itself is left out. each_producer(i, visit)
// visits the producers of i, as often as they are named.
template <class EachProducer>
std::vector<uint32_t> order_by_producers(size_t n, EachProducer&& each_producer) {
  std::vector<uint32_t> waits(n), begins(n + 1);  // begins: of each one's users
  bool is_in_order = true;
  for (uint32_t i = 0; i < n; ++i) {
    each_producer(i, [&](uint32_t producer) {
      ++waits[i], ++begins[producer + 1];
      is_in_order &= producer < i;
    });
  }
  std::vector<uint32_t> order;
  order.reserve(n);
  if (is_in_order) {
    for (uint32_t i = 0; i < n; ++i) order.push_back(i);
    return order;
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<uint32_t> users(begins.back()), ends = begins;
  for (uint32_t i = 0; i < n; ++i) each_producer(i, [&](uint32_t producer) { users[ends[producer]++] = i; });
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < n; ++i) {
    if (waits[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const uint32_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (uint32_t u = begins[next]; u < begins[next + 1]; ++u) {
      if (--waits[users[u]] == 0) ready.push(users[u]);
    }
  }
  return order;
}

}  // namespace

// One function on its way from Function to LoadedFunction.
class FunctionLoader {
 public:
  FunctionLoader(const LoadedModule& module, const Function& from, LoadedFunction& to,
                 const FunctionsByName& functions)
      : module_(module.source()),
        from_(from),
        to_(to),
        registry_(module.registry()),
        bindings_(module.bindings()),
        functions_(functions) {}

  void run() {
    for (const auto* types : {&from_.argument_types, &from_.result_types}) {
      for (const std::string& type : *types) {
        if (!registry_.has_type(type)) fail(from_.position, fmt::format("unknown type {}", type));
      }
    }
    bind_operations();
    order_operations();
    infer_types();
    lay_out_users();
    set_priorities();
    find_late_errors();
  }

 private:
  [[noreturn]] void fail(const Position& at, std::string message) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("@{}: {}", from_.name, message),
                {module_.file.empty() ? "module" : module_.file, static_cast<int>(at.line),
                 static_cast<int>(at.column)});
  }

  void bind_operations();
  void bind_attributes(const Operation& op, LoadedOperation& to);
  void check_attribute(const Operation& op, size_t i, const AttributeType& type) const;
  AsyncValue* find_binding(const Operation& op, const std::string& name) const;
  void order_operations();
  [[noreturn]] void report_ring(const std::vector<bool>& waits) const;
  void infer_types();
  void choose_variant(const Operation& op, LoadedOperation& to) const;
  std::vector<std::string> infer(const Operation& op, const LoadedOperation& loaded) const;
  void check_arguments(const Operation& op, const OperationInfo& info) const;
  void lay_out_users();
  void set_priorities();
  void find_late_errors();

  const Module& module_;
  const Function& from_;
  LoadedFunction& to_;
  const Registry& registry_;
  const Bindings& bindings_;
  const FunctionsByName& functions_;
  std::vector<uint32_t> order_;  // operations, as run_order() has them
};

void FunctionLoader::bind_operations() {
  to_.name = from_.name;
  to_.argument_types = from_.argument_types, to_.result_types = from_.result_types;
  to_.returns = from_.returns;
  for (const Register& r : from_.registers) {
    to_.registers.push_back({r.use_count, kNoOperation, {}});
    to_.register_names.push_back(r.name);
  }
  size_t num_attributes = 0;
  for (const Operation& op : from_.operations) num_attributes += op.attributes.size();
  to_.attributes_.reserve(num_attributes);
  for (const Operation& op : from_.operations) {
    const OperationInfo* info = registry_.find(op.name);
    if (info == nullptr) {
      const std::string nearest = registry_.nearest(op.name);
      fail(op.position, fmt::format("unknown operation {}{}", op.name,
                                    nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
    }
    LoadedOperation to{};
    to.arguments = op.arguments, to.results = op.results, to.owner = &to_;
    to.run = info->run, to.function = info->function.get();
    to.where = info->traits.run, to.non_strict = info->traits.non_strict;
    to.info = info;
    to_.positions_.push_back(op.position);
    for (const uint32_t r : op.results)
      to_.registers[r].producer = static_cast<uint32_t>(to_.operations.size());
    bind_attributes(op, to);
    to_.operations.push_back(to);
  }
}

void FunctionLoader::bind_attributes(const Operation& op, LoadedOperation& to) {
  const OperationInfo& info = *to.info;
  const size_t fixed = info.attributes.size(), given = op.attributes.size();
  if (given < fixed || (given > fixed && !info.more_attributes)) {
    fail(op.position,
         fmt::format("{} takes {}{} attribute{}, not {}", op.name, info.more_attributes ? "at least " : "",
                     fixed, fixed == 1 ? "" : "s", given));
  }
  const size_t first = to_.attributes_.size();
  for (size_t i = 0; i < given; ++i) {
    if (i < fixed) check_attribute(op, i, info.attributes[i]);
    BoundAttribute bound{&op.attributes[i], nullptr};
    // check(module) has found it.
    if (const auto* ref = std::get_if<FunctionRef>(bound.value)) bound.function = functions_.at(ref->name);
    if (const auto* ref = std::get_if<BindingRef>(bound.value)) bound.binding = find_binding(op, ref->name);
    to_.attributes_.push_back(bound);
  }
  // The vector was reserved for all.
  to.attributes = std::span(to_.attributes_).subspan(first);
}

void FunctionLoader::check_attribute(const Operation& op, size_t i, const AttributeType& type) const {
  const std::string why = why_unfit(op.attributes[i], type.kind);
  if (!why.empty()) fail(op.position, fmt::format("attribute {} of {}{}", i + 1, op.name, why));
  if (type.kind != AttributeKind::kBinding) return;
  const std::string& name = std::get<BindingRef>(op.attributes[i]).name;
  const AsyncValue& value = *find_binding(op, name);
  if (!registry_.is_type(value, type.binding_type))
    fail(op.position, fmt::format("attribute {} of {} must be a {}, and ${} is a {}", i + 1, op.name,
                                  type.binding_type, name, registry_.type_name_of(value)));
}

AsyncValue* FunctionLoader::find_binding(const Operation& op, const std::string& name) const {
  if (AsyncValue* const found = bindings_.find(name)) return found;
  const std::string nearest = bindings_.nearest(name);
  fail(op.position, fmt::format("{}: nothing is bound to ${}{}", op.name, name,
                                nearest.empty() ? "" : fmt::format("; did you mean ${}?", nearest)));
}

void FunctionLoader::order_operations() {
  order_ = order_by_producers(from_.operations.size(), [&](uint32_t op, auto&& visit) {
    for (const uint32_t r : from_.operations[op].arguments) {
      if (const uint32_t producer = to_.registers[r].producer; producer != kNoOperation) visit(producer);
    }
  });
  if (order_.size() == from_.operations.size()) return;
  std::vector<bool> waits(from_.operations.size(), true);
  for (const uint32_t op : order_) waits[op] = false;
  report_ring(waits);
}

// Operations that are left over wait for each other in a ring.
void FunctionLoader::report_ring(const std::vector<bool>& waits) const {
  // From an operation that waits, walk to a producer that waits, until one comes
  // again: from there on it is a ring.
  std::vector<uint32_t> way;
  std::vector<bool> is_on_way(waits.size(), false);
  auto op = static_cast<uint32_t>(std::find(waits.begin(), waits.end(), true) - waits.begin());
  while (!is_on_way[op]) {
    way.push_back(op);
    is_on_way[op] = true;
    for (const uint32_t r : from_.operations[op].arguments) {
      const uint32_t producer = to_.registers[r].producer;
      if (producer != kNoOperation && waits[producer]) {
        op = producer;
        break;
      }
    }
  }
  way.erase(way.begin(), std::find(way.begin(), way.end(), op));
  std::vector<std::string> steps;
  for (const uint32_t at : way)
    steps.push_back(
        fmt::format("{} (line {})", from_.operations[at].name, from_.operations[at].position.line));
  steps.push_back(steps.front());
  fail(from_.operations[op].position,
       fmt::format("operations wait for each other: {}", fmt::join(steps, " needs ")));
}

void FunctionLoader::infer_types() {
  to_.register_types.resize(to_.registers.size());
  for (size_t i = 0; i < from_.argument_types.size(); ++i) to_.register_types[i] = from_.argument_types[i];
  for (const uint32_t index : order_) {
    const Operation& op = from_.operations[index];
    const OperationInfo& info = *to_.operations[index].info;
    check_arguments(op, info);
    if (info.is_made_of_variants) choose_variant(op, to_.operations[index]);
    std::vector<std::string> inferred;
    if (info.infer) inferred = infer(op, to_.operations[index]);
    const std::vector<std::string>& types = info.infer ? inferred : info.result_types;
    if (types.size() != op.results.size()) {
      fail(op.position, fmt::format("{} has {} result{}, not {}", op.name, types.size(),
                                    types.size() == 1 ? "" : "s", op.results.size()));
    }
    for (size_t i = 0; i < types.size(); ++i) to_.register_types[op.results[i]] = types[i];
  }
  for (size_t i = 0; i < from_.returns.size(); ++i) {
    const std::string& type = to_.register_types[from_.returns[i]];
    if (type != from_.result_types[i]) {
      fail(from_.return_position,
           fmt::format("returns %{}: {} as result {}, which is {}", from_.registers[from_.returns[i]].name,
                       type, i + 1, from_.result_types[i]));
    }
  }
}

// The executor runs the first out variant that matches, as a plan does.
void FunctionLoader::choose_variant(const Operation& op, LoadedOperation& to) const {
  const std::vector<std::string> argument_types = to_.argument_types_of(to);
  const OperationUse use{argument_types, to.attributes, op.results.size()};
  const Implementation* const variant = first_match(to.info->out_variants, use);
  if (variant == nullptr)
    fail(op.position, fmt::format("no implementation of {} takes this use of it", op.name));
  to.run = variant->run_unplanned, to.function = variant->function.get();
}

std::vector<std::string> FunctionLoader::infer(const Operation& op, const LoadedOperation& loaded) const {
  const std::vector<std::string> argument_types = to_.argument_types_of(loaded);
  try {
    return loaded.info->infer({argument_types, loaded.attributes, op.results.size()});
  } catch (const Error& error) {
    fail(op.position, fmt::format("{}: {}", op.name, error.message()));
  }
}

void FunctionLoader::check_arguments(const Operation& op, const OperationInfo& info) const {
  const size_t fixed = info.argument_types.size(), given = op.arguments.size();
  if (given < fixed || (given > fixed && !info.more_arguments)) {
    fail(op.position,
         fmt::format("{} takes {}{} argument{}, not {}", op.name, info.more_arguments ? "at least " : "",
                     fixed, fixed == 1 ? "" : "s", given));
  }
  for (size_t i = 0; i < given; ++i) {
    const std::string& type = to_.register_types[op.arguments[i]];
    const std::string& wanted = i < fixed ? info.argument_types[i] : info.more_type;
    if (type != wanted && wanted != "any" && !wanted.empty()) {
      fail(op.position, fmt::format("argument {} of {} must be {}, and %{} is {}", i + 1, op.name, wanted,
                                    from_.registers[op.arguments[i]].name, type));
    }
  }
}

Needs needs_of(const LoadedOperation& op, size_t argument) {
  if (op.non_strict) return Needs::kNothing;
  return argument < op.info->needs.size() ? op.info->needs[argument] : op.info->more_needs;
}

bool runs_functions(const LoadedOperation& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const BoundAttribute& attribute) { return attribute.function != nullptr; });
}

bool may_name_errors(const LoadedFunction& function, const LoadedOperation& op) {
  if (op.non_strict) return false;
  if (runs_functions(op)) return false;
  for (size_t i = 0; i < op.arguments.size(); ++i)
    if (needs_of(op, i) == Needs::kEnqueued) return false;
  return std::none_of(op.results.begin(), op.results.end(),
                      [&](uint32_t r) { return function.register_types[r] == kEventType; });
}

void FunctionLoader::lay_out_users() {
  struct Slice {
    size_t begin, end;  // of the users that are filled in so far
  };
  std::vector<Slice> slices;
  size_t num_users = 0;
  for (const Register& r : from_.registers) {
    slices.push_back({num_users, num_users});
    num_users += r.used_by.size();
  }
  to_.users_.resize(num_users);
  for (uint32_t op = 0; op < to_.operations.size(); ++op) {
    LoadedOperation& user = to_.operations[op];
    for (size_t i = 0; i < user.arguments.size(); ++i) {
      Slice& slice = slices[user.arguments[i]];
      const Needs needs = needs_of(user, i);
      if (slice.begin == slice.end || to_.users_[slice.end - 1].operation != op) {
        to_.users_[slice.end++] = {op, needs};
        ++user.waits;
      } else {
        // Where several arguments of an operation are one register, it needs the most that any of them
        // needs. kAvailable is the least enumerator.
        Needs& most = to_.users_[slice.end - 1].needs;
        most = std::min(most, needs);
      }
    }
  }
  for (size_t r = 0; r < slices.size(); ++r)
    to_.registers[r].users = std::span(to_.users_).subspan(slices[r].begin, slices[r].end - slices[r].begin);
  for (uint32_t op = 0; op < to_.operations.size(); ++op) {
    if (to_.operations[op].waits == 0) to_.without_waits.push_back(op);
  }
  for (const uint32_t op : order_) {
    if (to_.operations[op].non_strict) to_.non_strict.push_back(op);
  }
}

void FunctionLoader::set_priorities() {
  for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
    LoadedOperation& op = to_.operations[*at];
    uint32_t behind = 0;
    for (const uint32_t r : op.results) {
      for (const RegisterUser& user : to_.registers[r].users)
        behind = std::max(behind, to_.operations[user.operation].priority);
    }
    const uint32_t cost = op.info->traits.cost;
    op.priority = behind > std::numeric_limits<uint32_t>::max() - cost ? behind : behind + cost;
  }
  // The list of ready operations is a stack: the one on the critical path is pushed
  // last; among equals, the first.
  const auto comes_later = [&](uint32_t a, uint32_t b) {
    const uint32_t pa = to_.operations[a].priority, pb = to_.operations[b].priority;
    return pa != pb ? pa < pb : a > b;
  };
  std::sort(to_.without_waits.begin(), to_.without_waits.end(), comes_later);
  for (size_t first = 0, r = 0; r < to_.registers.size(); first += to_.registers[r++].users.size()) {
    const auto users = std::span(to_.users_).subspan(first, to_.registers[r].users.size());
    std::sort(users.begin(), users.end(), [&](const RegisterUser& a, const RegisterUser& b) {
      return comes_later(a.operation, b.operation);
    });
  }
}

void FunctionLoader::find_late_errors() {
  const auto leaves = [&](uint32_t r) {
    const auto& users = to_.registers[r].users;
    return std::any_of(users.begin(), users.end(),
                       [&](const RegisterUser& user) { return to_.operations[user.operation].non_strict; });
  };
  for (LoadedOperation& op : to_.operations)
    op.names_late_errors = std::any_of(op.results.begin(), op.results.end(), leaves);
  for (const uint32_t r : to_.returns) {
    if (const uint32_t producer = to_.registers[r].producer; producer != kNoOperation)
      to_.operations[producer].names_late_errors = true;
  }
  for (LoadedOperation& op : to_.operations) op.names_late_errors &= may_name_errors(to_, op);
}

Position LoadedOperation::position() const {
  return owner->positions_[static_cast<size_t>(this - owner->operations.data())];
}

std::string LoadedFunction::describe(const LoadedOperation& o) const {
  return fmt::format("@{} {}", name, o.info->name);
}

std::vector<std::string> LoadedFunction::argument_types_of(const LoadedOperation& o) const {
  std::vector<std::string> types;
  for (const uint32_t r : o.arguments) types.push_back(register_types[r]);
  return types;
}

std::vector<uint32_t> run_order(const LoadedFunction& function) {
  return order_by_producers(function.operations.size(), [&](uint32_t op, auto&& visit) {
    for (const uint32_t r : function.operations[op].arguments) {
      if (const uint32_t producer = function.registers[r].producer; producer != kNoOperation) visit(producer);
    }
  });
}

namespace {

// An operation that runs functions is worth handing to another thread when one of their operations is.
void place_calls(const std::vector<std::unique_ptr<LoadedFunction>>& functions) {
  std::unordered_map<const LoadedFunction*, std::vector<std::pair<LoadedFunction*, uint32_t>>> callers;
  std::vector<const LoadedFunction*> found;
  for (const auto& f : functions) {
    bool is_found = false;
    for (uint32_t op = 0; op < f->operations.size(); ++op) {
      is_found |= f->operations[op].where == Run::kCompute;
      for (const BoundAttribute& a : f->operations[op].attributes) {
        if (a.function != nullptr) callers[a.function].emplace_back(f.get(), op);
      }
    }
    if (is_found) found.push_back(f.get());
  }
  // Each call is placed once, so that this ends however functions call each other.
  while (!found.empty()) {
    const LoadedFunction* const f = found.back();
    found.pop_back();
    for (const auto& [caller, op] : callers[f]) {
      LoadedOperation& call = caller->operations[op];
      if (call.where != Run::kInline) continue;
      call.where = Run::kCompute;
      found.push_back(caller);
    }
  }
}

}  // namespace

IntrusivePtr<LoadedModule> LoadedModule::load(Module module, const Registry& registry, Bindings bindings) {
  check(module);
  auto loaded = make_intrusive<LoadedModule>(std::move(module), registry, std::move(bindings));
  for (size_t i = 0; i < loaded->source_.functions.size(); ++i)
    loaded->functions_.push_back(std::make_unique<LoadedFunction>());
  // Signatures first: functions call each other.
  for (size_t i = 0; i < loaded->functions_.size(); ++i) {
    LoadedFunction& to = *loaded->functions_[i];
    to.module = loaded.get();
    to.argument_types = loaded->source_.functions[i].argument_types;
    to.result_types = loaded->source_.functions[i].result_types;
    to.name = loaded->source_.functions[i].name;
    loaded->by_name_.emplace(to.name, &to);
  }
  for (size_t i = 0; i < loaded->functions_.size(); ++i)
    FunctionLoader(*loaded, loaded->source_.functions[i], *loaded->functions_[i], loaded->by_name_).run();
  place_calls(loaded->functions_);
  return loaded;
}

const LoadedFunction& LoadedModule::function(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return *found->second;
  throw Error(ErrorCode::kNotFound, fmt::format("{} has no function @{}",
                                                source_.file.empty() ? "the module" : source_.file, name));
}

}  // namespace coppice::executor
