// This says more of an error that an async value may become later: its producer may not know where it arose.
//
//   amend_error(value, [](const Error& error) { return error.with_step("@main read"); });
//
// It is for whoever passes a value on that others complete. The value stays what it is, and nobody sees the
// error as its producer gave it.
#pragma once
#include <utility>

#include "core/async_value_base.h"

namespace coppice {
namespace detail {

// It stands among a value's waiters, and goes with them.
struct ErrorAmender : Waiter {
  Error (*amend)(const ErrorAmender& self, const Error& error);
  void (*destroy)(ErrorAmender* self);
};
// False: the value is available, and the amender still the caller's.
bool add_amender(AsyncValue& value, ErrorAmender* amender);
void run_amender(Waiter* self, AsyncValue* source) noexcept;

}  // namespace detail

// Has amend(error) take the place of an error that `value` becomes; the first amend() that a value was given
// does it. It may be called several times, on the thread that completes the value, and does not throw but
// std::bad_alloc. False, with nothing done: the value is available already. Lock-free.
template <class F>
bool amend_error(AsyncValue& value, F amend) {
  struct Node : detail::ErrorAmender {
    Node(AsyncValue* source, F&& f)
        : detail::ErrorAmender{{nullptr, source, &detail::run_amender}, &call, &free},
          function(std::move(f)) {}
    static Error call(const detail::ErrorAmender& self, const Error& error) {
      return static_cast<const Node&>(self).function(error);
    }
    static void free(detail::ErrorAmender* self) { delete_in_block(static_cast<Node*>(self)); }
    F function;
  };
  auto* const node = new_in_block<Node>(&value, std::move(amend));
  if (detail::add_amender(value, node)) return true;
  delete_in_block(node);
  return false;
}

}  // namespace coppice
