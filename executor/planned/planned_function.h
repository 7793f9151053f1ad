// Planned functions: a loaded function whose values have places before it runs.
//
//   auto module = LoadedModule::load(parse(text), registry);
//   auto planned = PlannedFunction::create(module->function("step"));
//   auto instance = planned->instance();                        // one per thread; microseconds
//   auto results = instance->run({x, y}, *request);             // as execute() of executor.h
//
// An instance runs operations one after the other on the calling thread, in the order of the text. Each is
// run in one of three ways, chosen here, once: by an *out variant*, which writes its results where the plan
// says; by a *native* function, which makes them at once; or as the executor runs it. `call`, `if`, `case`,
// `repeat` and `while` run bodies that are planned, too. What comes later is waited for when something
// needs it, without blocking: the run goes on where its request's work runs. A wait holds up all that
// follows in the text, so nothing there may be what ends it.
//
// Bytes (host_bytes.h) that out variants make, and that nothing refers to when the function has ended,
// share one arena of the instance. How many each needs is learned from run to run: the first run gives each
// value memory of its own, and so does a later one to a value that outgrows its place; the next run has
// room for it. Sizes never shrink. The arena is no memory of a host's. Outputs lie in memory of their own
// that lives as long as one of them.
//
// Nothing of a run that is steady is allocated on the heap: not numbers, nor bytes; outputs need one
// allocation of the host's memory for their bytes together, and their async values come from the pool.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/planned/layout.h"

namespace coppice::executor {

class Instance;

struct PlanOptions {
  // kOffsets: the exact planner's, with a limit. kGroups: values that are never needed together share one
  // piece each: larger, and made in no time where sizes change often.
  Placement placement = Placement::kOffsets;
  // False: outputs have memory of their own, one by one.
  bool manages_outputs = true;
};

struct PlannedMemory {
  size_t num_values = 0;    // with a place in the arena
  size_t naive_bytes = 0;   // all of them side by side
  size_t arena_bytes = 0;   // of each instance
  size_t least_bytes = 0;   // that any plan needs
  size_t output_bytes = 0;  // of each run's outputs together
};

// Immutable but for the sizes that it has learned. Thread-safe.
class PlannedFunction final : public RefCounted {
 public:
  // Keeps the function's module. Cost: some microseconds per operation.
  static IntrusivePtr<const PlannedFunction> create(const LoadedFunction& function, PlanOptions options = {});
  // For create() only.
  PlannedFunction(const LoadedFunction& function, PlanOptions options);
  ~PlannedFunction() override;

  const LoadedFunction& function() const { return function_; }
  // A new instance, which keeps the plan. Cost: an allocation for the function and each of its bodies, and
  // one for each out variant's result; its arena is made by its first run that has one.
  IntrusivePtr<Instance> instance() const;
  // Returns what runs so far have led to; nothing before the first.
  PlannedMemory memory() const;
  // Returns a line on the function's memory, and one for each operation: how it is run, and where its
  // results are.
  std::string explain() const;
  // Returns an SVG document: the arena's bytes over the operations.
  std::string memory_picture() const;
  // Outputs that were copied out of their memory (HostBytes::copy_out()), in all runs so far.
  int64_t num_copied_outputs() const { return copies_->load(std::memory_order_relaxed); }

 private:
  friend class Instance;
  // Takes a run's sizes over. Cost: a plan where one of them has grown.
  void learn(const std::vector<LearnedSize>& sizes) const;
  std::shared_ptr<const Layout> layout() const;

  const IntrusivePtr<const LoadedModule> module_;
  const LoadedFunction& function_;
  const PlanOptions options_;
  PlannedSizes numbers_;
  std::unique_ptr<const FunctionPlan> plan_;
  const std::shared_ptr<std::atomic<int64_t>> copies_ = std::make_shared<std::atomic<int64_t>>(0);
  mutable std::mutex mutex_;          // guards what follows but version_
  mutable uint64_t num_changes_ = 0;  // of sizes_
  mutable std::vector<size_t> sizes_;
  mutable bool is_laid_out_ = true;  // layout_ is that of sizes_
  mutable std::shared_ptr<const Layout> layout_;
  mutable std::atomic<uint64_t> version_{0};  // of layout_: instances look at this before each run
};

}  // namespace coppice::executor
