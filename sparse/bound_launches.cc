// Bound launches that are made anew (see bound_launches.h).
#include "sparse/bound_launches.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "sparse/temporary_buffer.h"
#include "sparse/temporary_fields.h"
#include "sparse/traced_calls.h"

namespace coppice {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<detail::Bound>> all;
  size_t most = 64;  // from which on those that are gone are looked for
};
// It is never destroyed: whoever binds may outlive the program's statics.
Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

}  // namespace

BoundLaunch::BoundLaunch(IntrusivePtr<Device> device, Launch launch)
    : bound_(std::make_shared<detail::Bound>()) {
  if (!device) throw Error(ErrorCode::kInvalidArgument, "a BoundLaunch without a device");
  if (!launch.code) throw Error(ErrorCode::kInvalidArgument, "a BoundLaunch without a kernel's code");
  bound_->device = std::move(device);
  bound_->launch = make_intrusive<SharedLaunch>(std::move(launch));
}
detail::Bound& BoundLaunch::bound() const {
  if (bound_) return *bound_;
  throw Error(ErrorCode::kInvalidArgument, "a BoundLaunch is used that was moved from");
}
AsyncValueRef<Chain> BoundLaunch::launch() const {
  if (TracedCalls* const traced = TracedCalls::current()) return traced->launch(*this);
  IntrusivePtr<const SharedLaunch> launch = shared();
  check_placed(launch->launch);
  if (launch->launch.uses) note_temporary_fields(*launch->launch.uses, launch->launch.name);
  return stream().launch(std::move(launch));
}
Device& BoundLaunch::device() const { return *bound().device; }
IntrusivePtr<const SharedLaunch> BoundLaunch::shared() const {
  const detail::Bound& it = bound();
  it.guard.check("use a bound launch");  // before the mutex, which a thread of the parent's may have held
  const std::lock_guard lock(it.mutex);
  return it.launch;
}

void detail::Bound::replace(Launch with, const KernelVersion* now) {
  IntrusivePtr<const SharedLaunch> next = make_intrusive<SharedLaunch>(std::move(with));
  {
    const std::lock_guard lock(mutex);
    std::swap(launch, next);
  }
  version = now;
}

void BoundLaunches::add(const std::shared_ptr<detail::Bound>& bound, const detail::LaunchRequest& request,
                        const CodegenOptions& options) {
  const bool may_be_replaced = !request.file->recipe.empty();
  if (!may_be_replaced && request.temporaries.empty()) return;
  bound->request = std::make_unique<const detail::LaunchRequest>(request);
  bound->options = options;
  if (!may_be_replaced) return;
  bound->version = current_kernel_version(*request.file);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.all.size() >= r.most) {
    std::erase_if(r.all, [](const auto& one) { return one.expired(); });
    r.most = std::max<size_t>(64, 2 * r.all.size());
  }
  r.all.push_back(bound);
}

std::vector<std::shared_ptr<detail::Bound>> BoundLaunches::all() {
  std::vector<std::shared_ptr<detail::Bound>> all;
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const auto& one : r.all)
    if (std::shared_ptr<detail::Bound> bound = one.lock()) all.push_back(std::move(bound));
  return all;
}

BoundLaunch BoundLaunches::at_places(const BoundLaunch& launch) {
  const detail::Bound& bound = *launch.bound_;
  detail::LaunchRequest request = *bound.request;
  take_places(request);
  Program program(bound.device, bound.options);
  BoundLaunch placed(bound.device, program.prepare(request));
  add(placed.bound_, request, bound.options);
  return placed;
}

Launch BoundLaunches::prepare_at(const detail::Bound& bound, const KernelVersion* version) {
  return Program(bound.device, bound.options).prepare_at(*bound.request, version);
}

void BoundLaunches::wait_renew(detail::Bound& bound) {
  Launch launch = Program(bound.device, bound.options).prepare(*bound.request);
  // It may have been rejected meanwhile.
  bound.replace(std::move(launch), current_kernel_version(*bound.request->file));
}

}  // namespace coppice
