// This is known of a function before it runs: the order of its operations, how each is run, where each value
// lives and how long. Made once, immutable, shared by all instances. Private to planned functions.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/loader.h"

namespace coppice::executor {

// This is how a planned function runs an operation.
enum class Mode : uint8_t {
  kOutVariant,  // it writes its results where the plan says
  kNative,      // it makes its results itself, at once
  kBody,        // call, if, case, repeat, while: its functions are planned, too
  kFallback,    // as the executor runs it; its results may come later, and may keep its arguments
};

// This is where a register's value is.
enum class Home : uint8_t {
  kArgument,  // the caller's
  kValue,     // a new async value in each run; bytes have memory of their own
  kSlot,      // a number, in an async value that each run writes anew
  kArena,     // bytes in the instance's arena
  kOutput,    // bytes in the memory of a run's outputs
  kCaller,    // of a body: bytes where the operation that runs it says
};

inline constexpr uint32_t kNoSize = ~0u;

struct PlannedRegister {
  Home home = Home::kValue;
  // The number of its learned size, of kArena and kOutput; a loop's result has a second place, for rounds
  // write into the two by turns.
  uint32_t size = kNoSize, second = kNoSize;
  // The arena's value is written by an out variant, into one async value; false: it comes from a body.
  bool is_persistent() const { return home == Home::kSlot || (home == Home::kArena && is_out); }
  bool is_out = false;
  uint32_t last_return = kNoSize;  // the last of the function's returns that is this register
};

struct FunctionPlan;

struct PlannedOperation {
  uint32_t index = 0;  // in the loaded function
  Mode mode = Mode::kFallback;
  enum class Body : uint8_t { kNone, kCall, kIf, kCase, kRepeat, kWhile } body = Body::kNone;
  bool makes_values = false;  // a result is no slot and no arena's value of an out variant
  bool is_in_place = false;   // its first result has an argument's bytes
  void (*run)(const void* function, OperationCall& call) = nullptr;
  const void* function = nullptr;
  uint32_t first_result = 0, num_results = 0;  // registers
  std::vector<uint32_t> dies;                  // counted registers that nobody needs behind it
  std::vector<std::unique_ptr<const FunctionPlan>> bodies;
};

// An operation that runs the function has to know this of it.
struct FunctionEffects {
  std::vector<bool> keeps;  // of each argument: something may refer to it when the function has ended
  struct Return {
    bool is_fresh = false;          // it is made by an operation that can write where the caller says
    std::vector<uint32_t> aliases;  // arguments that it may be or refer to
  };
  std::vector<Return> returns;
};

// Bytes of the arena that are needed from one operation to another.
struct ArenaBuffer {
  uint32_t begin = 0, end = 0;  // places in FunctionPlan::operations
  std::vector<uint32_t> sizes;  // of the values in it: one, or more where one is made in another's place
  int64_t body_of = -1;         // or what the bodies of this operation need
  std::string name;             // of the first register, or of the operation
};

struct FunctionPlan {
  const LoadedFunction* function = nullptr;
  std::vector<PlannedOperation> operations;  // in the order in which they run
  std::vector<PlannedRegister> registers;
  std::vector<ArenaBuffer> buffers;
  FunctionEffects effects;
  bool needs_values = false;  // nothing in it runs when all its arguments are errors
};

struct PlanLimits {
  bool manages_outputs = true;
  uint32_t most_operations = 100'000;  // of the function and all its bodies; further ones are not planned
};

// The numbers of sizes that a function and its bodies have.
struct PlannedSizes {
  uint32_t count = 0;
  std::vector<uint32_t> outputs;
  std::vector<std::pair<uint32_t, uint32_t>> by_turns;  // of the two places of each loop's result
};

// Returns the plan of a function; adds the numbers that are taken to `sizes`.
std::unique_ptr<const FunctionPlan> plan_function(const LoadedFunction& function, const PlanLimits& limits,
                                                  PlannedSizes& sizes);

}  // namespace coppice::executor
