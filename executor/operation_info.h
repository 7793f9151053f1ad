// A registry knows this of an operation: its signature, and the functions that run it.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "executor/operation.h"

namespace coppice::executor {

class Registry;

// This says on which thread an operation runs.
enum class Run : uint8_t {
  kInline,    // the one that makes it ready: for what takes less than a microsecond, or only starts something
  kCompute,   // any compute thread, when several are ready at once
  kBlocking,  // a thread that may block: files, devices, other processes
};

// This says when an operation has what it needs of an argument.
enum class Needs : uint8_t {
  kAvailable,  // its value or error
  kEnqueued,   // its event is on the stream (After)
  kNothing,    // a non-strict operation: an async value, whatever its state
};

enum class AttributeKind : uint8_t {
  kBool,
  kInt32,
  kInt64,
  kReal32,
  kReal,
  kString,
  kFunction,
  kIntegers,
  kReals,
  kStrings,
  kBinding
};
// This says what an operation takes as an attribute.
struct AttributeType {
  AttributeKind kind;
  std::string binding_type = {};  // name of a registered type; of a kBinding
};

struct OperationTraits {
  Run run = Run::kInline;
  // It starts before its arguments are available, and when some are errors. This is for operations on
  // async values themselves.
  bool non_strict = false;
  uint32_t cost = 1;  // relative; the executor prefers the longest way to the end of the function
  // It is one of control_flow.h, which a planned function can run itself.
  bool runs_bodies = false;
};

// InferTypes checks a use of a variadic operation, its types and numbers: it throws Error, or returns the
// results' types.
struct OperationUse {
  const std::vector<std::string>& argument_types;
  std::span<const BoundAttribute> attributes;
  size_t num_results;
};
using InferTypes = std::function<std::vector<std::string>(const OperationUse&)>;

// One of the ways in which a planned function (planned/planned_function.h) can run an operation. `run` may
// throw. Where a result is set before the call, it has the type and the place of what the operation writes.
struct Implementation {
  void (*run)(const void* function, OperationCall& call);
  std::shared_ptr<const void> function;
  // Returns whether it can run this use; empty: any. Decided once, when the function is planned.
  std::function<bool(const OperationUse&)> matches;
  // Its first result may have the bytes of this argument, where nobody needs these any more; -1: of none.
  // Then it reads each byte of the argument before it writes there or behind.
  int in_place = -1;
  // Does the same with memory of its own: of out variants, for the executor.
  void (*run_unplanned)(const void* function, OperationCall& call) = nullptr;
};

struct OperationInfo {
  std::string name;
  OperationTraits traits;
  void (*run)(const void* function, OperationCall& call);  // may throw
  std::shared_ptr<const void> function;
  std::vector<std::string> argument_types, result_types;  // of the fixed ones
  std::vector<AttributeType> attributes;
  std::vector<Needs> needs;  // per fixed argument
  bool more_arguments = false, more_results = false, more_attributes = false;
  Needs more_needs = Needs::kAvailable;  // of each further argument
  std::string more_type;                 // of each further argument; empty: any
  InferTypes infer;                      // of what is not fixed
  // The first that matches is taken: of out variants, then of native ones.
  std::vector<Implementation> out_variants = {}, natives = {};
  bool is_made_of_variants = false;  // the executor, too, runs the first out variant that matches
};

// Returns null where none matches.
const Implementation* first_match(const std::vector<Implementation>& all, const OperationUse& use);

// Returns the name that a registry has for a type; a failed check when it has none.
std::string_view registered_name(const Registry& registry, std::type_index type);

}  // namespace coppice::executor
