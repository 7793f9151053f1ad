// Kernels of a batch (see batch_kernels.h).
#include "tests/kernel_fuzz/batch_kernels.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <span>

#include "core/error.h"

namespace coppice::kernel_fuzz {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::kUsage, fmt::format("cannot read {}", path.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

KernelBitcode view_of(const std::string& bytes) {
  return {"batch", "batch.kernels.cc", std::as_bytes(std::span(bytes.data(), bytes.size()))};
}

std::vector<int> read_numbers(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istream_iterator<int>(in), {}};
}

jit::AssembledKernels assemble(Loops& loops, const std::filesystem::path& folder) {
  std::vector<jit::KernelPlan> plans;
  for (const int shape : read_numbers(folder / "shapes"))
    plans.push_back({fmt::format("k{}", plans.size()), shape, loops.parts(shape)});
  const std::string raw = read_file(folder / "bodies.raw.bc"), shipped = read_file(folder / "bodies.bc");
  return jit::assemble_kernels(plans, view_of(raw), view_of(shipped));
}

jit::AssembledKernels read_whole(const std::filesystem::path& folder) {
  jit::AssembledKernels whole{read_file(folder / "whole.bc"), {}};
  const std::vector<int> told = read_numbers(folder / "whole.told");
  for (size_t n = 0; n + 1 < told.size(); n += 2)
    whole.told.push_back({told[n] != 0, static_cast<uint32_t>(told[n + 1])});
  return whole;
}

}  // namespace

Loops::Loops(const std::filesystem::path& folder) {
  for (int k = 0; k < kLoopFiles; ++k) {
    raw_.push_back(read_file(folder / fmt::format("loops_{}.kernels.cc.debug.bc", k)));
    shipped_.push_back(read_file(folder / fmt::format("loops_{}.kernels.cc.bc", k)));
  }
}

jit::LoopParts Loops::parts(int shape) {
  auto [found, fresh] = parts_.try_emplace(shape);
  Parts& parts = found->second;
  if (fresh) {
    const std::string &raw = raw_[shape % kLoopFiles], &shipped = shipped_[shape % kLoopFiles];
    parts.cell = jit::extract_function(view_of(raw), fmt::format("coppice_kernel_cell_{}", shape));
    parts.loop = jit::extract_function(view_of(shipped), fmt::format("coppice_kernel_loop_{}", shape));
  }
  return {view_of(parts.loop), view_of(parts.cell)};
}

Batch::Batch(Loops& loops, const std::filesystem::path& folder) {
  const bool whole = std::filesystem::exists(folder / "whole.bc");
  jit::AssembledKernels kernels = whole ? read_whole(folder) : assemble(loops, folder);
  bitcode_ = std::move(kernels.bitcode);
  for (size_t n = 0; n < kernels.told.size(); ++n)
    kernels_.push_back({view_of(bitcode_), fmt::format("k{}", n), kernels.told[n]});
  const std::filesystem::path file = folder / "batch.so";
  library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw Error(ErrorCode::kUsage, dlerror());
  references_ = static_cast<const fuzz_reference::Reference*>(dlsym(library_, "fuzz_references"));
  if (references_ == nullptr) throw Error(ErrorCode::kUsage, fmt::format("{} has no table", file.string()));
}
Batch::~Batch() { dlclose(library_); }

}  // namespace coppice::kernel_fuzz
