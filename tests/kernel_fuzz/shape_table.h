// Makes the shapes of one file of macro calls known (shapes.py writes them).
#pragma once
#include "tests/kernel_fuzz/launch.h"

#define KERNEL_FUZZ_SHAPE(number, table, ...) \
  ::coppice::kernel_fuzz::add_shape(          \
      number, std::make_unique<::coppice::kernel_fuzz::TypedShape<table, __VA_ARGS__>>());
