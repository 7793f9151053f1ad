// Embedded kernel bitcode: what coppice_add_kernels() turns a kernel file into.
//
// Thread-compatible, immutable; lives as long as the program.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace coppice {

// One kernel file. `name` is the file's stem and the first half of every kernel's id ("heat" in "heat.diffuse").
struct KernelBitcode {
  std::string_view name;
  std::string_view source_file;  // as clang saw it, for messages
  std::span<const std::byte> bitcode;
};

}  // namespace coppice
