// Modules: functions as static data-flow graphs, before they are bound to C++ operations. Plain data.
//
// A function has registers, each set once: its arguments are registers 0 .. n-1, every other one is the
// result of exactly one operation, and they are numbered in the order in which operations set them. An
// operation runs when its argument registers have values; nothing else orders operations, so that their order
// here (and in the text) is free. `return` is no operation.
//
//   text (text.h)  --parse-->  Module  --load (loader.h)-->  LoadedModule, which is executed
//                  <--print--          --encode, decode (binary.h)-->  file
//
// Thread-compatible, as every value type here.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace coppice::executor {

// A function of the same module, by name ("@name" in the text).
struct FunctionRef {
  std::string name;
  bool operator==(const FunctionRef&) const = default;
};

// A thing that whoever loads the module gives by name ("$name" in the text): a launch, a buffer (bindings.h).
struct BindingRef {
  std::string name;
  bool operator==(const BindingRef&) const = default;
};

// A constant that is part of an operation, such as the 42 of `constant.i32 42`, or a list of constants of one
// kind. An empty list has no kind: it is always one of integers.
using Attribute = std::variant<bool, int64_t, double, std::string, FunctionRef, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, BindingRef>;

// A place in the module's text, counted from 1; 0: none.
struct Position {
  uint32_t line = 0, column = 0;
  bool operator==(const Position&) const = default;
};

struct Register {
  std::string name;  // without the '%'
  // References that a value gets when it is stored here: one for being set, one per use as an argument of an
  // operation (an operation that names it twice uses it twice), one per place in `return`.
  uint32_t use_count = 1;
  std::vector<uint32_t> used_by;  // operations that have it as an argument, each once, ascending
  bool operator==(const Register&) const = default;
};

struct Operation {
  std::string name;  // of a registered operation, "add.i32"
  std::vector<Attribute> attributes;
  std::vector<uint32_t> arguments, results;  // registers
  Position position;                         // of the name
  bool operator==(const Operation&) const = default;
};

struct Function {
  std::string name;                                       // without the '@'
  std::vector<std::string> argument_types, result_types;  // names of registered types, "i32"
  std::vector<Register> registers;                        // arguments first
  std::vector<Operation> operations;
  std::vector<uint32_t> returns;       // registers
  Position position, return_position;  // of the name, of `return`
  bool operator==(const Function&) const = default;
};

struct Module {
  std::string file;  // where it came from, for errors; may be empty
  std::vector<Function> functions;
  bool operator==(const Module&) const = default;
};

// Fills in use_count and used_by of every register. All indices of registers must exist.
void count_uses(Function& function);

// Checks all that needs no registry: register indices, every register set exactly once and in order, names
// (names.h), distinct ones of functions and registers, attributes that name functions of the module, empty
// lists, numbers of arguments and results of the signature, use counts and used-by records. Linear time.
// Errors: kInvalidArgument with the place.
void check(const Module& module);

}  // namespace coppice::executor
