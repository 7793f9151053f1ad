// The scalars of a Poisson solve, in device memory.
//
// Device-clean.
#pragma once
#include <stdint.h>

struct CoppicePoissonState {
  double rr, ff, pq, new_zr, new_zq;        // sums over all cells
  double zr;                                // of the last iteration
  double alpha, beta;                       // how far to go, and how much of the last direction is kept
  double limit;                             // of rr
  double scale;                             // of the residual on the levels: single precision holds no 1e40
  uint32_t goes_on, begins_again, drops_start;  // flags
  uint32_t iterations, most_iterations, restarts;
};
