// The wind of examples/stage: kernels and the program share it.
#pragma once
#include "apps/mpm/solver_types.h"
#include "coppice/kernel.h"
using namespace coppice;

struct Wind {
  float velocity[3];  // m/s
  float drag;         // 1/s
};
