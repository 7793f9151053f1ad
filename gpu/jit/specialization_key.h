// The name of a specialization: what decides a kernel's machine code, as a hash. It
// names entries of the kernel cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "gpu/jit/specializer.h"

namespace coppice::jit {

// These members decide machine code beside the request. Another value of any of them gives other keys, so
// that an entry made on another CPU, by another build of LLVM or by other passes of this library is not
// found.
struct KeyContext {
  std::string cpu;
  std::string features;  // of PTX: a hash of the libdevice that is linked
  std::string llvm;      // llvm_identity()
  std::string target;    // of PTX: "sm_90"; empty: this processor
  std::string pipeline;  // pipeline_identity()
  uint32_t launch_block_version = 0;
  std::span<const std::byte> intrinsics;       // bitcode that is linked into every kernel
  std::span<const std::byte> simt_intrinsics;  // the same, for the emulated GPU
};
// Returns a hash of the sources of gpu/jit, made by the build: every change of them, a comment's too,
// gives other keys, and nothing else in the program does.
std::string_view pipeline_identity();
// Returns the context of this machine and this build.
const KeyContext& key_context();
// Returns the context of PTX, which does not depend on the machine.
KeyContext ptx_key_context(PtxTarget target);

Hash128 specialization_key(const SpecializeRequest& request, const KeyContext& context = key_context());

}  // namespace coppice::jit
