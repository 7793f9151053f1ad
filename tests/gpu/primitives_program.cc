// Prints what the cuda device's primitives say of the driver that they find: for tests that choose it.
#include <cstdio>

#include "gpu/cuda/primitives.h"

int main() {
  const coppice::cuda::Primitives& primitives = coppice::cuda::cub_primitives();
  const coppice::PrimitiveCall call{.kind = coppice::PrimitiveCall::Kind::kSortByKey, .n = 10};
  size_t bytes = 0;
  const unsigned answer = primitives.scratch_bytes(call, &bytes);
  std::puts(answer == 0 ? "they work" : primitives.error(answer, "sorting").what());
}
