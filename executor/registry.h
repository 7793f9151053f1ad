// The operations and value types that functions can name.
//
//   Registry registry;
//   add_builtin_operations(registry);                       // builtin_operations.h, control_flow.h
//   registry.add_type<Mesh>("mesh");
//   registry.add("mesh.area", [](const Mesh& m) { return m.area(); }, {.cost = 20});
//
// operation.h says what a C++ function may look like; its arguments, results and attributes are read off
// its type. Registering is for one thread at a time; afterwards any thread may read a registry.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "executor/host_bytes.h"
#include "executor/operation.h"

namespace coppice::executor {

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

// A handle: copies share what is registered, and each loaded module holds one.
class Registry {
 public:
  Registry();
  Registry(const Registry&) = default;
  Registry& operator=(const Registry&) = default;

  // Names a payload type. Chain ("chain"), bool, int32_t ("i32"), int64_t, float ("f32"),
  // double, std::string and HostBytes ("bytes") are there.
  template <class T>
  void add_type(std::string_view name) {
    constexpr bool kIsNumber = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_empty_v<T>;
    add_type(typeid(T), name, !kIsNumber || !std::is_trivially_copyable_v<T>);
  }
  // A name that is taken is a failed check, and so is an argument or result whose type has no name.
  template <class F>
  void add(std::string_view name, F function, OperationTraits traits = {}, InferTypes infer = nullptr);

  // Adds an out variant: a function that writes its results of type `bytes` where its OutBytes parameters
  // say. If no operation has the name, there is one now, which does the same with memory of its own, and
  // uses that no variant matches are errors when a module is loaded; else the signatures are the same, or a
  // check fails. All variants come before the modules that are to use them.
  template <class F>
  void add_out_variant(std::string_view name, F function,
                       std::function<bool(const OperationUse&)> matches = {}, int in_place = -1);
  // Adds another function for a registered operation, which makes its results itself. It takes plain values,
  // constants and named things, and returns plain values; functions of that kind given to add() are native
  // already, unless they run where they may block.
  template <class F>
  void add_native(std::string_view name, F function, std::function<bool(const OperationUse&)> matches = {});

  const OperationInfo* find(std::string_view name) const;
  // Returns the registered name that is nearest to a misspelt one, or nothing.
  std::string nearest(std::string_view name) const;
  bool has_type(std::string_view name) const;
  std::string_view type_name(std::type_index type) const;  // failed check when there is none
  // Returns whether values of the type may refer to other values' memory: all but numbers and empty types.
  bool may_refer(std::string_view name) const;
  // Returns whether a value, which may come from outside, is known to hold, now or later, the type with
  // that name.
  bool is_type(const AsyncValue& value, std::string_view name) const;
  // Returns the name of the type that it holds; a type that has no name here is shown as in C++.
  std::string type_name_of(const AsyncValue& value) const;

 private:
  void add_type(std::type_index type, std::string_view name, bool may_refer);
  void add(OperationInfo info);
  void add(std::string_view name, Implementation implementation, const OperationInfo& signature, bool is_out);

  struct Tables {
    std::unordered_map<std::type_index, std::string> type_names;
    std::unordered_map<std::string_view, std::type_index> types;  // by the names in type_names
    std::unordered_map<std::string_view, bool> may_refer;         // by these, too
    std::map<std::string, OperationInfo, std::less<>> operations;
  };
  std::shared_ptr<Tables> tables_ = std::make_shared<Tables>();
};

}  // namespace coppice::executor

#include "executor/registry_inl.h"
