// Writes as text what a kernel file and the program that launches its kernels must agree about: two files
// with the same interface may stand for each other while the program runs (gpu/kernel_versions.h). Part of
// coppice-kernelgen.
//
// One thing a line, sorted:
//
//     kernel diffuse 1 24 9f86d0...15 1437405216 Heat, coppice::Cell<3>, float
//     type Heat<TAB>32 now:coppice::Read<float, coppice::Star<1> >@0 next:coppice::Write<float>@16<TAB>0d6826...7c
//     type Kind<TAB>4 kSnow=0 kSand=1<TAB>0d6826...7c
//     opaque Mesh<TAB><TAB>4e5780...23
//     library /opt/coppice/include/sparse/device/cell.h<TAB>c91b00...5a
//
// `kernel`: whether for active cells only, effects, contents (kernel_contents.h); layout and types of
// arguments. `type`: everything that arguments lead to, by pointers, by fields and as arguments of templates,
// too, with sizes and offsets in bytes; and the MD5 of the file that defines it. `opaque`: what they lead to
// and no kernel looks into. `library`: the library's own headers, which say how kernels and the host work
// together, with their MD5. Names may have blanks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/jit/kernel_source.h"

namespace llvm {
class DISubprogram;
class Module;
}  // namespace llvm

namespace coppice::kernelgen {

struct KernelLine {
  std::string name;
  bool active_only;
  uint32_t effects;
  std::string contents;
  std::string arguments;
  const llvm::DISubprogram* body;
};

// `debug` is the file with full debug information.
std::string interface_text(const std::vector<KernelLine>& kernels, const llvm::Module& debug,
                           const SourceFolders& folders);

}  // namespace coppice::kernelgen
