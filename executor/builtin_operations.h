// Constants, arithmetic and comparison, chains, and the border between streams and the host.
//
//   constant.i32 42     constant.i64   constant.f32   constant.f64   constant.bool   constant.string
//   add.T, sub.T, mul.T, div.T, min.T, max.T (a, b)      T = i32, i64 (wrap around), f32, f64; integers divided by zero: an error
//   less.T, equal.T (a, b) -> bool      not (a)   and, or (a, b)
//   chain.new () -> chain               chain.join (a, b, ...) -> chain, when all are there
//   stream.start (chain) -> event       what follows on the request's stream starts when the chain is there
//   stream.done (event) -> chain        available when the stream has come that far: how the host consumes an event
//   stream.join (a, b) -> event         behind both in the stream's order
#pragma once
#include "executor/registry.h"

namespace coppice::executor {

// Adds these, and control flow (control_flow.h).
void add_builtin_operations(Registry& registry);

}  // namespace coppice::executor
