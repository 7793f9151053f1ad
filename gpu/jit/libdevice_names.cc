// The table of NVIDIA's math functions (see libdevice_names.h).
#include "gpu/jit/libdevice_names.h"

#include <algorithm>
#include <iterator>

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
    {"j0"},
    {"j1"},
    {"jn"},
    {"ldexp"},
    {"lgamma"},
    {"llrint", true},
    {"llround", true},
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
    {"scalbn"},
    {"sin", true, true},
    {"sincos", false, true},
    {"sinh", true},
    {"tan", true, true},
    {"tanh", true},
    {"tgamma"},
    {"y0"},
    {"y1"},
    {"yn"},
};

const MathFunction* find(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kMath), std::end(kMath), [&](const MathFunction& f) { return f.name == name; });
  return found == std::end(kMath) ? nullptr : found;
}
std::string name_of_float(const MathFunction& f, bool fast) {
  return std::string(fast && f.fast ? "__nv_fast_" : "__nv_") + std::string(f.name) + "f";
}

// Holds an intrinsic's function and type: "llvm.lround.i64.f32" is "lround" and ".f32".
struct Intrinsic {
  std::string_view function, type;
};
Intrinsic split(std::string_view name) {
  name.remove_prefix(std::string_view("llvm.").size());
  const size_t first = name.find('.'), last = name.rfind('.');
  if (first == name.npos) return {};
  return {name.substr(0, first), name.substr(last)};
}

// A long is as long as a long long, so libdevice has one of each.
std::string_view without_twins(std::string_view name) {
  if (name == "lrint") return "llrint";
  if (name == "lround") return "llround";
  return name;
}

}  // namespace

std::string libdevice_name(std::string_view function, bool fast) {
  if (function == "llvm.powi.f32.i32") return "__nv_powif";
  if (function == "llvm.powi.f64.i32") return "__nv_powi";
  if (function.starts_with("llvm.")) {
    const Intrinsic intrinsic = split(function);
    const MathFunction* f = find(without_twins(intrinsic.function));
    if (f == nullptr || !f->intrinsic) return "";
    if (intrinsic.type == ".f32") return name_of_float(*f, fast);
    return intrinsic.type == ".f64" ? "__nv_" + std::string(f->name) : "";
  }
  if (const MathFunction* f = find(without_twins(function))) return "__nv_" + std::string(f->name);
  if (!function.ends_with('f')) return "";
  const MathFunction* f = find(without_twins(function.substr(0, function.size() - 1)));
  return f == nullptr ? "" : name_of_float(*f, fast);
}

}  // namespace coppice::jit
