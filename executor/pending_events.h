// Events that are not there yet: indirect values that will be forwarded to an event of the stream.
//
// Work on the stream may be queued behind an event's work as soon as that is queued itself; an
// event's own async value says so by being there. An indirect value in its place says nothing until
// the device has come there. So a request knows which of its indirect values stand for events, and
// tells when the event has taken its place.
//
//   add(i) -> i is forwarded to an event e, forward(i, e) -> enqueued(i) is available -> i is, when e is: forgotten
//
// Thread-safe. It costs nothing where events come at once, as those of operations that put their work on
// the stream do.
#pragma once
#include <atomic>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "core/async_value.h"

namespace coppice::executor {

class Request;

inline constexpr std::string_view kEventType = "event";  // its name in functions

class PendingEvents {
 public:
  // `indirect` is new, and nobody else's. The request is kept until it is available.
  void add(Request& request, AsyncValue& indirect);
  // Returns a value that is available when the work of the event that `indirect` stands for is on the
  // stream; null where that is not known.
  AsyncValueRef<Chain> enqueued(const AsyncValue& indirect);
  // Does indirect.forward_to(to); `to` is an event or any other value.
  void forward(Request& request, AsyncValue& indirect, RCReference<AsyncValue> to);

 private:
  struct Entry {
    AsyncValueRef<Chain> enqueued = make_unconstructed_async_value<Chain>();
    bool is_enqueued = false;
  };
  void complete(const AsyncValue& indirect);
  void forget(const AsyncValue& indirect);
  void follow(Request& request, AsyncValue& indirect, AsyncValue& to);

  // Relaxed: a thread that knows an indirect value has learnt of it after add().
  std::atomic<size_t> size_{0};
  std::mutex mutex_;
  std::unordered_map<const AsyncValue*, Entry> entries_;
};

}  // namespace coppice::executor
