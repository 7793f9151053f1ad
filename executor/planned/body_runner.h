// Runs a planned function, or a body of one, operation by operation. Private to instances.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "executor/error_rounds.h"
#include "executor/planned/instance.h"
#include "executor/value_list.h"

namespace coppice::executor {

// Where a body writes a value that its caller gets.
struct CallerPlace {
  PlannedBytes::Place place;
  IntrusivePtr<HostMemory> memory;  // null: of the arena, or none
};

// References: a counted register (all but arguments, slots and the arena's values of out variants) has one
// to its value, from when it is set until the last operation that needs it has run. An error in a register
// that is not counted has one, too, and is listed in errors_.
class BodyRunner {
 public:
  BodyRunner(const FunctionPlan& plan, Instance& instance);
  ~BodyRunner();
  BodyRunner(const BodyRunner&) = delete;
  BodyRunner& operator=(const BodyRunner&) = delete;

  // Arguments are +0, and stay until the run has ended. `places`: for the returns; empty: none.
  void begin(std::span<AsyncValue* const> arguments, std::span<const CallerPlace> places = {});
  // Runs as far as it goes. False: it waits for Instance::awaited_, and goes on where it was when called
  // again.
  bool advance();
  // Results are +1. The run is over.
  void take_results(std::span<AsyncValue*> results);
  // Lets go of all that the run has made.
  void abandon();
  // Takes the places of the instance's layout.
  void take_places();
  // Gives all memory of the arena's values back, until there are places again.
  void leave_places();
  // Adds what the run waits at (waiting_texts.h).
  void describe_waiting(std::string& text) const;

 private:
  // A loop, or the one run of a branch or call, that is under way.
  struct Bodies {
    std::vector<std::unique_ptr<BodyRunner>> runners;
    BodyRunner* active = nullptr;
    int64_t round = -1;  // of a loop; -1: it has not begun
    RCReference<AsyncValue> decider;
    std::vector<RCReference<AsyncValue>> values;
    std::vector<CallerPlace> places[2];
    ErrorRounds error_rounds;
    void leave();
  };

  const LoadedOperation& loaded(const PlannedOperation& op) const {
    return plan_.function->operations[op.index];
  }
  AsyncValue* value(uint32_t r) const { return registers_[r].load(std::memory_order_relaxed); }
  void set(uint32_t r, AsyncValue* value) { registers_[r].store(value, std::memory_order_relaxed); }
  bool is_counted(uint32_t r) const {
    const PlannedRegister& to = plan_.registers[r];
    return to.home != Home::kArgument && !to.is_persistent();
  }

  void call(const PlannedOperation& op);
  void make_results(const PlannedOperation& op);
  void fail(const PlannedOperation& op, Error error);
  void fail_by_exception(const PlannedOperation& op);
  bool run_with_care(const PlannedOperation& op);
  bool wait_for(AsyncValue& value);
  bool wait_for_arguments(const LoadedOperation& op);
  void run_fallback(const PlannedOperation& op);
  bool run_bodies(const PlannedOperation& op);
  // Behind as many functions on the stack as there may be, a body is an error.
  bool refuse_nested(const PlannedOperation& op, size_t body);
  bool skip_cancelled(const PlannedOperation& op);
  bool run_branch(const PlannedOperation& op, Bodies& bodies);
  bool run_loop(const PlannedOperation& op, Bodies& bodies);
  bool may_iterate(const PlannedOperation& op, Bodies& bodies, bool& waits);
  void describe_bodies(const PlannedOperation& op, std::string& text) const;
  void find_places(const PlannedOperation& op, Bodies& bodies);
  PlannedBytes::Place place_in(const IntrusivePtr<HostMemory>& memory, uint32_t size) const;
  CallerPlace place_of(uint32_t r, bool second) const;
  void count_place(AsyncValue& value, uint32_t r) const;
  void set_results(const PlannedOperation& op, std::span<AsyncValue*> results);
  void let_go(uint32_t r);
  void drop_errors();

  const FunctionPlan& plan_;
  Instance& instance_;
  std::unique_ptr<std::atomic<AsyncValue*>[]> registers_;
  std::vector<AsyncValue*> slots_;               // by register: what every run writes anew; else null
  std::vector<std::unique_ptr<Bodies>> bodies_;  // by operation
  std::vector<CallerPlace> places_;
  std::vector<uint32_t> errors_;
  size_t next_ = 0;        // operation
  bool is_plain_ = false;  // all values so far are there, and none is an error
};

}  // namespace coppice::executor
