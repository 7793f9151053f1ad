// Refuses to wait on threads that others wait for.
#include "core/worker_thread.h"

#include "core/check.h"

namespace coppice {

void check_may_wait(const char* call) {
  COPPICE_CHECK(!is_worker_thread(), "{} on {} would block work that it waits for", call,
                WorkerThreadScope::current_name());
}

}  // namespace coppice
