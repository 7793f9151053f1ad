// Math functions of kernels on NVIDIA GPUs (see ptx_math.h).
#include "gpu/jit/ptx_math.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <vector>

namespace coppice::jit {
namespace {

struct MathFunction {
  std::string_view name;   // C's, of double
  bool intrinsic = false;  // LLVM has one, which clang and the optimiser make of the C function
  bool fast = false;  // libdevice has __nv_fast_<name>f, good to some ulp; its tanh is good to 2^-11 only
};
constexpr MathFunction kMath[] = {
    {"acos", true},
    {"acosh"},
    {"asin", true},
    {"asinh"},
    {"atan", true},
    {"atan2"},
    {"atanh"},
    {"cbrt"},
    {"cos", true, true},
    {"cosh", true},
    {"erf"},
    {"erfc"},
    {"exp", true, true},
    {"exp10", true, true},
    {"exp2", true},
    {"expm1"},
    {"fdim"},
    {"fmod"},
    {"frexp"},
    {"hypot"},
    {"ilogb"},
    {"ldexp"},
    {"lgamma"},
    {"log", true, true},
    {"log10", true, true},
    {"log1p"},
    {"log2", true, true},
    {"logb"},
    {"modf"},
    {"nextafter"},
    {"pow", true, true},
    {"remainder"},
    {"remquo"},
    {"sin", true, true},
    {"sinh", true},
    {"tan", true, true},
    {"tanh", true},
    {"tgamma"},
};

const MathFunction* find(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMath), std::end(kMath), [&](const MathFunction& f) { return f.name == name; });
  return found == std::end(kMath) ? nullptr : found;
}
std::string name_of_float(const MathFunction& f, bool fast) {
  return std::string(fast && f.fast ? "__nv_fast_" : "__nv_") + std::string(f.name) + "f";
}

bool is_of_libdevice(const llvm::Function& f) {
  return f.isDeclaration() && f.getName().starts_with("__nv_");
}

// Read lazily: 2 ms instead of 29.
void link_libdevice(llvm::Module& module, const Diagnostics& diagnostics) {
  const std::span<const std::byte> bytes = libdevice_bitcode();
  auto library = llvm::getOwningLazyBitcodeModule(
      llvm::MemoryBuffer::getMemBuffer(
          llvm::StringRef(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "libdevice", false),
      module.getContext());
  if (!library) diagnostics.fail("reading libdevice", llvm::toString(library.takeError()));
  link_into(module, std::move(*library), true, diagnostics);
}

}  // namespace

bool has_libdevice() { return !libdevice_bitcode().empty(); }

std::string libdevice_name(std::string_view function, bool fast) {
  constexpr std::string_view kIntrinsic = "llvm.";
  if (function == "llvm.powi.f32.i32") return "__nv_powif";
  if (function == "llvm.powi.f64.i32") return "__nv_powi";
  if (function.starts_with(kIntrinsic)) {
    const size_t dot = function.rfind('.');
    if (dot < kIntrinsic.size()) return "";
    const MathFunction* f = find(function.substr(kIntrinsic.size(), dot - kIntrinsic.size()));
    if (f == nullptr || !f->intrinsic) return "";
    const std::string_view type = function.substr(dot);
    return type == ".f32" ? name_of_float(*f, fast) : type == ".f64" ? "__nv_" + std::string(f->name) : "";
  }
  if (const MathFunction* f = find(function)) return "__nv_" + std::string(f->name);
  if (!function.ends_with('f')) return "";
  const MathFunction* f = find(function.substr(0, function.size() - 1));
  return f == nullptr ? "" : name_of_float(*f, fast);
}

bool map_math(llvm::Module& module, bool fast, bool linked, const Diagnostics& diagnostics) {
  bool mapped = false;
  for (llvm::Function& f : llvm::make_early_inc_range(module)) {
    if (!f.isDeclaration()) continue;
    const std::string name = libdevice_name(f.getName(), fast);
    if (name.empty()) continue;
    f.replaceAllUsesWith(module.getOrInsertFunction(name, f.getFunctionType()).getCallee());
    f.eraseFromParent();
    mapped = true;
  }
  if (linked && has_libdevice() && llvm::any_of(module, is_of_libdevice)) link_libdevice(module, diagnostics);
  return mapped;
}

}  // namespace coppice::jit
