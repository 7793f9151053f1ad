// Bodies of planned functions: the calls, branches and loops that an operation makes of them.
#include <utility>

#include "core/error.h"
#include "core/trace.h"
#include "executor/control_flow_types.h"
#include "executor/nested_calls.h"
#include "executor/planned/body_runner.h"

namespace coppice::executor {

namespace {

using Body = PlannedOperation::Body;

}  // namespace

// Behind a body the outputs' memory must have no other references than the outputs'.
void BodyRunner::Bodies::leave() {
  active = nullptr, round = -1;
  values.clear();
  decider.reset();
  error_rounds.clear();
  for (auto& of_round : places) of_round.clear();
}

bool BodyRunner::skip_cancelled(const PlannedOperation& op) {
  fail(op, Error(ErrorCode::kCancelled, "cancelled"));
  return true;
}

bool BodyRunner::refuse_nested(const PlannedOperation& op, size_t body) {
  fail(op, NestedCall::error(*op.bodies[body]->function));
  return true;
}

// False: it waits.
bool BodyRunner::run_bodies(const PlannedOperation& op) {
  const TraceScope trace(loaded(op).info->name);
  Bodies& bodies = *bodies_[next_];
  if (op.body == Body::kRepeat || op.body == Body::kWhile) return run_loop(op, bodies);
  return run_branch(op, bodies);
}

void BodyRunner::find_places(const PlannedOperation& op, Bodies& bodies) {
  for (auto& places : bodies.places) places.clear();
  for (uint32_t r = op.first_result; r < op.first_result + op.num_results; ++r) {
    bodies.places[0].push_back(place_of(r, false));
    bodies.places[1].push_back(place_of(r, true));
  }
}

void BodyRunner::count_place(AsyncValue& value, uint32_t r) const {
  if (plan_.registers[r].home != Home::kOutput || !value.is_concrete()) return;
  auto& bytes = value.get<HostBytes>();
  for (const bool second : {false, true}) {
    CallerPlace at = place_of(r, second);
    if (bytes.data() != nullptr && bytes.data() == at.place.data)
      return PlannedBytes::count(bytes, std::move(at.memory));
  }
}

bool BodyRunner::run_branch(const PlannedOperation& op, Bodies& bodies) {
  const LoadedOperation& l = loaded(op);
  ValueList results(op.num_results);
  if (bodies.active == nullptr) {
    const bool selects = op.body != Body::kCall;
    if (instance_.request_->is_cancelled()) return skip_cancelled(op);
    size_t chosen = 0;
    if (selects) {
      AsyncValue& selector = *value(l.arguments[0]);
      if (!selector.is_available()) return wait_for(selector);
      if (selector.is_error()) {
        for (AsyncValue*& result : results.span()) result = share(&selector).release();
        set_results(op, results.span());
        return true;
      }
      try {
        chosen = op.body == Body::kIf ? chosen_by_condition(selector)
                                      : chosen_by_index(selector, op.bodies.size());
      } catch (const Error&) {
        fail_by_exception(op);
        return true;
      }
    }
    if (NestedCall::is_one_too_many()) [[unlikely]]
      return refuse_nested(op, chosen);
    ValueList arguments(l.arguments.size() - (selects ? 1 : 0));
    for (size_t i = 0; i < arguments.span().size(); ++i)
      arguments[i] = value(l.arguments[i + (selects ? 1 : 0)]);
    find_places(op, bodies);
    bodies.round = 0;
    bodies.active = bodies.runners[chosen].get();
    bodies.active->begin(arguments.span(), bodies.places[0]);
  }
  if (!bodies.active->advance()) return false;
  bodies.active->take_results(results.span());
  bodies.leave();
  set_results(op, results.span());
  return true;
}

bool BodyRunner::run_loop(const PlannedOperation& op, Bodies& bodies) {
  const LoadedOperation& l = loaded(op);
  if (bodies.round < 0) {
    if (instance_.request_->is_cancelled()) return skip_cancelled(op);
    bodies.decider = share(value(l.arguments[0]));
    for (size_t i = 1; i < l.arguments.size(); ++i) bodies.values.push_back(share(value(l.arguments[i])));
    find_places(op, bodies);
    // Rounds write into these by turns, so that whoever copies a round's value must get bytes of its own: a
    // value counts its memory when the loop has ended.
    for (auto& places : bodies.places)
      for (CallerPlace& place : places) place.memory = nullptr;
    bodies.round = 0;
  }
  BodyRunner& runner = *bodies.runners[0];
  while (true) {
    if (bodies.active == nullptr) {
      bool waits = false;
      if (!may_iterate(op, bodies, waits)) {
        if (waits) return false;
        break;
      }
      if (NestedCall::is_one_too_many()) [[unlikely]] {
        bodies.leave();
        return refuse_nested(op, 0);
      }
      ValueList arguments(bodies.values.size());
      for (size_t i = 0; i < bodies.values.size(); ++i) arguments[i] = bodies.values[i].get();
      runner.begin(arguments.span(), bodies.places[bodies.round % 2]);
      bodies.active = &runner;
    }
    if (!runner.advance()) return false;
    ValueList next(bodies.values.size() + (op.body == Body::kWhile ? 1 : 0));
    runner.take_results(next.span());
    bodies.active = nullptr;
    for (size_t i = 0; i < bodies.values.size(); ++i)
      bodies.values[i] = RCReference<AsyncValue>::reclaim(next[i]);
    if (op.body == Body::kWhile)
      bodies.decider = RCReference<AsyncValue>::reclaim(next[bodies.values.size()]);
    ++bodies.round;
  }
  ValueList results(op.num_results);
  for (size_t i = 0; i < bodies.values.size(); ++i) {
    count_place(*bodies.values[i], op.first_result + static_cast<uint32_t>(i));
    results[i] = bodies.values[i].release();
  }
  bodies.leave();
  set_results(op, results.span());
  return true;
}

// False: the loop has ended, and its values are the results, or it waits.
bool BodyRunner::may_iterate(const PlannedOperation& op, Bodies& bodies, bool& waits) {
  const auto await = [&](AsyncValue& value) {
    waits = true;
    return wait_for(value);
  };
  if (instance_.request_->is_cancelled()) {
    const auto cancelled = make_error_async_value(Error(ErrorCode::kCancelled, "cancelled"));
    for (auto& value : bodies.values) value = cancelled;
    return false;
  }
  AsyncValue& decider = *bodies.decider;
  if (!decider.is_available()) return await(decider);
  if (decider.is_error()) {
    for (auto& value : bodies.values) value = bodies.decider;
    return false;
  }
  const bool is_over =
      op.body == Body::kWhile ? !decider.get<bool>() : bodies.round >= decider.get<int32_t>();
  if (is_over) return false;
  // The next round begins when the values of the last are there.
  for (const auto& value : bodies.values)
    if (bodies.round > 0 && !value->is_available()) return await(*value);
  if (op.body == Body::kWhile || !op.bodies[0]->needs_values) return true;
  const int32_t count = decider.get<int32_t>();
  bodies.round = bodies.error_rounds.skip(bodies.values, bodies.round, count);
  return bodies.round < count;
}

}  // namespace coppice::executor
