// Events that are not there yet (see pending_events.h).
#include "executor/pending_events.h"

#include "executor/host.h"

namespace coppice::executor {

void PendingEvents::add(Request& request, AsyncValue& indirect) {
  {
    const std::lock_guard lock(mutex_);
    entries_.emplace(&indirect, Entry());
    size_.store(entries_.size(), std::memory_order_relaxed);
  }
  // This continuation is the first to wait for the value. So nobody finds a forgotten entry here, even if
  // another value has its address.
  indirect.and_then([owner = share(&request)](AsyncValue* value) {
    owner->pending_events().complete(*value);
    owner->pending_events().forget(*value);
  });
}

AsyncValueRef<Chain> PendingEvents::enqueued(const AsyncValue& indirect) {
  if (size_.load(std::memory_order_relaxed) == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(&indirect);
  return found == entries_.end() ? AsyncValueRef<Chain>() : found->second.enqueued;
}

void PendingEvents::forward(Request& request, AsyncValue& indirect, RCReference<AsyncValue> to) {
  if (size_.load(std::memory_order_relaxed) == 0) return indirect.forward_to(std::move(to));
  const RCReference<AsyncValue> keep = share(&indirect), target(to);
  indirect.forward_to(std::move(to));
  follow(request, indirect, *target);
}

void PendingEvents::follow(Request& request, AsyncValue& indirect, AsyncValue& to) {
  if (!to.is_indirect() || to.is_available()) return complete(indirect);
  const AsyncValueRef<Chain> behind = enqueued(to);
  if (!behind) return;  // when it is available
  behind.value().and_then(
      [owner = share(&request), keep = share(&indirect)] { owner->pending_events().complete(*keep); });
}

void PendingEvents::complete(const AsyncValue& indirect) {
  AsyncValueRef<Chain> enqueued;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(&indirect);
    if (found == entries_.end() || std::exchange(found->second.is_enqueued, true)) return;
    enqueued = found->second.enqueued;
  }
  enqueued.emplace();
}

void PendingEvents::forget(const AsyncValue& indirect) {
  const std::lock_guard lock(mutex_);
  entries_.erase(&indirect);
  size_.store(entries_.size(), std::memory_order_relaxed);
}

}  // namespace coppice::executor
