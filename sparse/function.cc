// Functions of device work: loading, running, editing and describing them (see function.h).
#include "sparse/function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/nearest_name.h"
#include "sparse/device_operations.h"
#include "sparse/function_events.h"
#include "sparse/function_memory.h"
#include "sparse/operations.h"
#include "sparse/tracer.h"

namespace coppice {

struct Function::State final : RefCounted {
  IntrusivePtr<Device> device;
  IntrusivePtr<executor::LoadedModule> loaded;
  DeviceFunction work;
};

Function::Function(IntrusivePtr<State> state) : state_(std::move(state)) {}

const Function::State& Function::state() const {
  if (state_) return *static_cast<const State*>(state_.get());
  throw Error(ErrorCode::kInvalidArgument, "a Function is used that was moved from");
}

Function Function::load(IntrusivePtr<Device> device, executor::Module module, executor::Bindings bindings) {
  if (!device) throw Error(ErrorCode::kInvalidArgument, "a function without a device");
  if (module.functions.empty())
    throw Error(ErrorCode::kInvalidArgument, "a module without a function", {module.file});
  auto state = make_intrusive<State>();
  state->device = std::move(device);
  state->loaded = executor::LoadedModule::load(std::move(module), function_registry(), std::move(bindings));
  state->work = device_function(*state->loaded->functions().front(), state->device.get());
  check_places(*state->loaded);
  return Function(std::move(state));
}

AsyncValueRef<Chain> Function::run(int times) const {
  const State& s = state();
  if (times < 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("function @{} cannot be run {} times", name(), times));
  if (Tracer* const tracer = Tracer::current()) {
    if (times == 1) return tracer->add("sparse.run", name(), {*this});
    executor::FunctionRef body = tracer->trace_body("repeat", [this] { run(); });
    return tracer->add("sparse.repeat", "repeat", {int64_t{times}, std::move(body)});
  }
  if (times > 0) {
    const TemporaryFieldUses& once = s.work.temporaries;
    note_temporary_fields(times == 1 ? once : one_repeated(once));
  }
  return s.device->default_stream().issue(name(),
                                          [kept = share(const_cast<State*>(&s)), times](InStream& in) {
                                            kept->work.segment->run(in, static_cast<uint64_t>(times));
                                          });
}

std::string_view Function::name() const { return state().loaded->functions().front()->name; }
const executor::LoadedModule& Function::loaded() const { return *state().loaded; }
const Device& Function::device() const { return *state().device; }
const DeviceFunction& Function::work() const { return state().work; }

// ---- editing

namespace {

struct OperationName {
  size_t function, operation;
  // It can be named by these. A function that launches a kernel several times binds it to several names,
  // "heat.diffuse" and "heat.diffuse.2"; the event may be one of several functions', "main.repeat1.diffuse"
  // is of one.
  std::string kernel, bound, event, event_of_function, called;
};

// Returns the kernel's name of what it is bound to: an identifier does not begin with a digit.
std::string kernel_of(const std::string& bound) {
  const size_t dot = bound.rfind('.');
  const bool has_number =
      dot != std::string::npos && bound.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  return has_number ? bound.substr(0, dot) : bound;
}

std::vector<OperationName> names_of(const executor::Module& module) {
  std::vector<OperationName> names;
  for (const size_t f : reachable_functions(module)) {
    const executor::Function& function = module.functions[f];
    for (size_t i = 0; i < function.operations.size(); ++i) {
      const executor::Operation& op = function.operations[i];
      if (op.name == "stream.join") continue;
      OperationName& n = names.emplace_back(OperationName{.function = f, .operation = i, .called = op.name});
      n.event = function.registers[op.results[0]].name;
      n.event_of_function = function.name + '.' + n.event;
      if (op.name != "sparse.launch") continue;
      n.bound = std::get<executor::BindingRef>(op.attributes[0]).name;
      n.kernel = kernel_of(n.bound);
    }
  }
  return names;
}

// Returns the only one that `matches`; null where none does.
template <class Matches>
const OperationName* only_one(const std::vector<OperationName>& names, std::string_view wanted,
                              Matches matches) {
  std::vector<const OperationName*> found;
  for (const OperationName& n : names)
    if (matches(n)) found.push_back(&n);
  if (found.size() < 2) return found.empty() ? nullptr : found.front();
  std::vector<std::string> events;
  for (const OperationName* n : found) events.push_back(n->event);
  std::sort(events.begin(), events.end());
  if (std::adjacent_find(events.begin(), events.end()) != events.end()) {
    events.clear();
    for (const OperationName* n : found) events.push_back(n->event_of_function);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} operations are called {}; name one of them by its event: {}", found.size(),
                          wanted, fmt::join(events, ", ")));
}

