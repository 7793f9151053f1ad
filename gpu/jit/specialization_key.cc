// Hashes specializations (see specialization_key.h).
#include "gpu/jit/specialization_key.h"

#include <fmt/format.h>

#include "gpu/jit/sanitizer.h"
#include "gpu/launch_block.h"

namespace coppice::jit {

std::span<const std::byte> cpu_intrinsics_bitcode();
std::span<const std::byte> simt_intrinsics_bitcode();
std::span<const std::byte> nvptx_intrinsics_bitcode();
std::span<const std::byte> libdevice_bitcode();

const KeyContext& key_context() {
  // It is never destroyed: devices may be in use when the process ends.
  static const auto* const context = new KeyContext{host_target().cpu,
                                                    host_target().features,
                                                    llvm_identity(),
                                                    "",
                                                    std::string(pipeline_identity()),
                                                    kLaunchBlockVersion,
                                                    cpu_intrinsics_bitcode(),
                                                    simt_intrinsics_bitcode()};
  return *context;
}

KeyContext ptx_key_context(PtxTarget target) {
  static const auto& libdevice = *new std::string(Hasher().update(libdevice_bitcode()).digest().hex());
  return {"",
          target.libdevice ? libdevice : "",
          llvm_identity(),
          fmt::format("sm_{}", target.sm),
          std::string(pipeline_identity()),
          kLaunchBlockVersion,
          nvptx_intrinsics_bitcode(),
          {}};
}

Hash128 specialization_key(const SpecializeRequest& request, const KeyContext& context) {
  Hasher hasher;
  // Bytes count with their length, or the end of one piece could pass for the start of the next.
  auto update_bytes = [&](std::span<const std::byte> bytes) {
    hasher.update(uint64_t{bytes.size()}).update(bytes);
  };
  update_bytes(request.file->bitcode);
  hasher.update(request.entry).update(uint64_t{request.constants.size()});
  for (const ConstantGlobal& c : request.constants) {
    hasher.update(c.name);
    update_bytes(c.bytes);
  }
  const CodegenOptions& options = request.options;
  update_bytes(options.simt ? context.simt_intrinsics : context.intrinsics);
  hasher.update(uint32_t{options.step}).update(uint32_t{options.checks}).update(uint32_t{options.simt});
  hasher.update(uint32_t{request.makes_room}).update(uint32_t{request.guards_memory});
  hasher.update(kSanitizer);
  hasher.update(context.cpu).update(context.features).update(context.llvm);
  hasher.update(context.target).update(context.pipeline);
  return hasher.update(context.launch_block_version).digest();
}

}  // namespace coppice::jit
