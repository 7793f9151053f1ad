// This makes the errors of operations that fail, are skipped, or never get what they wait for.
#include "executor/operation_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace coppice::executor {

using coppice::detail::RefAccess;

namespace {

// Returns whether nobody will complete a value of which the caller has one reference: a producer would
// hold another.
bool is_abandoned(AsyncValue& value) {
  // The order matters: a producer drops its reference after it has completed the value.
  return !value.is_available() && RefAccess::count(&value).is_unique() && !value.is_available();
}

// Returns whether the operation has forgotten a promise that it made. Errors of other operations do not
// count, since their names are in the error's path, nor do results of an operation that passes on what
// others made.
bool is_broken_promise(const LoadedOperation& op, const AsyncValue& value) {
  if (op.non_strict || !value.is_error()) return false;
  const Error error = value.error();
  return coppice::detail::is_dropped_value_error(error) && error.path().empty();
}

Error located(const RunningOperation& op, const Error& error, const LoadedOperation& at) {
  const std::string& file = op.function.module->source().file;
  if (file.empty() || at.position.line == 0) return error;
  return error.with_location(
      {file, static_cast<int>(at.position.line), static_cast<int>(at.position.column)});
}
Error of(const RunningOperation& op, const Error& error) {
  return located(op, error, op.operation).with_step(op.function.describe(op.operation));
}

}  // namespace

void fail_with_exception(const RunningOperation& op, std::span<AsyncValue*> results) {
  const Error error = coppice::detail::current_exception_as_error();
  for (AsyncValue*& result : results) {
    if (result != nullptr && (is_broken_promise(op.operation, *result) || is_abandoned(*result)))
      RefAccess::drop_strong(std::exchange(result, nullptr));
  }
  fail(results, of(op, error));
}

void check_results(const RunningOperation& op, std::span<AsyncValue*> results) {
  const char* message = "the operation left a result unset";
  for (AsyncValue*& result : results) {
    if (result == nullptr) continue;
    if (is_broken_promise(op.operation, *result)) {
      const Error error = of(op, result->error());
      RefAccess::drop_strong(std::exchange(result, make_error_async_value(error).release()));
    } else if (is_abandoned(*result)) {
      message = "the operation dropped a result unset";
      RefAccess::drop_strong(std::exchange(result, nullptr));
    }
  }
  if (std::find(results.begin(), results.end(), nullptr) == results.end()) return;
  fail(results, of(op, Error(ErrorCode::kInternal, message)));
}

namespace {
// Returns whether the operation needs of the argument only that it is on the stream. Whether that has failed
// by now is a matter of time: had it not, the operation would be given to the stream, and get its error.
bool is_event_alone(const RunningOperation& op, const AsyncValue& argument) {
  const OperationInfo& info = *op.operation.info;
  for (size_t i = 0; i < op.operation.arguments.size(); ++i) {
    const Needs needs = i < info.needs.size() ? info.needs[i] : info.more_needs;
    const AsyncValue* const value = op.registers[op.operation.arguments[i]].load(std::memory_order_relaxed);
    if (value == &argument && needs != Needs::kEnqueued) return false;
  }
  return true;
}
}  // namespace

Error skipped(const RunningOperation& op, AsyncValue& argument) {
  Error error = argument.error();
  if (is_event_alone(op, argument)) return error;
  if (error.code() == ErrorCode::kCancelled && !coppice::detail::is_dropped_value_error(error)) return error;
  if (error.path().empty()) {
    for (const uint32_t r : op.operation.arguments) {
      const uint32_t producer = op.function.registers[r].producer;
      if (op.registers[r].load(std::memory_order_relaxed) != &argument || producer == kNoOperation) continue;
      const LoadedOperation& from = op.function.operations[producer];
      error = located(op, error, from).with_step(op.function.describe(from));
      break;
    }
  }
  return error.with_step(op.function.describe(op.operation));
}

void fail(std::span<AsyncValue*> results, Error error) {
  const auto missing = static_cast<uint32_t>(std::count(results.begin(), results.end(), nullptr));
  if (missing == 0) return;
  AsyncValue* value = make_error_async_value(std::move(error)).release();
  RefAccess::count(value).set_unique_to(missing);
  std::replace(results.begin(), results.end(), static_cast<AsyncValue*>(nullptr), value);
}

}  // namespace coppice::executor
