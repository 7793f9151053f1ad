// call, if, case and parallel_for. Loops: loops.cc.
#include "executor/control_flow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <unordered_set>

#include "core/count_down.h"
#include "core/error.h"
#include "executor/control_flow_types.h"
#include "executor/executor.h"
#include "executor/operation_errors.h"
#include "executor/value_list.h"
#include "executor/waiting_texts.h"

namespace coppice::executor {
namespace {

void call(Constant<LoadedFunction> function, RemainingArguments arguments, RemainingResults results,
          Request& request) {
  ValueList values(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i];
  execute(function.get(), values.span(), results, request);
}

// A choice among functions whose selector has not come yet.
class Branch final : public RefCountedBase<Branch>, private Suspended {
 public:
  using Choose = const LoadedFunction* (*)(AsyncValue& selector, RemainingAttributes functions);

  Branch(const LoadedOperation& operation, Choose choose, RemainingAttributes functions, AsyncValue* selector,
         RemainingArguments arguments, RemainingResults results, Request& request)
      : Suspended(kType),
        operation_(operation),
        choose_(choose),
        functions_(functions),
        module_(share(functions[0].function->module)),
        selector_(share(selector)),
        request_(share(&request)),
        arguments_(references_to(arguments)),
        results_(make_pending(results, functions[0].function->result_types, request)) {}
  void start() {
    const RCReference<AsyncValue> selector = selector_;  // which another thread's cancel lets go of
    if (!request_->add(*this)) return fail_cancelled();
    selector->and_then([self = share(this)]() mutable {
      Request& request = *self->request_;
      resume(request, [self = std::move(self)] { self->run(); });
    });
  }
  // The branch that an available selector chooses; an error in its place becomes all results.
  static void run(Choose choose, RemainingAttributes functions, AsyncValue& selector,
                  std::span<AsyncValue* const> arguments, std::span<AsyncValue*> results, Request& request) {
    if (selector.is_error()) {
      for (AsyncValue*& result : results) result = share(&selector).release();
    } else {
      execute(*choose(selector, functions), arguments, results, request);
    }
  }

 private:
  void describe_waiting(std::string& text) const {
    describe_choice(text, *functions_[0].function, functions_.size());
  }
  void cancel() {
    if (!request_->remove(*this)) return;  // it goes on
    fail_cancelled();
    selector_.reset();  // its waiter holds the branch
  }
  void fail_cancelled() {
    const auto cancelled = make_error_async_value(Error(ErrorCode::kCancelled, "cancelled"));
    for (const auto& result : results_) request_->pending_events().forward(*request_, *result, cancelled);
  }
  void run() {
    if (!request_->remove(*this)) return;  // cancelled
    ValueList arguments(arguments_.size()), results(results_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) arguments[i] = arguments_[i].get();
    try {
      run(choose_, functions_, *selector_, arguments.span(), results.span(), *request_);
    } catch (...) {
      fail_with_exception({*operation_.owner, operation_, nullptr}, results.span());
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      request_->pending_events().forward(*request_, *results_[i],
                                         RCReference<AsyncValue>::reclaim(results[i]));
    }
  }
  static constexpr Type kType = suspended_type<Branch>();
  friend SuspendedAccess;

