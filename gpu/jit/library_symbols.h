// Lists what compiled kernels may call of the host: C's math and memory functions, and the helpers that
// compilers call for what the processor has no instruction for.
//
// coppice-kernelgen refuses calls of anything else when a kernel file is built; the code loader gives the
// addresses. No LLVM here: both link this.
#pragma once
#include <span>

namespace coppice::jit {

struct LibrarySymbol {
  const char* name;      // of the linker
  const void* function;  // its address in this process
};

// They are sorted by name, made once, and live as long as the program.
std::span<const LibrarySymbol> library_symbols();

}  // namespace coppice::jit
