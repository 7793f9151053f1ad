// The primary contexts of a process (see primary_contexts.h).
#include "gpu/cuda/primary_contexts.h"

#include "core/check.h"

namespace coppice::cuda {

PrimaryContexts& PrimaryContexts::of_process() {
  // It is never destroyed: devices may outlive main(), and the driver ends with the process.
  static auto* const contexts = new PrimaryContexts;
  return *contexts;
}

Result PrimaryContexts::acquire(const Driver& driver, DeviceId device, ContextHandle* context) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find({&driver, device});
  if (found == entries_.end()) {
    Entry entry;
    const Result result = driver.device_primary_ctx_retain(&entry.context, device);
    if (result != Result::kSuccess) return result;
    found = entries_.emplace(std::pair(&driver, device), entry).first;
  }
  ++found->second.users;
  *context = found->second.context;
  return Result::kSuccess;
}

void PrimaryContexts::let_go(const Driver& driver, DeviceId device, bool is_lost) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({&driver, device});
  COPPICE_CHECK(found != entries_.end() && found->second.users > 0, "a context that nobody uses");
  Entry& entry = found->second;
  entry.is_lost = entry.is_lost || is_lost;
  if (--entry.users > 0 || !entry.is_lost) return;
  driver.device_primary_ctx_release(device);  // nothing can be done about a failure
  entries_.erase(found);
}

int PrimaryContexts::users(const Driver& driver) const {
  const std::lock_guard lock(mutex_);
  int users = 0;
  for (const auto& [key, entry] : entries_) users += key.first == &driver ? entry.users : 0;
  return users;
}

void PrimaryContexts::release_all(const Driver& driver) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->first.first != &driver) {
      ++entry;
      continue;
    }
    COPPICE_CHECK(entry->second.users == 0, "a driver's table goes before its devices");
    driver.device_primary_ctx_release(entry->first.second);
    entry = entries_.erase(entry);
  }
}

}  // namespace coppice::cuda
