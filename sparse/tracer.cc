// Noting what code gives to a stream (see tracer.h), and the control flow that is traced.
#include "sparse/tracer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "executor/names.h"
#include "gpu/buffer_ranges.h"
#include "sparse/bound_launches.h"
#include "sparse/device_operations.h"
#include "sparse/function.h"
#include "sparse/function_events.h"
#include "sparse/function_memory.h"
#include "sparse/operations.h"
#include "sparse/temporary_buffer.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

std::string as_name(std::string_view text) {
  std::string name(text);
  for (char& c : name)
    if (!executor::is_name_char(c)) c = '_';
  return name.empty() ? "_" : name;
}

// Returns what a kernel is called within its file.
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string place_of(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), where.line());
}

std::string name_of(const Node& node) {
  const TreeStorage& tree = node.storage();
  return node.id() == 0 ? fmt::format("{}.root", tree.options().name)
                        : fmt::format("{}.{}{}", tree.options().name,
                                      node_kind_name(tree.description().node(node.id()).kind), node.id());
}

}  // namespace

Tracer::Tracer(IntrusivePtr<Device> device, std::string name, const std::source_location& where)
    : device_(std::move(device)), place_(place_of(where)), refusal_(this) {
  if (current() != nullptr)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("trace() at {}: it is inside of the trace() at {}", place_, current()->place_));
  if (!device_) throw Error(ErrorCode::kInvalidArgument, fmt::format("trace() at {}: no device", place_));
  if (!executor::is_name(name))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("trace() at {}: {:?} is no name of a function: expected letters, digits, '_' and '.'",
                    place_, name));
  open_.push_back(event_function(std::move(name)));
  TracedCalls::current_ = this;
}

Tracer::~Tracer() {
  if (TracedCalls::current_ == this) TracedCalls::current_ = nullptr;
}

void Tracer::refuse(std::string_view call) {
  const executor::Function& f = open_.back();
  const std::string after =
      f.operations.empty() ? ""
                           : fmt::format(", behind {}", f.registers[f.operations.back().results[0]].name);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("trace() at {}: {} cannot be traced{} in @{}: what is traced has not run, so that "
                          "there is nothing to wait for or to read back",
                          place_, call, after, f.name));
}

template <class T>
executor::BindingRef Tracer::bind(const T& value, std::pair<const void*, uint64_t> identity,
                                  std::string_view label) {
  const auto [entry, is_new] = names_.try_emplace(identity);
  if (is_new) {
    const std::string like = as_name(label);
    std::string name = like;
    for (int& n = bound_like_[like]; bindings_.find(name) != nullptr;)
      name = fmt::format("{}.{}", like, ++n + 1);
    bindings_.add(name, value);
    entry->second = name;
  }
  return {entry->second};
}

executor::Attribute Tracer::attribute_of(const Operand& operand, std::string_view label) {
  struct Binder {
    Tracer& tracer;
    std::string_view label;

    executor::Attribute operator()(int64_t value) const { return value; }
    executor::Attribute operator()(const executor::FunctionRef& f) const { return f; }
    executor::Attribute operator()(const BoundLaunch& launch) const {
      const auto shared = launch.shared();
      const std::vector<TemporaryArgument>& temporaries = shared->launch.temporaries;
      for (const TemporaryArgument& t : temporaries) tracer.check_temporary(t.buffer, label);
      executor::BindingRef name = tracer.bind(launch, {launch.identity(), 0}, launch.name());
      if (!temporaries.empty()) tracer.with_temporaries_.emplace(name.name, launch);
      return name;
    }
    executor::Attribute operator()(const Node& node) const {
      return tracer.bind(node, {&node.storage(), node.id()}, name_of(node));
    }
    executor::Attribute operator()(const BufferRef& buffer) const {
      if (!buffer) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: there is no buffer", label));
      tracer.check_temporary(buffer, label);
      const bool is_temporary = as_temporary(*buffer) != nullptr;
      return tracer.bind(buffer, {buffer.get(), ~uint64_t{0}}, is_temporary ? "temporary" : "buffer");
    }
    executor::Attribute operator()(const CountSlot& slot) const {
      return tracer.bind(slot, {&slot.storage(), ~uint64_t{0}}, "slot");
    }
    executor::Attribute operator()(const Function& function) const {
      return tracer.bind(function, {&function.work(), ~uint64_t{0}}, function.name());
    }
  };
  return std::visit(Binder{*this, label}, operand);
}

void Tracer::check_device(const Operand& operand, std::string_view label) const {
  const Device* its = device_.get();
  if (const auto* const launch = std::get_if<BoundLaunch>(&operand)) its = &launch->device();
  if (const auto* const node = std::get_if<Node>(&operand)) its = &node->storage().device();
  if (const auto* const slot = std::get_if<CountSlot>(&operand)) its = &slot->storage().device();
  if (const auto* const function = std::get_if<Function>(&operand)) {
    its = &function->device();
  }
  const auto* const buffer = std::get_if<BufferRef>(&operand);
  if (buffer != nullptr && *buffer && is_of_another_device(device_->context(), (*buffer)->data()))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("trace() at {}: {} is given a buffer of another device", place_, label));
  if (its == device_.get()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("trace() at {}: {} belongs to another device ({})", place_, label, its->name()));
}

