// Declares the parallel primitives on a GPU: CUB's where nvcc built it, and those of the tests' fake.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.h"
#include "gpu/primitive_call.h"

namespace coppice::cuda {

// Like the driver's functions, these only issue: nothing waits or allocates, so that it can be recorded. They
// need a Context::Scope. Answers are numbers of the CUDA runtime, 0 for success; those after which a device
// is lost are the driver's (cuda::Result).
struct Primitives {
  // Tells how much scratch memory the call needs.
  unsigned (*scratch_bytes)(const PrimitiveCall& call, size_t* bytes);
  // `stream` is a StreamHandle; `scratch` is device memory of `bytes` > 0 bytes, of the call alone until
  // it is done.
  unsigned (*run)(const PrimitiveCall& call, void* stream, void* scratch, size_t bytes);
  // Returns what such an answer means; kUnavailable where primitives were not built, or the driver is too
  // old for them.
  Error (*error)(unsigned answer, std::string_view what);
};

const Primitives& cub_primitives();
// Says which of them the build has, and the driver that they need; for people.
std::string describe_cub();

// Returns "sorting", "an exclusive scan"; for errors.
std::string_view name_of(PrimitiveCall::Kind kind);

}  // namespace coppice::cuda
