// Operations that run functions: call, if, case, repeat, while, parallel_for.
//
//   %y, %z = call @f (%x)                                   f's results
//   %y = if @then, @else (%condition, %x)                   condition: bool
//   %y = case @f0, @f1, @f2 (%index, %x)                    index: i32; an error when there is no such function
//   %x2, %y2 = repeat @body (%count, %x, %y)                body: (x, y) -> (x, y), count: i32 times, 0 and less: none
//   %x2 = while @body (%condition, %x)                      body: (x) -> (x, condition)
//   %done = parallel_for @body, 16 (%begin, %end, %x)       body: (i32 begin, i32 end, x) -> chain, for blocks of 16
//
// All but parallel_for are non-strict: they start before their arguments are there, and pass on what they
// have; only a condition, an index or a count must be awaited, and an error there becomes every result. A
// loop starts an iteration when the values of the one before are available. `repeat @body, 8 (...)` and
// `while @body, 8 (...)` run up to 8 iterations ahead of that: for bodies that only enqueue work on a stream,
// or that overlap. When all values are errors, and the body's operations all need an argument, `repeat` skips
// iterations that would only pass these on in a circle (error_rounds.h). Its results are those of all
// iterations.
#pragma once
#include "executor/registry.h"

namespace coppice::executor {

void add_control_flow_operations(Registry& registry);

}  // namespace coppice::executor
