// WorkerCore: calls as bytes, and functions that run for others.
#include <fmt/format.h>

#include "core/nearest_name.h"
#include "executor/binary.h"
#include "executor/remote/worker_service.h"

namespace coppice::executor::remote {

WorkerCore::Service::~Service() {
  if (core_) end(Error(ErrorCode::kCancelled, fmt::format("worker {} has dropped the work", core_->self())));
}

void WorkerCore::Service::end_with(AsyncValue& value, const std::string& step) {
  if (value.is_error()) return end(value.error().with_step(step));
  Encoder encoder;
  Value encoded;
  try {
    encode_value(core_->codecs_, value, encoder);
    encoded = {encoder.out.take(), core_->handles_of(encoder.references)};
  } catch (const Error& e) {
    return end(e.with_step(step));
  }
  // The references live until they are under way.
  const Leases references = std::move(encoder.references);
  end(encoded);
}

Hash128 WorkerCore::add_module(IntrusivePtr<LoadedModule> module) {
  const Hash128 id = hash128(encode(module->source()));
  const std::lock_guard lock(mutex_);
  modules_[id] = std::move(module);
  return id;
}

IntrusivePtr<LoadedModule> WorkerCore::find_module(const Hash128& id) {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(id);
  return found == modules_.end() ? nullptr : found->second;
}

// Where the module is loaded here, too, a wrong call is an error at once.
void WorkerCore::check_call(const Callee& callee, const std::vector<RCReference<AsyncValue>>& arguments,
                            std::type_index result) {
  const IntrusivePtr<LoadedModule> module = find_module(callee.module);
  if (!module) return;
  const LoadedFunction& f = module->function(callee.function);
  const auto invalid = [&](std::string message) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("@{}: {}", f.name, message));
  };
  if (f.argument_types.size() != arguments.size())
    invalid(
        fmt::format("{} arguments are given, and it takes {}", arguments.size(), f.argument_types.size()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& given = codecs_.of(*arguments[i]->payload_type()).name;
    if (given != f.argument_types[i])
      invalid(fmt::format("argument {} must be {}, and is {}", i + 1, f.argument_types[i], given));
  }
  const std::string& wanted = codecs_.of(result).name;
  const std::string returned = f.result_types.empty() ? "chain" : f.result_types[0];
  if (f.result_types.size() > 1 || returned != wanted)
    invalid(fmt::format("a result of {} is wanted, and it returns ({})", wanted,
                        fmt::join(f.result_types, ", ")));
}

Bytes WorkerCore::encode_call(const Callee& callee, const std::vector<RCReference<AsyncValue>>& arguments,
                              Leases& leases) {
  Encoder encoder;
  encoder.out.fixed64(callee.module.low);
  encoder.out.fixed64(callee.module.high);
  encoder.out.text(callee.function);
  encoder.out.number(arguments.size());
  for (const auto& a : arguments) encode_value(codecs_, *a, encoder);
  leases = std::move(encoder.references);
  return encoder.out.take();
}

RCReference<AsyncValue> WorkerCore::run_here(const Callee& callee,
                                             std::span<const RCReference<AsyncValue>> arguments) {
  try {
    const IntrusivePtr<LoadedModule> module = find_module(callee.module);
    if (!module)
      throw Error(ErrorCode::kNotFound, fmt::format("worker {} has not loaded module {}, of @{}", self(),
                                                    callee.module.hex(), callee.function));
    const LoadedFunction& function = module->function(callee.function);
    if (function.result_types.size() > 1)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("@{} has {} results, and a remote call brings one",
                                                           callee.function, function.result_types.size()));
    const IntrusivePtr<Request> request = host_->start_request();
    auto results = execute(function, arguments, *request);
    if (results.empty()) return make_available_async_value<Chain>();
    return std::move(results[0]);
  } catch (const Error& e) {
    return make_error_async_value(e);
  }
}

RCReference<AsyncValue> WorkerCore::run_call(const Bytes& payload, const Leases& references,
                                             std::string& step) {
  try {
    Decoder decoder{Reader(payload), references};
    Callee callee;
    callee.module.low = decoder.in.fixed64();
    callee.module.high = decoder.in.fixed64();
    callee.function = decoder.in.text();
    step = fmt::format("worker {} @{}", self(), callee.function);
    std::vector<RCReference<AsyncValue>> arguments;
    // A value takes two bytes at least: its type's name, and its size.
    const size_t n = decoder.in.length(2);
    for (size_t i = 0; i < n; ++i) arguments.push_back(decode_value(codecs_, decoder));
    decoder.in.expect_end();
    return run_here(callee, arguments);
  } catch (const Error& e) {
    return make_error_async_value(e);
  }
}

void WorkerCore::run(Service service, const effect::Run& e, const Leases& references) {
  std::string step = fmt::format("worker {}", self());
  RCReference<AsyncValue> result = run_call(e.call.payload, references, step);
  if (e.result) {
    RCReference<AsyncValue> object;
    {
      const std::lock_guard lock(mutex_);
      object = share(value_locked(*e.result));
    }
    object->forward_to(result);
  }
  AsyncValue& waited_for = *result;
  // Encoding is work of the queue's, and not of the thread that completes the result.
  waited_for.and_then([service = std::move(service), result = std::move(result), step = std::move(step),
                       is_create = e.result.has_value()]() mutable {
    WorkerCore& core = service.core();
    core.enqueue([service = std::move(service), result = std::move(result), step = std::move(step),
                  is_create]() mutable {
      if (is_create) return service.end(Value{});
      service.end_with(*result, step);
    });
  });
}

}  // namespace coppice::executor::remote
