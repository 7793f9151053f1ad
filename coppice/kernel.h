// A kernel file includes this: handles, cells, and COPPICE_KERNEL.
//
// A kernel file is ordinary C++20, compiled once by clang to bitcode that is embedded in the program (CMake:
// coppice_add_kernels) and specialized at run time for the trees it is launched over. Device code has no
// exceptions, RTTI, thread-local or static data, and calls no host library.
//
//     struct Heat { Read<float, Star<1>> now; Write<float> next; };
//     COPPICE_KERNEL(diffuse, Heat heat, Cell3 cell, float k) {
//       heat.next[cell] = heat.now[cell] + k * laplacian(heat.now, cell);
//     }
#pragma once
#include "sparse/device/define_kernel.h"
#include "sparse/device/loops.h"
#include "sparse/device/messages.h"
#include "sparse/device/random.h"
#include "sparse/device/rank_map.h"
#include "sparse/device/stencils.h"