  const LoadedOperation& operation_;
  const Choose choose_;
  const RemainingAttributes functions_;
  const IntrusivePtr<const LoadedModule> module_;  // keeps the functions, and the one of the operation
  RCReference<AsyncValue> selector_;
  const IntrusivePtr<Request> request_;
  const std::vector<RCReference<AsyncValue>> arguments_, results_;
};

template <Branch::Choose kChoose>
void branch(Argument<AnyValue> selector, RemainingAttributes functions, RemainingArguments arguments,
            RemainingResults results, OperationCall& call, Request& request) {
  if (!selector.value()->is_available()) {
    const LoadedOperation& operation = loaded_operation(call.operation());
    make_intrusive<Branch>(operation, kChoose, functions, selector.value(), arguments, results, request)
        ->start();
    return;
  }
  ValueList values(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i];
  Branch::run(kChoose, functions, *selector.value(), values.span(), results, request);
}

const LoadedFunction* choose_by_condition(AsyncValue& condition, RemainingAttributes functions) {
  return functions[chosen_by_condition(condition)].function;
}
const LoadedFunction* choose_by_index(AsyncValue& index, RemainingAttributes functions) {
  return functions[chosen_by_index(index, functions.size())].function;
}

// It runs blocks [begin, end) of equal size. It adds as many tasks as the queue has threads, and each
// runs one block after the other: a task queues itself again behind a block, so that other functions have
// their turn.
class ParallelFor final : public RefCountedBase<ParallelFor> {
 public:
  ParallelFor(int32_t begin, int32_t end, int32_t block, const LoadedFunction& body,
              const RemainingArguments& shared, Request& request)
      : begin_(begin),
        end_(end),
        block_(block),
        num_blocks_(end > begin ? (int64_t{end} - begin + block - 1) / block : 0),
        body_(body),
        module_(share(body.module)),
        request_(share(&request)),
        shared_(references_to(shared)),
        done_(num_blocks_) {}

  AsyncValueRef<Chain> start() {
    const AsyncValueRef<Chain> done = done_.chain();
    WorkQueue* const queue = request_->queue();
    if (queue == nullptr) {
      while (run_next()) {
      }
      return done;
    }
    for (int64_t i = 1; i < std::min<int64_t>(num_blocks_, queue->threads()); ++i) add_task();
    work();
    return done;
  }

 private:
  void add_task() {
    request_->queue()->add(request_->source(), 0,
                           Task(MustRun(*request_, [self = share(this)] { self->work(); })));
  }
  void work() {
    // Relaxed: a number of blocks, which orders nothing.
    if (run_next() && next_.load(std::memory_order_relaxed) < num_blocks_) add_task();
  }
  // False: there are no blocks left.
  bool run_next() {
    if (request_->is_cancelled()) return drop_rest();
    const int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= num_blocks_) return false;
    const auto first = static_cast<int32_t>(begin_ + i * block_);
    run_block(first, static_cast<int32_t>(std::min<int64_t>(end_, int64_t{first} + block_)));
    return true;
  }
  bool drop_rest() {
    const int64_t first = next_.exchange(num_blocks_, std::memory_order_relaxed);
    if (first >= num_blocks_) return false;
    CountDown done = done_;
    done.count_down(num_blocks_ - first - 1);
    done.count_down(Error(ErrorCode::kCancelled, "cancelled"), begin_ + first * block_);
    return false;
  }
  void run_block(int32_t first, int32_t last) {
    const auto from = make_available_async_value<int32_t>(first),
               to = make_available_async_value<int32_t>(last);
    ValueList values(shared_.size() + 2), results(1);
    values[0] = from.get_async_value(), values[1] = to.get_async_value();
    for (size_t i = 0; i < shared_.size(); ++i) values[i + 2] = shared_[i].get();
    execute(body_, values.span(), results.span(), *request_);
    const auto finished = RCReference<AsyncValue>::reclaim(results[0]);
    finished->and_then([done = done_, first](AsyncValue* value) mutable {
      if (value->is_error()) {
        done.count_down(value->error(), first);
      } else {
        done.count_down();
      }
    });
  }

