// Every object of array_stencil.cc that benchmarks/CMakeLists.txt compiles.
#include "benchmarks/peers/array_stencil.h"

namespace coppice::bench {

ArrayStencil array_stencil_host_native();
ArrayStencil array_stencil_host_portable();
ArrayStencil array_stencil_clang_native();
ArrayStencil array_stencil_clang_portable();

std::vector<ArrayStencil> array_stencils() {
#ifdef COPPICE_PORTABLE_PEERS  // the bundle's: not for the CPU it was built on
  return {array_stencil_host_portable(), array_stencil_clang_portable()};
#else
  return {array_stencil_host_native(), array_stencil_clang_native(), array_stencil_host_portable(),
          array_stencil_clang_portable()};
#endif
}

}  // namespace coppice::bench
