// Executing a loaded function: what is ready runs, values die at their last use.
//
//   auto results = execute(module->function("main"), {a, b}, *request);   // returns at once
//   wait(*results[0]);                                                    // at the program's edge only
//
// An operation starts when its arguments have what it needs of them (registry.h, Needs), on the thread
// that made the last of them so, unless its Run says otherwise. Nothing blocks. execute() returns when
// what is cheap and could run has run on this thread, and the rest of what could start is handed over to
// the host's queue (without a queue, has run, too): results that are there by then are the values
// themselves, the others indirect values that are forwarded when they come. A function whose operations
// all complete at once runs without an atomic read-modify-write per operation, and without any allocation
// but its frame and its values, both from pools.
//
// Errors: an operation with an error among its arguments is skipped; its results are the first such error,
// with the operation's name added to the error's path. Others are not concerned. Order: on one thread depth
// first, the longest remaining path first.
#pragma once
#include <span>
#include <vector>

#include "executor/loader.h"
#include "executor/must_run.h"

namespace coppice::executor {

// Arguments are +0, results +1. An argument that is not available must come from a Promise, whose drop is an
// error: the function holds references to it, so a plain reference that its producer drops would leave it
// waiting for ever. Errors: kInvalidArgument for the wrong number or type of arguments. An
// untyped indirect value is checked when it has a value, and is an error kInvalidArgument to its users if
// that is of another type.
std::vector<RCReference<AsyncValue>> execute(const LoadedFunction& function,
                                             std::span<const RCReference<AsyncValue>> arguments,
                                             Request& request);
inline std::vector<RCReference<AsyncValue>> execute(const LoadedFunction& function,
                                                    std::initializer_list<RCReference<AsyncValue>> arguments,
                                                    Request& request) {
  return execute(function, std::span(arguments.begin(), arguments.size()), request);
}

// A function's arguments, whose number and types are right, or will be errors where they turn out not to be.
class CheckedArguments {
 public:
  // Errors: kInvalidArgument, as of execute().
  CheckedArguments(const LoadedFunction& function, std::span<const RCReference<AsyncValue>> arguments,
                   const Request& request);
  std::span<AsyncValue* const> values() const { return values_; }

 private:
  std::vector<AsyncValue*> values_;
  std::vector<RCReference<AsyncValue>> made_;  // that stand for untyped ones, and for events of elsewhere
};

// The same without checks, for operations that call functions; the caller owns the results. They are
// errors where functions are nested more than 500 deep on one stack: recursion without an end must not
// overflow it.
void execute(const LoadedFunction& function, std::span<AsyncValue* const> arguments,
             std::span<AsyncValue*> results, Request& request);

// Runs `work` where the request's other work runs: by its queue, or at once where there is none.
// Continuations must not compute on whatever thread completes a value: what else waits for the value would
// wait for them. `work` keeps the request alive.
template <class F>
void resume(Request& request, F work) {
  WorkQueue* const queue = request.queue();
  if (queue == nullptr) {
    work();
  } else {
    queue->add(request.source(), ~0u, Task(MustRun(request, std::move(work))));
  }
}

}  // namespace coppice::executor
