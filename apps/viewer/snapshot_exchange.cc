// This keeps track of who has which of the two snapshots (see snapshot_exchange.h).
#include "apps/viewer/snapshot_exchange.h"

#include "core/check.h"

namespace coppice::viewer {

SnapshotExchange::SnapshotExchange(std::function<void()> on_change) : slots_(std::make_shared<Slots>()) {
  slots_->on_change = std::move(on_change);
}

SnapshotExchange::~SnapshotExchange() {
  const std::lock_guard lock(slots_->mutex);
  slots_->on_change = nullptr;
}

int SnapshotExchange::find(State state) const {
  for (size_t i = 0; i < slots_->states.size(); ++i)
    if (slots_->states[i] == state) return static_cast<int>(i);
  return -1;
}

Snapshot* SnapshotExchange::begin_filling(bool again) {
  const std::lock_guard lock(slots_->mutex);
  COPPICE_CHECK(find(State::kFilling) < 0, "a snapshot is being filled already");
  int i = find(State::kFree);
  if (i < 0 && again) i = find(State::kReady);
  if (i < 0) return nullptr;
  slots_->states[static_cast<size_t>(i)] = State::kFilling;
  return &slots_->snapshots[static_cast<size_t>(i)];
}

void SnapshotExchange::publish() {
  const std::lock_guard lock(slots_->mutex);
  const int filled = find(State::kFilling), old = find(State::kReady);
  COPPICE_CHECK(filled >= 0, "nothing was begun");
  if (old >= 0) slots_->states[static_cast<size_t>(old)] = State::kFree;
  slots_->states[static_cast<size_t>(filled)] = State::kReady;
}

void SnapshotExchange::abandon() {
  const std::lock_guard lock(slots_->mutex);
  const int filled = find(State::kFilling);
  if (filled >= 0) slots_->states[static_cast<size_t>(filled)] = State::kFree;
}

bool SnapshotExchange::has_ready() const {
  const std::lock_guard lock(slots_->mutex);
  return find(State::kReady) >= 0;
}

std::shared_ptr<const Snapshot> SnapshotExchange::take() {
  size_t at = 0;
  {
    const std::lock_guard lock(slots_->mutex);
    const int i = find(State::kReady);
    if (i < 0) return nullptr;
    at = static_cast<size_t>(i);
    slots_->states[at] = State::kTaken;
    if (slots_->on_change) slots_->on_change();
  }
  // The mutex is not held here: the deleter locks it, also when there is no memory for the reference
  // count.
  return {&slots_->snapshots[at], [slots = slots_, at](const Snapshot*) {
            const std::lock_guard release(slots->mutex);
            slots->states[at] = State::kFree;
            if (slots->on_change) slots->on_change();
          }};
}

}  // namespace coppice::viewer
