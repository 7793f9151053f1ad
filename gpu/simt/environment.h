// The emulated GPU as the environment asks for it.
#pragma once

#include "gpu/simt/machine.h"

namespace coppice::simt {

// Returns options with the seed of COPPICE_SIMT_SEED, where that is set. Errors: kUsage, for what is no
// seed.
Options options_from_environment();

}  // namespace coppice::simt
