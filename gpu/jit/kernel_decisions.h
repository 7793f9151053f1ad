// Finds out whether what a kernel changes decides which cells it activates. Part of coppice-kernelgen.
//
// A run that only makes room (sparse/device/lookup.h) leaves a kernel's effects out. It activates what the
// launch will only where none of them can be seen by a branch or in a coordinate.
#pragma once
#include <cstdint>

namespace llvm {
class Function;
}

namespace coppice::jit {

// Returns kDecidesByChanges and kDecidesByFields of a kernel whose handles' methods are calls and in which
// all else is inlined; `effects` are its other ones.
uint32_t decisions_of(llvm::Function& kernel, uint32_t effects);

}  // namespace coppice::jit
