// Waiting for a kernel that is being compiled: also on the threads of streams, which may wait for nothing
// else.
#pragma once
#include "core/async_value.h"
#include "gpu/loaded_code.h"

namespace coppice {

// Blocks the calling thread until the code, or the error in its place, is there. On any thread but the
// compiler's (a failed check): its threads wait for nobody, so that this ends.
void wait_for_code(const AsyncValueRef<IntrusivePtr<LoadedCode>>& code);

}  // namespace coppice
