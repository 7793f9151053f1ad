// Tells which build of a library runs in this process, beyond its version: distributions change code and
// keep the number.
#pragma once
#include <string>

namespace coppice::jit {

// Returns the identity of the program or shared library that holds `address`: its build id in hexadecimal,
// as linkers write it and `file` shows it, or, where it was linked without one, its path, size and time of
// change. Empty for an address in neither. Cost: tens of microseconds.
std::string build_identity(const void* address);

}  // namespace coppice::jit