OperationName find_operation(const executor::Module& module, std::string_view wanted) {
  if (wanted.empty()) throw Error(ErrorCode::kInvalidArgument, "an operation is named by nothing");
  const std::vector<OperationName> names = names_of(module);
  const OperationName* found =
      only_one(names, wanted, [&](const OperationName& n) { return n.event_of_function == wanted; });
  if (found == nullptr)
    found = only_one(names, wanted, [&](const OperationName& n) {
      return n.kernel == wanted || n.event == wanted || (n.bound != n.kernel && n.bound == wanted);
    });
  if (found == nullptr)
    found = only_one(names, wanted, [&](const OperationName& n) { return n.called == wanted; });
  if (found == nullptr)
    found = only_one(names, wanted, [&](const OperationName& n) { return n.kernel.starts_with(wanted); });
  if (found != nullptr) return *found;
  std::vector<std::string> all;
  std::set<std::string> shown;
  for (const OperationName& n : names) {
    shown.insert(n.kernel.empty() ? n.event : n.kernel);
    for (const std::string& name : {n.kernel, n.event, n.called, n.event_of_function})
      if (!name.empty()) all.push_back(name);
  }
  const std::optional<std::string> near = nearest_name(wanted, all);
  throw Error(ErrorCode::kNotFound,
              fmt::format("function @{} has no operation {}{}", module.functions.front().name, wanted,
                          near ? fmt::format("; did you mean {}?", *near)
                               : fmt::format("; it has {}", fmt::join(shown, ", "))));
}

}  // namespace

void Function::edit(Edit how, std::string_view operation, const BoundLaunch* launch) {
  const State& s = state();
  executor::Module module = s.loaded->source();
  sort_operations(module, *s.loaded);
  executor::Bindings bindings = s.loaded->bindings();
  const OperationName at = find_operation(module, operation);
  executor::Function& function = module.functions[at.function];
  if (launch != nullptr) {
    const std::string like = launch->name();
    std::string name = like;
    for (int n = 2; bindings.find(name) != nullptr; ++n) name = fmt::format("{}.{}", like, n);
    bindings.add(name, *launch);
    executor::Operation added{.name = "sparse.launch", .attributes = {executor::BindingRef{name}}};
    add_operation(function, std::move(added), like.substr(like.rfind('.') + 1),
                  at.operation + (how == Edit::kInsertBefore ? 0 : 1));
  }
  if (how == Edit::kReplace || how == Edit::kRemove) remove_operation(function, at.operation);
  order_events(module, bindings);
  *this = load(s.device, std::move(module), std::move(bindings));
}

void Function::insert_before(std::string_view operation, const BoundLaunch& launch) {
  edit(Edit::kInsertBefore, operation, &launch);
}
void Function::insert_after(std::string_view operation, const BoundLaunch& launch) {
  edit(Edit::kInsertAfter, operation, &launch);
}
void Function::replace(std::string_view operation, const BoundLaunch& launch) {
  edit(Edit::kReplace, operation, &launch);
}
void Function::remove(std::string_view operation) { edit(Edit::kRemove, operation, nullptr); }

}  // namespace coppice
