// PTX of launches' kernels, for tests and tools.
#pragma once
#include <string>

#include "gpu/jit/specializer.h"
#include "sparse/program.h"

namespace coppice {

class ProgramPtx {
 public:
  // Errors: kCompile, and those of a launch that is refused before it is given.
  template <class... Parameters, class... Arguments>
  static std::string of(Program& program, jit::PtxTarget target, const Kernel<void(Parameters...)>& kernel,
                        const Loop& loop, const Arguments&... arguments) {
    return of_request(program, target, detail::make_request(kernel, loop, arguments...));
  }

 private:
  static std::string of_request(Program& program, jit::PtxTarget target,
                                const detail::LaunchRequest& request);
};

}  // namespace coppice
