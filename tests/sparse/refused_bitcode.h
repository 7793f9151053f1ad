// Kernels that coppice-kernelgen refuses: for the tests of what refuses them again, where they are specialized.
#pragma once
#include "gpu/jit/bitcode.h"

extern const coppice::KernelBitcode refused_kernels, constructed_kernels;
