// A batch of generated kernels exports this to the program that runs it: the reference of each kernel as a
// function of one type.
#pragma once
#include "tests/kernel_fuzz/reference.h"

namespace fuzz_reference {

// A kernel is given this besides its fields: on a device the pointers are the device's.
struct Arguments {
  int32_t p0;
  float p1;
  const int32_t* table;  // of 16 integers
  // Items only: arrays of one value per item.
  const int32_t* in_i;
  const float* in_f;
  const double* in_d;
  int32_t* out_i;
  float* out_f;
  double* out_d;
};

struct Call {
  const Field* fields;  // by handle
  At at;
  Arguments a;
};

using Reference = void (*)(const Call&);

}  // namespace fuzz_reference
