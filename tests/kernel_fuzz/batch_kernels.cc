// Kernels of a batch (see batch_kernels.h).
#include "tests/kernel_fuzz/batch_kernels.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <span>

#include "core/error.h"

namespace coppice::kernel_fuzz {

BitcodeFile::BitcodeFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::kUsage, fmt::format("cannot read {}", path.string()));
  bytes.assign(std::istreambuf_iterator<char>(in), {});
}
KernelBitcode view_of(const std::string& bytes) {
  return {"batch", "batch.kernels.cc", std::as_bytes(std::span(bytes.data(), bytes.size()))};
}

Loops::Loops(const std::filesystem::path& folder) {
  for (int k = 0; k < kLoopFiles; ++k) {
    raw_.emplace_back(folder / fmt::format("loops_{}.kernels.cc.debug.bc", k));
    shipped_.emplace_back(folder / fmt::format("loops_{}.kernels.cc.bc", k));
  }
}
jit::KernelParts Loops::parts(int shape) {
  auto [found, fresh] = parts_.try_emplace(shape);
  if (fresh) {
    const int file = shape % kLoopFiles;
    found->second.cell = jit::extract_function(view_of(raw_[file].bytes), fmt::format("coppice_kernel_cell_{}", shape));
    found->second.loop =
        jit::extract_function(view_of(shipped_[file].bytes), fmt::format("coppice_kernel_loop_{}", shape));
  }
  return {view_of(found->second.cell), view_of(found->second.loop)};
}

Batch::Batch(Loops& loops, const std::filesystem::path& folder) : loops_(loops) {
  const bool whole = std::filesystem::exists(folder / "whole.bc");
  if (whole) {
    files_.emplace_back(folder / "whole.bc");
    std::ifstream flags(folder / "whole.active_only");
    for (int flag; flags >> flag;) active_only_.push_back(flag != 0);
  } else {
    files_.emplace_back(folder / "bodies.raw.bc"), files_.emplace_back(folder / "bodies.bc");
  }
  const std::filesystem::path file = folder / "batch.so";
  library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw Error(ErrorCode::kUsage, dlerror());
  references_ = static_cast<const fuzz_reference::Reference*>(dlsym(library_, "fuzz_references"));
  if (references_ == nullptr) throw Error(ErrorCode::kUsage, fmt::format("{} has no table", file.string()));
}
Batch::~Batch() { dlclose(library_); }

const AnyKernel& Batch::kernel(int number, int shape) {
  auto [found, fresh] = kernels_.try_emplace(number);
  Kernel& kernel = found->second;
  if (!fresh) return kernel.any;
  kernel.any.name = fmt::format("k{}", number);
  if (!active_only_.empty()) {
    kernel.any.file = view_of(files_[0].bytes), kernel.any.active_only = active_only_.at(number);
    return kernel.any;
  }
  const std::clock_t begin = std::clock();
  jit::AssembledKernel assembled =
      jit::assemble_kernel(loops_.parts(shape), shape, {view_of(files_[0].bytes), view_of(files_[1].bytes)}, kernel.any.name);
  kernel.bitcode = std::move(assembled.bitcode), kernel.any.active_only = assembled.active_only;
  kernel.any.file = view_of(kernel.bitcode);
  assembly_seconds_ += double(std::clock() - begin) / CLOCKS_PER_SEC;
  return kernel.any;
}

}  // namespace coppice::kernel_fuzz