AsyncValueRef<Chain> Tracer::add(std::string_view operation, std::string_view label,
                                 std::vector<Operand> operands) {
  executor::Operation op{.name = std::string(operation)};
  for (const Operand& operand : operands) {
    check_device(operand, label);
    op.attributes.push_back(attribute_of(operand, label));
  }
  add_operation(open_.back(), std::move(op), as_name(last_part(label)));
  return make_error_async_value<Chain>(
      Error(ErrorCode::kInvalidArgument,
            fmt::format("{} is part of the function that is traced at {}: it has not run", label, place_)));
}

AsyncValueRef<Chain> Tracer::launch(const BoundLaunch& launch) {
  return add("sparse.launch", launch.name(), {launch});
}
AsyncValueRef<Chain> Tracer::deactivate_all(const Node& node) {
  return add("sparse.deactivate_all", "deactivate_all", {node});
}

BufferRef Tracer::temporary(Device& device, size_t bytes) {
  if (&device != device_.get())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("trace() at {}: a temporary of another device ({})", place_, device.name()));
  auto made = make_intrusive<TemporaryBuffer>(device, std::max<size_t>(bytes, 1));
  const auto begin = reinterpret_cast<uintptr_t>(made->data());
  return temporaries_[begin] = std::move(made);
}
IntrusivePtr<Buffer> Tracer::temporary_at(uintptr_t begin) const {
  const auto found = temporaries_.find(begin);
  return found == temporaries_.end() ? nullptr : found->second;
}

void Tracer::check_temporary(const BufferRef& buffer, std::string_view label) const {
  const TemporaryBuffer* const temporary = as_temporary(*buffer);
  if (temporary == nullptr || temporary_at(reinterpret_cast<uintptr_t>(temporary->data())) == buffer) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("trace() at {}: {} is given a temporary of another function", place_, label));
}

// Gives temporaries their memory, now that it is known when each is used, and launches their addresses.
void Tracer::place_temporaries(executor::Module& module) {
  const auto loaded = executor::LoadedModule::load(module, function_registry(), bindings_);
  coppice::place_temporaries(*device_, *loaded);
  for (const auto& [name, launch] : with_temporaries_)
    bindings_.replace(name, BoundLaunches::at_places(launch));
  order_events(module, bindings_);
}

void Tracer::begin_body(std::string_view kind) {
  const int number = ++bodies_[std::string(kind)];
  const std::string& outer = open_.front().name;
  open_.push_back(event_function(fmt::format("{}.{}{}", outer, kind, number)));
}

executor::FunctionRef Tracer::end_body() {
  done_.push_back(std::move(open_.back()));
  open_.pop_back();
  return {done_.back().name};
}

Function Tracer::finish() {
  executor::Module module{.file = fmt::format("traced at {}", place_)};
  module.functions.push_back(std::move(open_.front()));
  for (executor::Function& body : done_) module.functions.push_back(std::move(body));
  std::sort(module.functions.begin() + 1, module.functions.end(),
            [](const executor::Function& a, const executor::Function& b) { return a.name < b.name; });
  TracedCalls::current_ = nullptr;
  const WorkRefusal::Scope lifted(nullptr);
  order_events(module, bindings_);
  if (!temporaries_.empty()) place_temporaries(module);
  return Function::load(device_, std::move(module), std::move(bindings_));
}

namespace {

void check_code(std::string_view call, const std::function<void()>& code) {
  if (!code)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is given a function that is empty", call));
}

}  // namespace

Function trace(IntrusivePtr<Device> device, const std::function<void()>& code, std::string name,
               const std::source_location& where) {
  Tracer tracer(std::move(device), std::move(name), where);
  check_code("trace()", code);
  code();
  return tracer.finish();
}

namespace {

[[noreturn]] void refuse_outside(std::string_view call) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is for code that is traced, and nothing is traced on this thread", call));
}

}  // namespace

void repeat(int64_t times, const std::function<void()>& body) {
  check_code("repeat()", body);
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) {
    for (int64_t i = 0; i < times; ++i) body();
    return;
  }
  executor::FunctionRef f = tracer->trace_body("repeat", body);
  tracer->add("sparse.repeat", "repeat", {times, std::move(f)});
}

void repeat(const Slot<int32_t>& times, const std::function<void()>& body) {
  check_code("repeat()", body);
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) refuse_outside("repeat() of a slot");
  executor::FunctionRef f = tracer->trace_body("repeat", body);
  tracer->add("sparse.repeat_by", "repeat", {times, std::move(f)});
}

void loop_while(const DeviceFlag& flag, const std::function<void()>& body) {
  check_code("loop_while()", body);
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) refuse_outside("loop_while()");
  executor::FunctionRef f = tracer->trace_body("while", body);
  tracer->add("sparse.while", "while", {flag.buffer, static_cast<int64_t>(flag.offset_bytes), std::move(f)});
}

void branch(const DeviceFlag& flag, const std::function<void()>& then,
            const std::function<void()>& otherwise) {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) refuse_outside("branch()");
  check_code("branch()", then), check_code("branch()", otherwise);
  executor::FunctionRef f = tracer->trace_body("then", then), g = tracer->trace_body("else", otherwise);
  tracer->add("sparse.branch", "branch",
              {flag.buffer, static_cast<int64_t>(flag.offset_bytes), std::move(f), std::move(g)});
}

}  // namespace coppice
