// repeat and while: iterations of a function whose values are carried from one to the next.
#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "core/error.h"
#include "executor/control_flow_types.h"
#include "executor/error_rounds.h"
#include "executor/executor.h"
#include "executor/value_list.h"
#include "executor/waiting_texts.h"

namespace coppice::executor {
namespace {

// A loop under way. It runs on whatever thread resumes it, on one at a time.
//
//   free_   iterations that may begin before one of those in flight has ended; -1: the loop waits for that
class Loop final : public RefCountedBase<Loop>, private Suspended {
 public:
  // `first` decides whether there is an iteration: a count (i32) or a condition (bool).
  Loop(bool is_while, const LoadedFunction& body, uint32_t window, AsyncValue* first,
       RemainingArguments carried, Request& request)
      : Suspended(kType),
        is_while_(is_while),
        body_(body),
        module_(share(body.module)),
        request_(share(&request)),
        may_skip_(!is_while && body.without_waits.empty() && body.non_strict.empty()),
        free_(window),
        decider_(share(first)),
        values_(references_to(carried)) {}

  void start(RemainingResults results) {
    const Stop stop = advance();
    if (stop == Stop::kEnded) {
      for (size_t i = 0; i < results.size(); ++i) results[i] = values_[i].release();
      return;
    }
    // This is done only now: another thread may finish the loop from here on.
    results_ = make_pending(results, body_.result_types, *request_);
    suspend(stop);
  }

 private:
  enum class Stop { kEnded, kNeedsValue, kNeedsEnd };  // of awaited_; of an iteration

  // Iterates as far as it goes. When it has ended, values_ are the results.
  Stop advance() {
    while (true) {
      if (!decider_->is_available()) return await(decider_);
      if (decider_->is_error()) {
        for (auto& value : values_) value = decider_;
        return Stop::kEnded;
      }
      if (is_finished()) return Stop::kEnded;
      if (request_->is_cancelled()) return fail_cancelled();
      // While there are errors, no iteration runs ahead: skip_errors() looks at all that one has made.
      if (has_errors_.load(std::memory_order_relaxed)) {
        for (const auto& value : values_)
          if (!value->is_available()) return await(value);
      }
      if (may_skip_ && skip_errors()) return Stop::kEnded;
      // Acquire: the values that the ended iteration has made are seen here.
      if (free_.load(std::memory_order_acquire) <= 0) return Stop::kNeedsEnd;
      iterate();
    }
  }
  bool is_finished() const {
    return is_while_ ? !decider_->get<bool>() : iteration_ >= decider_->get<int32_t>();
  }
  // Leaves out iterations that could only pass errors on in a circle. Returns whether none is left.
  bool skip_errors() {
    bool has_values = false;
    for (const auto& value : values_) {
      const AsyncValue::State state = value->state();
      if (state < AsyncValue::State::kConcrete) return false;
      has_values |= state == AsyncValue::State::kConcrete;
    }
    if (has_values) {
      has_errors_.store(false, std::memory_order_relaxed);
      return false;
    }
    iteration_ = error_rounds_.skip(values_, iteration_, decider_->get<int32_t>());
    return is_finished();
  }
  Stop fail_cancelled() {
    const auto cancelled = make_error_async_value(Error(ErrorCode::kCancelled, "cancelled"));
    for (auto& value : values_) value = cancelled;
    return Stop::kEnded;
  }
  Stop await(RCReference<AsyncValue> value) {
    awaited_ = std::move(value);
    return Stop::kNeedsValue;
  }
  void iterate() {
    ValueList arguments(values_.size()), results(values_.size() + (is_while_ ? 1 : 0));
    for (size_t i = 0; i < values_.size(); ++i) arguments[i] = values_[i].get();
    execute(body_, arguments.span(), results.span(), *request_);
    AsyncValue* pending = nullptr;
    int num_pending = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = RCReference<AsyncValue>::reclaim(results[i]);
      if (!results[i]->is_available()) pending = results[i], ++num_pending;
    }
    if (is_while_) decider_ = RCReference<AsyncValue>::reclaim(results[values_.size()]);
    ++iteration_;
    if (num_pending == 0) return;
    // Relaxed: only ends of iterations have something to tell.
    free_.fetch_sub(1, std::memory_order_relaxed);
    const auto end = [self = share(this)](AsyncValue* value) {
      // Relaxed: whoever learns of the iteration's end learns of the flag, too.
      if (self->may_skip_ && value->is_error()) self->has_errors_.store(true, std::memory_order_relaxed);
      self->end_iteration();
    };
    if (num_pending == 1) {
      pending->and_then(end);
    } else {
      when_all(values_).value().and_then(end);
    }
  }
  void end_iteration() {
    // Release publishes the iteration's values; acquire gets those of iterations that ended before, for
    // the loop that goes on.
    if (free_.fetch_add(1, std::memory_order_acq_rel) < 0) resume_later();
  }
  void resume_later() {
    resume(*request_, [self = share(this)] { self->run(); });
  }
  void suspend(Stop stop) {
    while (stop != Stop::kEnded) {
      is_held_up_ = stop == Stop::kNeedsEnd;
      if (!request_->add(*this)) {
        fail_cancelled();
        break;
      }
      if (stop == Stop::kNeedsValue) {
        const RCReference<AsyncValue> awaited = std::move(awaited_);
        return awaited->and_then([self = share(this)] { self->resume_later(); });
      }
      // From here on another thread may go on, unless an iteration has ended meanwhile.
      if (free_.fetch_sub(1, std::memory_order_acq_rel) <= 0) return;
      free_.fetch_add(1, std::memory_order_relaxed);
      if (!request_->remove(*this)) return;  // cancelled
      stop = advance();
    }
    finish();
  }
  void run() {
    if (!request_->remove(*this)) return;  // cancelled
    // The loop has taken the place of an iteration in order to be woken, and gives it back.
    if (is_held_up_) free_.fetch_add(1, std::memory_order_relaxed);
    suspend(advance());
  }
  void finish() {
    for (size_t i = 0; i < results_.size(); ++i)
      request_->pending_events().forward(*request_, *results_[i], std::move(values_[i]));
  }
  void cancel() {
    if (!request_->remove(*this)) return;  // it goes on
    fail_cancelled();
    finish();
    decider_.reset();  // its waiter holds the loop
  }
  void describe_waiting(std::string& text) const {
    describe_loop(text, is_while_, body_, decider_->is_available(), iteration_);
  }
  static constexpr Type kType = suspended_type<Loop>();
  friend SuspendedAccess;

  const bool is_while_;
  const LoadedFunction& body_;
  const IntrusivePtr<const LoadedModule> module_;  // keeps the body
  const IntrusivePtr<Request> request_;
  // Nothing in the body runs when all its arguments are errors. (A `while` ends then: its condition is an
  // error, too.)
  const bool may_skip_;
  std::atomic<int64_t> free_;
  std::atomic<bool> has_errors_{false};  // an iteration that came later has
  RCReference<AsyncValue> decider_, awaited_;
  std::vector<RCReference<AsyncValue>> values_, results_;
  int64_t iteration_ = 0;
  bool is_held_up_ = false;  // suspended for the end of an iteration
  ErrorRounds error_rounds_;
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
  // Nobody knows before how long a loop takes.
  const OperationTraits traits{.run = Run::kCompute, .non_strict = true, .runs_bodies = true};
  registry.add("repeat", &loop<false>, traits, &types_of_repeat);
  registry.add("while", &loop<true>, traits, &types_of_while);
}

}  // namespace coppice::executor
