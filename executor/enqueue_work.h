// Work for a host's threads whose result is an async value.
//
//   AsyncValueRef<int> sum = enqueue_work(*host, [] { return add_up(); });          // soon, on a compute thread
//   AsyncValueRef<Text> text = enqueue_blocking_work(request, [path] { return read(path); });
//
// A result of void is a Chain. What f throws is the result's error (see async_value.h), and work that the
// queue drops, or does not take, leaves the error kCancelled. Without a queue f runs at once. What f holds is
// destroyed before its result is there. Work keeps neither the host nor the request alive: a Host& or a
// Request& that f captures may dangle when f runs, so an f that uses one holds a reference,
// [request = share(&request)]. Work of enqueue_work(request, ...) takes its turns with the request's
// operations; blocking work has a thread of its own. Neither is skipped when the request is cancelled.
#pragma once
#include <type_traits>
#include <utility>

#include "executor/host.h"

namespace coppice::executor {
namespace detail {

template <class F>
using WorkResult =
    std::conditional_t<std::is_void_v<std::invoke_result_t<F&>>, Chain, std::invoke_result_t<F&>>;

template <class F>
struct Work {
  Promise<WorkResult<F>> promise;
  F f;

  void operator()() {
    const AsyncValueRef<WorkResult<F>> result = promise.release();
    try {
      F mine = std::move(f);
      result.value().template construct_with<WorkResult<F>>([&]() -> WorkResult<F> {
        if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
          mine();
          return Chain();
        } else {
          return mine();
        }
      });
    } catch (...) {
      return result.set_error(coppice::detail::current_exception_as_error());
    }
    result.set_concrete();
  }
};

// add(task) gives it to the queue, if there is one.
template <class F, class Add>
AsyncValueRef<WorkResult<F>> enqueue(WorkQueue* queue, F f, Add add) {
  static_assert(!coppice::detail::kIsAsyncValueRef<WorkResult<F>>, "work returns its result itself");
  auto promise = make_promise<WorkResult<F>>();
  AsyncValueRef<WorkResult<F>> result = promise.value();
  Task task(Work<F>{std::move(promise), std::move(f)});
  if (queue == nullptr) {
    task();
  } else {
    add(*queue, std::move(task));
  }
  return result;
}

// This is the source of tasks that belong to no request.
inline constexpr uint64_t kNoSource = 0;

}  // namespace detail

template <class F>
auto enqueue_work(Host& host, F f) {
  return detail::enqueue(host.queue(), std::move(f), [](WorkQueue& queue, Task task) {
    queue.add(detail::kNoSource, 0, std::move(task));
  });
}
template <class F>
auto enqueue_work(Request& request, F f) {
  return detail::enqueue(request.queue(), std::move(f), [&](WorkQueue& queue, Task task) {
    queue.add(request.source(), 0, std::move(task));
  });
}
template <class F>
auto enqueue_blocking_work(Host& host, F f) {
  return detail::enqueue(host.queue(), std::move(f),
                         [](WorkQueue& queue, Task task) { queue.add_blocking(std::move(task)); });
}
template <class F>
auto enqueue_blocking_work(Request& request, F f) {
  return enqueue_blocking_work(request.host(), std::move(f));
}

}  // namespace coppice::executor
