// The parallel primitives by CUB, as plain calls: what nvcc compiles
// (cub_primitives.cu), apart from all other code.
//
// Nothing here waits for the device or allocates: scratch memory is the caller's, so that all of it can be
// recorded into a graph. The device's primary context is the calling thread's. Errors are numbers of the CUDA
// runtime (cudaError_t), 0 for success.
#pragma once
#include <cstddef>

#include "gpu/primitive_call.h"

namespace coppice::cub_primitives {

// Tells how much scratch memory the call needs.
int scratch_bytes(const PrimitiveCall& call, size_t* bytes);
// Issues it to a CUstream. `scratch` is not null, of `bytes` bytes and aligned to 256.
int run(const PrimitiveCall& call, void* stream, void* scratch, size_t bytes);

const char* error_name(int error);
const char* error_text(int error);
int runtime_version();  // 13000: of CUDA 13.0
int driver_version();   // the newest CUDA that the driver is of; 0 where there is none

}  // namespace coppice::cub_primitives
