// Loaded functions as text for people, and as pictures by Graphviz.
//
//   std::cout << explain(*module);
//   std::ofstream("step.dot") << dot(*module);        // dot -Tsvg step.dot > step.svg
//
// explain() says of every register its type, its use count (module.h) and who uses it, and of every operation
// what it waits for, its priority (loader.h) and where it runs. dot() draws a box per function, an edge per
// use of a register, and a dashed edge from an operation to each function that it runs.
#pragma once
#include <string>

#include "executor/loader.h"

namespace coppice::executor {

std::string explain(const LoadedFunction& function);
std::string explain(const LoadedModule& module);

// Both return a whole graph in the DOT language; the picture of one function has only the names of those
// that it runs.
std::string dot(const LoadedFunction& function);
std::string dot(const LoadedModule& module);

}  // namespace coppice::executor
