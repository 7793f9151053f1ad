// repeat and while: iterations of a function whose values are carried from one to the next.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "executor/control_flow_types.h"
#include "executor/executor.h"
#include "executor/value_list.h"

namespace coppice::executor {
namespace {

// A loop under way. It runs on whatever thread resumes it, on one at a time.
class Loop final : public RefCountedBase<Loop>, private Suspended {
 public:
  // `first` decides whether there is an iteration: a count (i32) or a condition (bool).
  Loop(bool is_while, const LoadedFunction& body, uint32_t window, AsyncValue* first,
       RemainingArguments carried, Request& request)
      : Suspended(&describe_waiting),
        is_while_(is_while),
        body_(body),
        module_(share(body.module)),
        window_(window),
        request_(share(&request)),
        decider_(share(first)),
        values_(references_to(carried)) {}

  void start(RemainingResults results) {
    if (advance()) {
      for (size_t i = 0; i < results.size(); ++i) results[i] = values_[i].release();
      return;
    }
    // Only now: another thread may finish the loop from here on.
    results_ = make_pending(results);
    suspend();
  }

 private:
  // Iterates as far as it goes. True: at the end, and values_ are the results. False: pending_ must come first.
  bool advance() {
    while (true) {
      if (!decider_->is_available()) {
        pending_ = decider_;
        return false;
      }
      if (decider_->is_error()) {
        for (auto& value : values_) value = decider_;
        return true;
      }
      if (is_finished() || makes_only_errors()) return true;
      if (request_->is_cancelled()) {
        for (auto& value : values_) value = make_error_async_value(Error(ErrorCode::kCancelled, "cancelled"));
        return true;
      }
      pending_ = missing();
      if (pending_) return false;
      iterate();
    }
  }
  bool is_finished() const {
    return is_while_ ? !decider_->get<bool>() : iteration_ >= decider_->get<int32_t>();
  }
  // Whether an iteration has got nothing but errors and made the same ones of them: all after it would do so,
  // too. One that has got them is not enough, since a body may return what does not depend on its arguments,
  // or exchange them.
  bool makes_only_errors() {
    std::vector<Error> errors;
    if (std::all_of(values_.begin(), values_.end(), [](const auto& value) { return value->is_error(); })) {
      for (const auto& value : values_) errors.push_back(value->error());
    }
    const auto is_same = [](const Error& a, const Error& b) {
      return a.code() == b.code() && a.message() == b.message();
    };
    const bool are_same =
        !errors.empty() && std::equal(errors.begin(), errors.end(), errors_.begin(), errors_.end(), is_same);
    errors_ = std::move(errors);
    return are_same;
  }
  // When the window is used up: a value carried that has not come yet.
  RCReference<AsyncValue> missing() {
    if (ahead_ < window_) return nullptr;
    for (const auto& value : values_) {
      if (!value->is_available()) return value;
    }
    ahead_ = 0;
    return nullptr;
  }
  void iterate() {
    ValueList arguments(values_.size()), results(values_.size() + (is_while_ ? 1 : 0));
    for (size_t i = 0; i < values_.size(); ++i) arguments[i] = values_[i].get();
    execute(body_, arguments.span(), results.span(), *request_);
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = RCReference<AsyncValue>::reclaim(results[i]);
    if (is_while_) decider_ = RCReference<AsyncValue>::reclaim(results[values_.size()]);
    ++iteration_, ++ahead_;
  }
  static void describe_waiting(const Suspended& self, std::string& text) {
    const auto& loop = static_cast<const Loop&>(self);
    const char* const what = !loop.decider_->is_available() ? (loop.is_while_ ? "its condition" : "its count")
                                                            : "the values that it carries";
    text += fmt::format("{} @{} waits for {} after {} iterations\n", loop.is_while_ ? "while" : "repeat",
                        loop.body_.name, what, loop.iteration_);
  }
  void suspend() {
    request_->add(*this);
    const RCReference<AsyncValue> pending = std::move(pending_);
    pending->and_then([self = share(this)]() mutable {
      Request& request = *self->request_;
      resume(request, [self = std::move(self)] { self->run(); });
    });
  }
  void run() {
    request_->remove(*this);
    if (!advance()) return suspend();
    for (size_t i = 0; i < results_.size(); ++i) results_[i]->forward_to(std::move(values_[i]));
  }

  const bool is_while_;
  const LoadedFunction& body_;
  const IntrusivePtr<const LoadedModule> module_;  // keeps the body
  const uint32_t window_;  // iterations that may start before the values carried are available
  const IntrusivePtr<Request> request_;
  RCReference<AsyncValue> decider_, pending_;
  std::vector<RCReference<AsyncValue>> values_, results_;
  int64_t iteration_ = 0;
  uint32_t ahead_ = 0;         // iterations since all values were available
  std::vector<Error> errors_;  // all values before the last iteration, if they were errors
};

template <bool kIsWhile>
void loop(Argument<AnyValue> first, Constant<LoadedFunction> body, RemainingAttributes options,
          RemainingArguments carried, RemainingResults results, Request& request) {
  const uint32_t window = options.empty() ? 1 : static_cast<uint32_t>(std::get<int64_t>(*options[0].value));
  make_intrusive<Loop>(kIsWhile, body.get(), window, first.value(), carried, request)->start(results);
}

std::vector<std::string> carried_types(const OperationUse& use) {
  const bool has_window =
      use.attributes.size() == 2 && std::holds_alternative<int64_t>(*use.attributes[1].value);
  if (use.attributes.size() > 2 || (use.attributes.size() == 2 && !has_window))
    throw Error(ErrorCode::kInvalidArgument,
                "takes @body and, if wanted, a number of iterations that run ahead");
  if (has_window) {
    const int64_t window = std::get<int64_t>(*use.attributes[1].value);
    if (window < 1 || window > 1'000'000)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} iterations ahead; 1 to 1000000 are possible", window));
  }
  return {use.argument_types.begin() + 1, use.argument_types.end()};
}
std::vector<std::string> types_of_repeat(const OperationUse& use) {
  const LoadedFunction& f = *use.attributes[0].function;
  check_selector(use, "i32");
  std::vector<std::string> carried = carried_types(use);
  check_types("argument", f, f.argument_types, carried);
  check_types("result", f, f.result_types, carried);
  return carried;
}
std::vector<std::string> types_of_while(const OperationUse& use) {
  const LoadedFunction& f = *use.attributes[0].function;
  check_selector(use, "bool");
  std::vector<std::string> carried = carried_types(use);
  check_types("argument", f, f.argument_types, carried);
  std::vector<std::string> results = carried;
  results.emplace_back("bool");
  check_types("result", f, f.result_types, results);
  return carried;
}

}  // namespace

void add_loop_operations(Registry& registry) {
  registry.add("repeat", &loop<false>, {.non_strict = true}, &types_of_repeat);
  registry.add("while", &loop<true>, {.non_strict = true}, &types_of_while);
}

}  // namespace coppice::executor
