// Address spaces of GPU code (see gpu_addresses.cc). Internal to gpu/jit.
#pragma once

namespace llvm {
class PassBuilder;
}

namespace coppice::jit {

// Adds to the O3 pipeline, where all is inlined: accesses through pointers that were read from the device's
// memory, or made of numbers that no pointer was made into, are accesses of the global space.
void infer_address_spaces(llvm::PassBuilder& builder);

}  // namespace coppice::jit
