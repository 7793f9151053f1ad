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
// An operation is [results =] name [attribute, ...] [(argument, ...)]. Attributes are true, false, integers, reals (with
// a point or an exponent; inf, -inf, nan), "strings" with C escapes, and @functions. Names consist of letters, digits,
// '_' and '.'; comments run from // to the end of the line; line ends mean nothing else. A register may be used before
// the line that sets it.
#pragma once
#include <string>
#include <string_view>

#include "executor/module.h"

namespace coppice::executor {

// Errors: kInvalidArgument at `file`:line:column, saying what was found and what was expected.
Module parse(std::string_view text, std::string file = {});

// parse(print(m)) is m but for positions and file; print(parse(print(m))) is print(m) exactly.
std::string print(const Module& module);
std::string print(const Function& function);

}  // namespace coppice::executor
