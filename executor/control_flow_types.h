// control_flow.cc and loops.cc share this: checks of the functions that an operation is given, and values
// that outlive its call.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "executor/loader.h"

namespace coppice::executor {

// Errors: kInvalidArgument, without a place: the loader adds it.
const LoadedFunction& function_attribute(const OperationUse& use, size_t i);
void check_types(const char* what, const LoadedFunction& f, const std::vector<std::string>& declared,
                 const std::vector<std::string>& used);
void check_selector(const OperationUse& use, std::string_view type);

// Return which of `if`'s two, or `case`'s functions an available selector chooses. Errors: kOutOfRange.
size_t chosen_by_condition(const AsyncValue& condition);
size_t chosen_by_index(const AsyncValue& index, size_t num_functions);

// Returns references of one's own to arguments, for work that outlives the call.
std::vector<RCReference<AsyncValue>> references_to(const RemainingArguments& arguments);
// Fills the results, of these types or more, with indirect values, and returns a reference to each for
// whoever forwards them by PendingEvents::forward().
std::vector<RCReference<AsyncValue>> make_pending(RemainingResults results,
                                                  const std::vector<std::string>& types, Request& request);

// These are the functions of Suspended::Type for an S that has describe_waiting() and cancel(). S's
// continuations keep it alive while it is in the list.
struct SuspendedAccess {
  template <class S>
  static void describe(const Suspended& self, std::string& text) {
    static_cast<const S&>(self).describe_waiting(text);
  }
  template <class S>
  static bool hold(Suspended& self) {
    (void)share(&static_cast<S&>(self)).release();
    return true;
  }
  template <class S>
  static void cancel(Suspended& self) {
    IntrusivePtr<S>::reclaim(&static_cast<S&>(self))->cancel();
  }
};
template <class S>
constexpr Suspended::Type suspended_type() {
  return {&SuspendedAccess::describe<S>, &SuspendedAccess::hold<S>, &SuspendedAccess::cancel<S>};
}

void add_loop_operations(Registry& registry);

}  // namespace coppice::executor
