// A kernel's argument whose pointer is at no multiple of its size.
//
// Device-clean.
#pragma once
#include <stdint.h>

#pragma pack(push, 1)
struct PackedTarget {
  uint32_t base;
  uint32_t* to;
};
#pragma pack(pop)
