// This makes the errors of a frame's operations that fail, are skipped, or never get what they wait for.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "executor/frame.h"

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

}  // namespace

// Results that the operation has made and will not complete become its error, too.
void Frame::fail_with_exception(const LoadedOperation& op, std::span<AsyncValue*> results) const {
  const Error error = coppice::detail::current_exception_as_error();
  for (AsyncValue*& result : results) {
    if (result != nullptr && (is_broken_promise(op, *result) || is_abandoned(*result)))
      RefAccess::drop_strong(std::exchange(result, nullptr));
  }
  fail(results, located(error, op).with_step(function_.describe(op)));
}

// Checks that every result is set, or that somebody will set it. A promise that the operation has
// forgotten is the same error as one that is forgotten later, with the operation's name and place.
void Frame::check_results(const LoadedOperation& op, std::span<AsyncValue*> results) const {
  const char* message = "the operation left a result unset";
  for (AsyncValue*& result : results) {
    if (result == nullptr) continue;
    if (is_broken_promise(op, *result)) {
      const Error error = located(result->error(), op).with_step(function_.describe(op));
      RefAccess::drop_strong(std::exchange(result, make_error_async_value(error).release()));
    } else if (is_abandoned(*result)) {
      message = "the operation dropped a result unset";
      RefAccess::drop_strong(std::exchange(result, nullptr));
    }
  }
  if (std::find(results.begin(), results.end(), nullptr) == results.end()) return;
  fail(results, located(Error(ErrorCode::kInternal, message), op).with_step(function_.describe(op)));
}

Error Frame::located(const Error& error, const LoadedOperation& op) const {
  const std::string& file = function_.module->source().file;
  if (file.empty() || op.position.line == 0) return error;
  return error.with_location(
      {file, static_cast<int>(op.position.line), static_cast<int>(op.position.column)});
}

// Returns the error of a skipped operation: its argument's, with the producer as the path's beginning
// when that was asynchronous and could not add its own name.
Error Frame::skipped(const LoadedOperation& op, AsyncValue& argument) const {
  Error error = argument.error();
  if (error.code() == ErrorCode::kCancelled && !coppice::detail::is_dropped_value_error(error)) return error;
  if (error.path().empty()) {
    for (const uint32_t r : op.arguments) {
      const uint32_t producer = function_.registers[r].producer;
      if (registers_[r].load(std::memory_order_relaxed) != &argument || producer == kNoOperation) continue;
      const LoadedOperation& from = function_.operations[producer];
      error = located(error, from).with_step(function_.describe(from));
      break;
    }
  }
  return error.with_step(function_.describe(op));
}

// Makes one error value of all results that are not set.
void Frame::fail(std::span<AsyncValue*> results, Error error) {
  const auto missing = static_cast<uint32_t>(std::count(results.begin(), results.end(), nullptr));
  if (missing == 0) return;
  AsyncValue* value = make_error_async_value(std::move(error)).release();
  RefAccess::count(value).set_unique_to(missing);
  std::replace(results.begin(), results.end(), static_cast<AsyncValue*>(nullptr), value);
}

constinit const Suspended::Type Frame::kType = {
    [](const Suspended& self, std::string& text) { static_cast<const Frame&>(self).describe_waiting(text); },
    [](Suspended& self) { return RefAccess::count(&static_cast<Frame&>(self)).try_add_strong(); },
    [](Suspended& self) { IntrusivePtr<Frame>::reclaim(&static_cast<Frame&>(self))->cancel_waiting(); }};

void Frame::describe_waiting(std::string& text) const {
  for (uint32_t op = 0; op < function_.operations.size(); ++op) {
    // This is an exchange and no load, as frame.h explains.
    if (waits_[op].fetch_add(0, std::memory_order_acq_rel) == 0) continue;
    const LoadedOperation& o = function_.operations[op];
    text += fmt::format("{}{} waits for", function_.describe(o),
                        o.position.line > 0 ? fmt::format(" (line {})", o.position.line) : "");
    const char* separator = " ";
    const std::span<const uint32_t> arguments = o.arguments;
    for (auto at = arguments.begin(); at != arguments.end(); ++at) {
      const uint32_t r = *at;
      const AsyncValue* value = registers_[r].load(std::memory_order_acquire);
      if (value != nullptr && value->is_available()) continue;
      if (std::find(arguments.begin(), at, r) != at) continue;  // named already
      const uint32_t producer = function_.registers[r].producer;
      text += fmt::format(
          "{}%{} ({}{})", separator, function_.register_names[r],
          producer == kNoOperation ? "an argument" : function_.operations[producer].info->name,
          producer != kNoOperation && value != nullptr && !value->is_indirect() ? ", which has started" : "");
      separator = ", ";
    }
    text += '\n';
  }
}

}  // namespace coppice::executor
