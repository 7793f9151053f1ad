// CountDown and when_all.
#include "core/count_down.h"

#include <mutex>
#include <optional>

namespace coppice {

struct CountDown::State final : RefCountedBase<CountDown::State> {
  std::atomic<int64_t> left;
  AsyncValueRef<Chain> chain = make_unconstructed_async_value<Chain>();
  std::mutex mutex;  // errors are rare; the good path takes no lock
  std::optional<Error> error;
  int64_t rank = 0;

  explicit State(int64_t count) : left(count) {}
  ~State() {
    if (!chain.is_available())
      chain.set_error(Error(ErrorCode::kCancelled, "a count-down was dropped before it reached 0"));
  }
  void finish() {
    // No lock is needed: the last decrement has acquired what the others released.
    if (error) {
      chain.set_error(*error);
    } else {
      chain.emplace();
    }
  }
};

CountDown::CountDown(int64_t count) : state_(make_intrusive<State>(count)) {
  COPPICE_CHECK(count >= 0);
  if (count == 0) state_->finish();
}
CountDown::CountDown(const CountDown&) = default;
CountDown& CountDown::operator=(const CountDown&) = default;
CountDown::~CountDown() = default;

bool CountDown::count_down(int64_t n) {
  COPPICE_CHECK(n >= 0);
  if (n == 0) return state_->left.load(std::memory_order_acquire) == 0;
  // It releases what was done before this call, errors included, and acquires for the one that finishes.
  const int64_t before = state_->left.fetch_sub(n, std::memory_order_acq_rel);
  COPPICE_CHECK(before >= n, "counted down below 0");
  if (before != n) return false;
  state_->finish();
  return true;
}

bool CountDown::count_down(Error error, int64_t rank) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->error || rank < state_->rank) {
      state_->error = std::move(error);
      state_->rank = rank;
    }
  }
  return count_down(1);
}

const AsyncValueRef<Chain>& CountDown::chain() const { return state_->chain; }

AsyncValueRef<Chain> when_all(std::span<const RCReference<AsyncValue>> values) {
  CountDown done(static_cast<int64_t>(values.size()));
  AsyncValueRef<Chain> chain = done.chain();
  for (size_t i = 0; i < values.size(); ++i) {
    COPPICE_CHECK(values[i] != nullptr, "when_all: value {} is null", i);
    values[i]->and_then([done, i](AsyncValue* value) mutable {
      if (value->is_error()) {
        done.count_down(value->error(), static_cast<int64_t>(i));
      } else {
        done.count_down();
      }
    });
  }
  return chain;
}

}  // namespace coppice
