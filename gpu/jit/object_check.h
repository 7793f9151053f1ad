// Checks whether an ELF object out of the kernel cache is one that the loader can take.
//
// The cache's checksum shows that the bytes are what somebody stored, not that it was this program: ORC would
// link an object of another processor, and take a variable for the entry point.
#pragma once
#include <string>
#include <string_view>

namespace coppice::jit {

// Returns an empty text when `object` is a relocatable x86-64 object in which `entry` is a function; else
// one line that says why not.
std::string why_not_loadable(std::string_view object, const std::string& entry);

}  // namespace coppice::jit
