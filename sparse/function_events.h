// The events between the operations of a function, which follow from what these use; for what traces and
// edits functions (sparse/tracer.h, sparse/function.h).
#pragma once
#include <vector>

#include "executor/bindings.h"
#include "executor/loader.h"
#include "executor/module.h"

namespace coppice {

// Adds an operation that gives one event, behind all others or before the one with the number `at`; `name` is
// what its event is called, or like it where another one is called so. Its own events come from
// order_events().
void add_operation(executor::Function& function, executor::Operation operation, std::string_view name,
                   size_t at = ~size_t{0});
void remove_operation(executor::Function& function, size_t at);
// Returns a function that takes an event, which has no operations yet.
executor::Function event_function(std::string name);

// Returns the numbers of the functions that its first one is made of, itself first; a module may have others,
// which the executor runs.
std::vector<size_t> reachable_functions(const executor::Module& module);
// Puts the operations of those functions into the order in which they run.
void sort_operations(executor::Module& module, const executor::LoadedModule& loaded);
// Gives the operations of those functions the events that they need: those of the operations that they must
// come behind, in the order in which they stand. Errors: as Function::load().
void order_events(executor::Module& module, const executor::Bindings& bindings);

}  // namespace coppice
