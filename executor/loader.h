// Loading: a module bound to a registry's operations, checked, and laid out for execution.
//
//   auto module = LoadedModule::load(parse(text, "step.graph"), registry);
//   const LoadedFunction& main = module->function("main");
//   auto bound = LoadedModule::load(parse("... $diffuse ..."), registry, bindings);     // bindings.h
//
// Immutable once loaded: any number of threads and requests execute one loaded module at once, and
// running a function again builds nothing. A module lives as long as anybody refers to it or a
// function of it is still running.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/bindings.h"
#include "executor/registry.h"

namespace coppice::executor {

class LoadedModule;

inline constexpr uint32_t kNoOperation = ~0u;

// This operation reads a register; `needs` says what it needs of the value before it can start.
struct RegisterUser {
  uint32_t operation;
  Needs needs;
};

struct LoadedRegister {
  uint32_t use_count;                   // as Register::use_count
  uint32_t producer;                    // an operation, or kNoOperation for an argument
  std::span<const RegisterUser> users;  // the one to start first comes last
};

struct LoadedOperation : OperationRegisters {
  void (*run)(const void* function, OperationCall& call);
  const void* function;
  uint32_t waits;  // registers that must have what it needs before it starts
  // Cost of the longest way from here to the end of the function, itself included: the critical path goes
  // first.
  uint32_t priority;
  Run where;
  bool non_strict;
  // A value that comes when the operation has ended, and is an error then, must have the operation's name by
  // itself: it leaves the function, or enters another, without an operation that would name its producer.
  bool names_late_errors;
  const OperationInfo* info;

  Position position() const;
};
// 96 bytes and no more: an index into operations is a shift and an addition.
static_assert(sizeof(LoadedOperation) == 96);

// Returns the loaded operation that these registers are of; a failed check where there is none.
inline const LoadedOperation& loaded_operation(const OperationRegisters& registers) {
  COPPICE_CHECK(registers.owner != nullptr, "an operation that is not one of a loaded function");
  return static_cast<const LoadedOperation&>(registers);
}

class LoadedFunction {
 public:
  std::string name;  // without the '@'
  std::vector<std::string> argument_types, result_types;
  const LoadedModule* module = nullptr;

  std::vector<LoadedOperation> operations;
  std::vector<LoadedRegister> registers;  // arguments first
  std::vector<std::string> register_names, register_types;
  std::vector<uint32_t> returns;
  std::vector<uint32_t>
      without_waits;                 // operations that can start at once; the one to start first comes last
  std::vector<uint32_t> non_strict;  // operations, each behind those that produce its arguments

  LoadedFunction() = default;
  LoadedFunction(const LoadedFunction&) = delete;  // operations and registers point into it
  LoadedFunction& operator=(const LoadedFunction&) = delete;

  // "@main add.i32", as it stands in the paths of errors.
  std::string describe(const LoadedOperation& o) const;
  std::vector<std::string> argument_types_of(const LoadedOperation& o) const;

 private:
  friend class FunctionLoader;
  friend struct LoadedOperation;
  std::vector<Position> positions_;         // of operations
  std::vector<BoundAttribute> attributes_;  // of all operations, as the users of all registers
  std::vector<RegisterUser> users_;
};

// Returns the operations in the text's order wherever that is one in which they can run: of those that can,
// the first.
std::vector<uint32_t> run_order(const LoadedFunction& function);

Needs needs_of(const LoadedOperation& op, size_t argument);

// Returns whether one of the operation's attributes is a function, which it may run: errors that it gives may
// be that function's, or its arguments'.
bool runs_functions(const LoadedOperation& op);

// Returns whether an error that the operation gives as a result arose there: one that runs functions passes
// on theirs, and the errors of a stream's events have no name (docs/executor.md).
bool may_name_errors(const LoadedFunction& function, const LoadedOperation& op);

class LoadedModule final : public RefCounted {
 public:
  // Errors: kInvalidArgument with the place in the module's text: an unknown operation or $name (and
  // the nearest known), numbers and types of arguments, results, attributes and of what is bound, an
  // unknown type, operations that wait for each other in a ring. It keeps what is registered and bound;
  // operations registered later are for modules loaded later. Time is linear in the module's size, but for
  // sorting: the users of a register, what can start at once, and texts out of order.
  static IntrusivePtr<LoadedModule> load(Module module, const Registry& registry, Bindings bindings = {});

  // For load() only.
  LoadedModule(Module module, const Registry& registry, Bindings bindings)
      : source_(std::move(module)), registry_(registry), bindings_(std::move(bindings)) {}

  // Errors: kNotFound.
  const LoadedFunction& function(std::string_view name) const;
  const std::vector<std::unique_ptr<LoadedFunction>>& functions() const { return functions_; }
  const Module& source() const { return source_; }
  const Registry& registry() const { return registry_; }
  const Bindings& bindings() const { return bindings_; }

 private:
  const Module source_;
  const Registry registry_;
  const Bindings bindings_;
  std::vector<std::unique_ptr<LoadedFunction>> functions_;
  std::unordered_map<std::string_view, const LoadedFunction*> by_name_;  // by their own names
};

}  // namespace coppice::executor