  const int64_t begin_, end_, block_, num_blocks_;
  const LoadedFunction& body_;
  const IntrusivePtr<const LoadedModule> module_;  // keeps the body
  const IntrusivePtr<Request> request_;
  const std::vector<RCReference<AsyncValue>> shared_;
  const CountDown done_;
  std::atomic<int64_t> next_{0};
};

AsyncValueRef<Chain> parallel_for(int32_t begin, int32_t end, Constant<LoadedFunction> body,
                                  Constant<int32_t> block, RemainingArguments arguments, Request& request) {
  return make_intrusive<ParallelFor>(begin, end, block, body.get(), arguments, request)->start();
}

std::vector<std::string> types_of_call(const OperationUse& use) {
  const LoadedFunction& f = *use.attributes[0].function;
  check_types("argument", f, f.argument_types, use.argument_types);
  return f.result_types;
}

std::vector<std::string> types_of_branch(const OperationUse& use) {
  if (use.attributes.empty()) throw Error(ErrorCode::kInvalidArgument, "there is no function to choose");
  const std::vector<std::string> rest(use.argument_types.begin() + 1, use.argument_types.end());
  const LoadedFunction& first = function_attribute(use, 0);
  std::unordered_set<const LoadedFunction*> checked;
  for (size_t i = 0; i < use.attributes.size(); ++i) {
    const LoadedFunction& f = function_attribute(use, i);
    if (!checked.insert(&f).second) continue;
    check_types("argument", f, f.argument_types, rest);
    check_types("result", f, f.result_types, first.result_types);
  }
  return first.result_types;
}
std::vector<std::string> types_of_if(const OperationUse& use) {
  if (use.attributes.size() != 2)
    throw Error(ErrorCode::kInvalidArgument, "takes two functions: @then, @else");
  check_selector(use, "bool");
  return types_of_branch(use);
}
std::vector<std::string> types_of_case(const OperationUse& use) {
  check_selector(use, "i32");
  return types_of_branch(use);
}
std::vector<std::string> types_of_parallel_for(const OperationUse& use) {
  const LoadedFunction& f = *use.attributes[0].function;
  const auto block = std::get<int64_t>(*use.attributes[1].value);
  if (block < 1)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("blocks of {} iterations; 1 to {} are possible",
                                                         block, std::numeric_limits<int32_t>::max()));
  check_types("argument", f, f.argument_types, use.argument_types);
  check_types("result", f, f.result_types, {"chain"});
  return {"chain"};
}

}  // namespace

size_t chosen_by_condition(const AsyncValue& condition) { return condition.get<bool>() ? 0 : 1; }

size_t chosen_by_index(const AsyncValue& index, size_t num_functions) {
  const int32_t i = index.get<int32_t>();
  if (i < 0 || static_cast<size_t>(i) >= num_functions)
    throw Error(ErrorCode::kOutOfRange, fmt::format("case {} of {} functions", i, num_functions));
  return static_cast<size_t>(i);
}

const LoadedFunction& function_attribute(const OperationUse& use, size_t i) {
  if (use.attributes[i].function == nullptr)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("attribute {} must be an @function", i + 1));
  return *use.attributes[i].function;
}

void check_types(const char* what, const LoadedFunction& f, const std::vector<std::string>& declared,
                 const std::vector<std::string>& used) {
  if (declared == used) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("@{} has the {}s ({}), and ({}) are wanted here", f.name, what,
                          fmt::join(declared, ", "), fmt::join(used, ", ")));
}

void check_selector(const OperationUse& use, std::string_view type) {
  if (use.argument_types[0] == type) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the first argument must be {}, and is {}", type, use.argument_types[0]));
}

std::vector<RCReference<AsyncValue>> references_to(const RemainingArguments& arguments) {
  std::vector<RCReference<AsyncValue>> references;
  for (size_t i = 0; i < arguments.size(); ++i) references.push_back(share(arguments[i]));
  return references;
}

std::vector<RCReference<AsyncValue>> make_pending(RemainingResults results,
                                                  const std::vector<std::string>& types, Request& request) {
  std::vector<RCReference<AsyncValue>> pending;
  for (size_t i = 0; i < results.size(); ++i) {
    pending.push_back(make_indirect_async_value());
    if (types[i] == kEventType) request.pending_events().add(request, *pending.back());
    results[i] = RCReference<AsyncValue>(pending.back()).release();
  }
  return pending;
}

void add_control_flow_operations(Registry& registry) {
  const OperationTraits non_strict{.non_strict = true, .runs_bodies = true};
  registry.add("call", &call, non_strict, &types_of_call);
  registry.add("if", &branch<&choose_by_condition>, non_strict, &types_of_if);
  registry.add("case", &branch<&choose_by_index>, non_strict, &types_of_case);
  registry.add("parallel_for", &parallel_for, {.run = Run::kCompute}, &types_of_parallel_for);
  add_loop_operations(registry);
}

}  // namespace coppice::executor
