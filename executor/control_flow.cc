// call, if, case and parallel_for. Loops: loops.cc.
#include "executor/control_flow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/count_down.h"
#include "core/error.h"
#include "executor/control_flow_types.h"
#include "executor/executor.h"
#include "executor/value_list.h"

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

  Branch(Choose choose, RemainingAttributes functions, AsyncValue* selector, RemainingArguments arguments,
         RemainingResults results, Request& request)
      : Suspended(&describe_waiting),
        choose_(choose),
        functions_(functions),
        module_(share(functions[0].function->module)),
        selector_(share(selector)),
        request_(share(&request)),
        arguments_(references_to(arguments)),
        results_(make_pending(results)) {}
  void start() {
    request_->add(*this);
    selector_->and_then([self = share(this)]() mutable {
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
  static void describe_waiting(const Suspended& self, std::string& text) {
    const auto& branch = static_cast<const Branch&>(self);
    text += fmt::format("a choice between @{} and {} more waits for its condition\n",
                        branch.functions_[0].function->name, branch.functions_.size() - 1);
  }
  void run() {
    request_->remove(*this);
    ValueList arguments(arguments_.size()), results(results_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) arguments[i] = arguments_[i].get();
    try {
      run(choose_, functions_, *selector_, arguments.span(), results.span(), *request_);
    } catch (const Error& error) {
      for (AsyncValue*& result : results.span()) result = make_error_async_value(error).release();
    }
    for (size_t i = 0; i < results_.size(); ++i)
      results_[i]->forward_to(RCReference<AsyncValue>::reclaim(results[i]));
  }

  const Choose choose_;
  const RemainingAttributes functions_;
  const IntrusivePtr<const LoadedModule> module_;  // keeps the functions
  const RCReference<AsyncValue> selector_;
  const IntrusivePtr<Request> request_;
  const std::vector<RCReference<AsyncValue>> arguments_, results_;
};

template <Branch::Choose kChoose>
void branch(Argument<AnyValue> selector, RemainingAttributes functions, RemainingArguments arguments,
            RemainingResults results, Request& request) {
  if (!selector.value()->is_available()) {
    make_intrusive<Branch>(kChoose, functions, selector.value(), arguments, results, request)->start();
    return;
  }
  ValueList values(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i];
  Branch::run(kChoose, functions, *selector.value(), values.span(), results, request);
}

const LoadedFunction* choose_by_condition(AsyncValue& condition, RemainingAttributes functions) {
  return functions[condition.get<bool>() ? 0 : 1].function;
}
const LoadedFunction* choose_by_index(AsyncValue& index, RemainingAttributes functions) {
  const int32_t i = index.get<int32_t>();
  if (i < 0 || static_cast<size_t>(i) >= functions.size())
    throw Error(ErrorCode::kOutOfRange, fmt::format("case {} of {} functions", i, functions.size()));
  return functions[static_cast<size_t>(i)].function;
}

// Blocks [begin, end) of equal size as tasks of the queue, the last one here.
AsyncValueRef<Chain> parallel_for(int32_t begin, int32_t end, Constant<LoadedFunction> body,
                                  Constant<int32_t> block, RemainingArguments arguments, Request& request) {
  if (block < 1)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("blocks of {} iterations", block.get()));
  const int64_t n = end > begin ? (int64_t{end} - begin + block - 1) / block : 0;
  CountDown done(n);
  auto run_block = [done, shared = references_to(arguments), body = &body.get(),
                    module = share(body.get().module),
                    owner = share(&request)](int32_t first, int32_t last) mutable {
    const auto from = make_available_async_value<int32_t>(first),
               to = make_available_async_value<int32_t>(last);
    ValueList values(shared.size() + 2), results(1);
    values[0] = from.get_async_value(), values[1] = to.get_async_value();
    for (size_t i = 0; i < shared.size(); ++i) values[i + 2] = shared[i].get();
    execute(*body, values.span(), results.span(), *owner);
    const auto finished = RCReference<AsyncValue>::reclaim(results[0]);
    finished->and_then([done, first](AsyncValue* value) mutable {
      if (value->is_error()) {
        done.count_down(value->error(), first);
      } else {
        done.count_down();
      }
    });
  };
  for (int64_t i = 0; i < n; ++i) {
    const auto first = static_cast<int32_t>(begin + i * block);
    const auto last = static_cast<int32_t>(std::min<int64_t>(end, int64_t{first} + block));
    if (request.queue() == nullptr || i + 1 == n) {
      run_block(first, last);
    } else {
      request.queue()->add(
          request.source(), 0,
          Task(MustRun(request, [run_block, first, last]() mutable { run_block(first, last); })));
    }
  }
  return done.chain();
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
  for (size_t i = 0; i < use.attributes.size(); ++i) {
    const LoadedFunction& f = function_attribute(use, i);
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
  check_types("argument", f, f.argument_types, use.argument_types);
  check_types("result", f, f.result_types, {"chain"});
  return {"chain"};
}

}  // namespace

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

std::vector<RCReference<AsyncValue>> make_pending(RemainingResults results) {
  std::vector<RCReference<AsyncValue>> pending;
  for (AsyncValue*& result : results) {
    pending.push_back(make_indirect_async_value());
    result = RCReference<AsyncValue>(pending.back()).release();
  }
  return pending;
}

void add_control_flow_operations(Registry& registry) {
  const OperationTraits non_strict{.non_strict = true};
  registry.add("call", &call, non_strict, &types_of_call);
  registry.add("if", &branch<&choose_by_condition>, non_strict, &types_of_if);
  registry.add("case", &branch<&choose_by_index>, non_strict, &types_of_case);
  registry.add("parallel_for", &parallel_for, {}, &types_of_parallel_for);
  add_loop_operations(registry);
}

}  // namespace coppice::executor
