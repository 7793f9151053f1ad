// Waiting for what was launched.
#pragma once
#include "core/async_value.h"

namespace coppice::mpm {

// Errors: the value's own.
inline void wait_done(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

}  // namespace coppice::mpm
