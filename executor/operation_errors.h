// The errors of operations that fail, are skipped, or leave a result unset: for whatever runs operations.
#pragma once
#include <atomic>
#include <span>

#include "core/error.h"
#include "executor/loader.h"

namespace coppice::executor {

// An operation of a function that runs, whose values are in these registers.
struct RunningOperation {
  const LoadedFunction& function;
  const LoadedOperation& operation;
  const std::atomic<AsyncValue*>* registers;
};

// Call it inside a catch block. Results that are not set, and those that the operation has made and will not
// complete, become its error.
void fail_with_exception(const RunningOperation& op, std::span<AsyncValue*> results);
// Checks that every result is set, or that somebody will set it. A promise that the operation has
// forgotten is the same error as one that is forgotten later, with the operation's name and place. Errors
// that it has returned without a path get these, too, and where nothing behind the operation would give them
// (LoadedOperation::names_late_errors) also those that its results become later.
void check_results(const RunningOperation& op, std::span<AsyncValue*> results);
// Returns an error that arose in an operation, with its place, unless it has one, and name.
Error arisen_in(const LoadedFunction& function, const LoadedOperation& op, const Error& error);
// Returns the error of a skipped operation: its argument's, with the producer as the path's beginning
// when that was asynchronous and could not add its own name. That of an event is passed on as it is, as the
// stream does with operations that it was given before the event failed.
Error skipped(const RunningOperation& op, AsyncValue& argument);
// Makes one error value of all results that are not set.
void fail(std::span<AsyncValue*> results, Error error);

}  // namespace coppice::executor
