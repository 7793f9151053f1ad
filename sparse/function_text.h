// Shows functions: what their operations touch, what each comes behind and why, and which are replayed as
// one.
#pragma once
#include <span>
#include <string>

#include "sparse/function.h"

namespace coppice {

// Returns a paragraph for each operation: what it is, what it comes behind, and, of a launch, a line for each
// thing that it touches (text_of() in sparse/uses.h).
std::string explain(const Function& function);

// Returns a picture of them in Graphviz' DOT language: a box for each operation, edges with what both ends
// use, and a frame around launches that are recorded and replayed as one.
std::string dot(std::span<const Function> functions);

}  // namespace coppice
