// Tells whether two kernel files have made the same of a kernel that stands in a header which both include.
// Part of coppice-kernelgen.
#pragma once
#include <cstdint>

namespace llvm {
class Function;
}

namespace coppice::kernelgen {

// Hashes an entry and all code and data that it leads to, as clang wrote it, before any pass: whatever a pass
// does to a kernel depends on the others of its file. What only numbers things in a file, and names of what
// a file keeps to itself, do not count.
uint64_t kernel_structure(const llvm::Function& entry);

}  // namespace coppice::kernelgen
