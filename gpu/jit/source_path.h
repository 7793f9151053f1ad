// Returns in one string where something of a line table stands in the source. Internal to gpu/jit.
#pragma once
#include <string>

namespace coppice::jit {

// Clang splits a path into folder and file in more than one way; only together they are one name. `Scope` is
// any of LLVM's descriptions that have both: a file, a subprogram, a compile unit, a location.
template <class Scope>
std::string path_of(const Scope* scope) {
  const std::string file = scope->getFilename().str();
  return file.empty() || file[0] == '/' ? file : scope->getDirectory().str() + "/" + file;
}

}  // namespace coppice::jit
