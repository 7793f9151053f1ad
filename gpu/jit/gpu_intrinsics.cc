// The list of intrinsics that NVPTX compiles (see gpu_intrinsics.h).
#include "gpu/jit/gpu_intrinsics.h"

#include <llvm/IR/Intrinsics.h>

namespace coppice::jit {
namespace {

struct NeedsGpu {
  std::string_view part;  // of a name "llvm.nvvm...."
  int sm;                 // the first GPU that has it; 0: none that we compile for
};
constexpr NeedsGpu kNewer[] = {{".redux.", 80},  {".cp.async.", 80}, {".mbarrier.", 80}, {".bf16", 80},
                               {".cluster", 90}, {".mapa", 90},      {".bulk", 0},       {".wgmma", 0},
                               {".mma.", 0},     {".wmma.", 0},      {".tex.", 0},       {".suld.", 0},
                               {".sust.", 0},    {".tld4.", 0}};

bool gpu_has(std::string_view name, int sm) {
  for (const NeedsGpu& newer : kNewer) {
    if (name.find(newer.part) != name.npos) return newer.sm != 0 && sm >= newer.sm;
  }
  return true;
}

// The function is long because it lists every intrinsic, one a line.
bool has_generic(unsigned id) {
  namespace in = llvm::Intrinsic;
  switch (id) {
    // no code at all
    case in::assume:
    case in::dbg_assign:
    case in::dbg_declare:
    case in::dbg_label:
    case in::dbg_value:
    case in::donothing:
    case in::experimental_noalias_scope_decl:
    case in::expect:
    case in::invariant_end:
    case in::invariant_start:
    case in::is_constant:
    case in::launder_invariant_group:
    case in::lifetime_end:
    case in::lifetime_start:
    case in::objectsize:
    case in::prefetch:
    case in::pseudoprobe:
    case in::ptrmask:
    case in::sideeffect:
    case in::ssa_copy:
    case in::strip_invariant_group:
    // memory
    case in::memcpy:
    case in::memcpy_inline:
    case in::memmove:
    case in::memset:
    case in::memset_inline:
    // integers
    case in::abs:
    case in::bitreverse:
    case in::bswap:
    case in::ctlz:
    case in::ctpop:
    case in::cttz:
    case in::fshl:
    case in::fshr:
    case in::sadd_sat:
    case in::sadd_with_overflow:
    case in::scmp:
    case in::smax:
    case in::smin:
    case in::smul_with_overflow:
    case in::ssub_sat:
    case in::ssub_with_overflow:
    case in::uadd_sat:
    case in::uadd_with_overflow:
    case in::ucmp:
    case in::umax:
    case in::umin:
    case in::umul_with_overflow:
    case in::usub_sat:
    case in::usub_with_overflow:
    // floats
    case in::canonicalize:
    case in::ceil:
    case in::copysign:
    case in::fabs:
    case in::floor:
    case in::fma:
    case in::fmuladd:
    case in::fptosi_sat:
    case in::fptoui_sat:
    case in::is_fpclass:
    case in::ldexp:
    case in::maximum:
    case in::maxnum:
    case in::minimum:
    case in::minnum:
    case in::nearbyint:
    case in::rint:
    case in::round:
    case in::roundeven:
    case in::sqrt:
    case in::trunc:
    // vectors
    case in::vector_reduce_add:
    case in::vector_reduce_and:
    case in::vector_reduce_fadd:
    case in::vector_reduce_fmax:
    case in::vector_reduce_fmin:
    case in::vector_reduce_fmul:
    case in::vector_reduce_mul:
    case in::vector_reduce_or:
    case in::vector_reduce_smax:
    case in::vector_reduce_smin:
    case in::vector_reduce_umax:
    case in::vector_reduce_umin:
    case in::vector_reduce_xor:
    // control, machine
    case in::debugtrap:
    case in::get_rounding:
    case in::readcyclecounter:
    case in::trap:
    case in::ubsantrap:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ptx_has_intrinsic(unsigned id, std::string_view name, int sm) {
  if (name.starts_with("llvm.nvvm.")) return id != llvm::Intrinsic::not_intrinsic && gpu_has(name, sm);
  return has_generic(id);
}

}  // namespace coppice::jit
