// What a kernel file and the program that launches its kernels must agree about, as text: two files with the
// same interface may stand for each other while the program runs (gpu/kernel_versions.h). Part of
// coppice-kernelgen.
//
// One thing a line, sorted:
//
//     kernel diffuse 1 24 1437405216 Heat, coppice::Cell<3>, float    active cells only, effects; layout and types of arguments
//     type Heat<TAB>32 now:coppice::Read<float, coppice::Star<1> >@0 next:coppice::Write<float>@16
//     type Kind<TAB>4 kSnow=0 kSand=1
//
// `type`: everything that arguments lead to, by pointers, too, with sizes and offsets in bytes. Names of
// types may have blanks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class DISubprogram;
}

namespace coppice::kernelgen {

struct KernelLine {
  std::string name;
  bool active_only;
  uint32_t effects;
  std::string arguments;
  const llvm::DISubprogram* body;
};

std::string interface_text(const std::vector<KernelLine>& kernels);

}  // namespace coppice::kernelgen
