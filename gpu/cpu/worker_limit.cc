// The process's one tbb::global_control of the number of threads (see worker_limit.h).
#include "gpu/cpu/worker_limit.h"

#include <tbb/global_control.h>
#include <tbb/info.h>

#include <memory>
#include <mutex>
#include <utility>

#include "core/process_end.h"

namespace coppice {
namespace {

struct Limit {
  std::mutex mutex;
  int claimed = 0;
  int in_force = 0;
  std::unique_ptr<tbb::global_control> control;
  // oneTBB destroys what it keeps of the limit before a detached thread may have ended its last claim.
  bool is_ending = false;
  const ProcessEndWatch watch{[this] {
    const std::lock_guard lock(mutex);
    is_ending = true;
    return nullptr;
  }};
};

// This is a global because oneTBB's limit is one. It is never destroyed: the last claim may end on any
// thread, at any time.
Limit& limit() {
  static Limit& it = *new Limit;
  return it;
}

void claim(int workers) {
  Limit& it = limit();
  const std::lock_guard lock(it.mutex);
  if (it.is_ending) return;
  it.claimed += workers;
  // oneTBB counts a thread that is no worker, too. The limit is never below oneTBB's own: others use it as
  // well.
  const int wanted = it.claimed + 1 > tbb::info::default_concurrency() ? it.claimed + 1 : 0;
  if (wanted == it.in_force) return;
  // The new limit is there before the old one goes: in between there would be no more workers than cores.
  std::unique_ptr<tbb::global_control> control;
  if (wanted > 0)
    control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, wanted);
  it.control = std::move(control);
  it.in_force = wanted;
}

}  // namespace

WorkerClaim::WorkerClaim(int workers) : workers_(workers) { claim(workers); }
WorkerClaim::~WorkerClaim() { claim(-workers_); }

}  // namespace coppice
