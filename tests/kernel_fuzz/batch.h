// What a batch of generated kernels exports to the program that runs it: per kernel its Kernel<...> constant
// and its reference as a function of one type.
#pragma once
#include "tests/kernel_fuzz/reference.h"

namespace fuzz_reference {

struct Call {
  const Field* fields;  // by handle
  At at;
  int32_t p0;
  float p1;
  const int32_t* table;
  const int32_t* in_i;
  const float* in_f;
  const double* in_d;
  int32_t* out_i;
  float* out_f;
  double* out_d;
};

struct TableEntry {
  const void* kernel;
  void (*reference)(const Call&);
};

}  // namespace fuzz_reference
