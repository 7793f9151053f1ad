// Embedded kernel bitcode: what coppice_add_kernels() turns a kernel file into.
//
// Thread-compatible, immutable; lives as long as the program.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace coppice {

// One kernel file. `name` is the file's stem and the first half of every kernel's id ("heat" in
// "heat.diffuse").
struct KernelBitcode {
  std::string_view name;
  std::string_view source_file;  // as clang saw it, for messages
  std::span<const std::byte> bitcode;
  // What whatever takes its place while the program runs must agree with (gpu/jit/kernel_interface.h), and
  // the file in the build's folder that says how it was compiled (gpu/kernel_builder.h); empty where nothing
  // can take its place.
  std::string_view interface = {}, recipe = {};
};

}  // namespace coppice
