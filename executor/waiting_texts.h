// Lines of Request::describe_waiting(), for whatever runs functions: each says what waits for what.
#pragma once
#include <atomic>
#include <string>

#include "executor/loader.h"

namespace coppice::executor {

// Adds "@main add.i32 (line 4) waits for %x (async.i32, which has started), %y (an argument)", or that the
// operation is about to run, since all its arguments are there. `registers` have the function's values. Null
// ones, and indirect ones unless all operations before this one `have_started`, may have a producer that
// waits.
void describe_operation(std::string& text, const LoadedFunction& function, const LoadedOperation& operation,
                        const std::atomic<AsyncValue*>* registers, bool have_started);

// Adds "repeat @body waits for its count after 0 iterations". `has_decider`: what decides is there.
void describe_loop(std::string& text, bool is_while, const LoadedFunction& body, bool has_decider,
                   int64_t iterations);

// Adds "a choice between @then and 1 more waits for its condition".
void describe_choice(std::string& text, const LoadedFunction& first, size_t num_functions);

}  // namespace coppice::executor
