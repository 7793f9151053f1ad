// Embedded kernel bitcode: what coppice_add_kernels() turns a kernel file into.
//
// Thread-compatible, immutable; lives as long as the program.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace coppice {

// Describes one kernel file. `name` is the file's stem and the first half of every kernel's id ("heat" in
// "heat.diffuse").
struct KernelBitcode {
  std::string_view name;
  std::string_view source_file;  // as clang saw it, for messages
  std::span<const std::byte> bitcode;
  // `interface` is what must be the same in a file that takes this one's place while the program runs
  // (gpu/jit/kernel_interface.h), `recipe` the file in the build's folder that says how it was compiled
  // (gpu/kernel_builder.h). Both are empty where nothing can take its place.
  std::string_view interface = {}, recipe = {};
};

}  // namespace coppice
