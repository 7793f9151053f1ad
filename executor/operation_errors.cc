// This makes the errors of operations that fail, are skipped, or never get what they wait for.
#include "executor/operation_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/late_errors.h"

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

// Returns whether nothing says yet where an error arose. One of a request that was cancelled arose nowhere.
bool is_nameless(const Error& error) {
  if (!error.path().empty()) return false;
  return error.code() != ErrorCode::kCancelled || coppice::detail::is_dropped_value_error(error);
}

Error of(const RunningOperation& op, const Error& error) {
  return arisen_in(op.function, op.operation, error);
}

// Gives a result that is an error without a path the operation's name, if the error arose there.
void name_now(const RunningOperation& op, AsyncValue*& result) {
  if (!result->is_error()) return;
  const Error error = result->error();
  const bool arose_here = is_broken_promise(op.operation, *result) ||
                          (is_nameless(error) && may_name_errors(op.function, op.operation));
  if (!arose_here) return;
  RefAccess::drop_strong(std::exchange(result, make_error_async_value(of(op, error)).release()));
}

// Gives an error that a result becomes later a place and a path. False: the result is available already.
bool name_later(const RunningOperation& op, AsyncValue& result) {
  return amend_error(result, [&function = op.function, &op = op.operation,
                              module = share(op.function.module)](const Error& error) {
    return is_nameless(error) ? arisen_in(function, op, error) : error;
  });
}

}  // namespace

Error arisen_in(const LoadedFunction& function, const LoadedOperation& op, const Error& error) {
  const std::string& file = function.module->source().file;
  const auto step = [&](const Error& placed) { return placed.with_step(function.describe(op)); };
  if (file.empty() || op.position().line == 0) return step(error);
  return step(error.with_location(
      {file, static_cast<int>(op.position().line), static_cast<int>(op.position().column)}));
}

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
    if (is_abandoned(*result)) {
      message = "the operation dropped a result unset";
      RefAccess::drop_strong(std::exchange(result, nullptr));
    } else if (!op.operation.names_late_errors || result->is_available() || !name_later(op, *result)) {
      name_now(op, result);
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
      if (!runs_functions(from)) error = arisen_in(op.function, from, error);
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
