// The readable form of modules.
//
//   // Adds five, twice.
//   func @add_five(%x: i32) -> i32 {
//     %five = constant.i32 5
//     %sum = add.i32(%x, %five)
//     return %sum
//   }
//   func @main() -> (i32, i32) {
//     %a = constant.i32 1
//     %b = call @add_five (%a)
//     %c = call @add_five (%b)
//     return %b, %c
//   }
//
// An operation is [results =] name [attribute, ...] [(argument, ...)]. Attributes are true, false, integers
// of 64 bits, reals (with a point or an exponent; inf, -inf, nan, and nan:7ff8000000000001 for a NaN of other
// bits), "strings" with C escapes, @functions, $things that are given when the module is loaded (bindings.h),
// and [lists] of integers, of reals or of strings. Names consist
// of letters, digits, '_' and '.' (those of operations: names.h); comments run from // to the end of the
// line; line ends mean nothing else. A register may be used before the line that sets it. A function ends
// with its one `return`, also if it has no results.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "executor/module.h"

namespace coppice::executor {

// The NaN that the text calls `nan`.
inline constexpr uint64_t kPlainNan = 0x7ff8000000000000;

// Returns the module of a text, with its use counts; check() accepts it. Columns count bytes. Time and
// memory are linear in the text's size. Errors: kInvalidArgument at `file`:line:column, saying what was
// found and what was expected.
Module parse(std::string_view text, std::string file = {});

// parse(print(m)) is m but for positions and file, reals bit for bit; print(parse(print(m))) is print(m)
// exactly. This holds for modules that check() accepts; a register that does not exist is a failed check.
std::string print(const Module& module);
std::string print(const Function& function);

}  // namespace coppice::executor
