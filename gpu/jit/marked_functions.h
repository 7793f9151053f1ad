// Has what the proofs about kernels share: functions that the library's headers mark
// (core/device_macros.h), whose memory is whose, and kernels brought into a form in which loops and memory
// can be judged while accesses through handles are still calls. Internal to gpu/jit.
#pragma once
#include <llvm/IR/Function.h>
#include <llvm/Passes/PassBuilder.h>

#include <functional>
#include <set>

namespace coppice::jit {

using Functions = std::set<llvm::Function*>;

inline constexpr llvm::StringRef kOneCell = "ext_coppice_one_cell";
inline constexpr llvm::StringRef kHarmless = "ext_coppice_harmless";
inline constexpr llvm::StringRef kHarmlessNear = "ext_coppice_harmless_near";
inline constexpr llvm::StringRef kAccess = "ext_coppice_access";
inline constexpr llvm::StringRef kMemory = "ext_coppice_memory";
inline constexpr llvm::StringRef kActivates = "ext_coppice_activates";
inline constexpr llvm::StringRef kDeactivates = "ext_coppice_deactivates";
inline constexpr llvm::StringRef kTests = "ext_coppice_tests";
inline constexpr llvm::StringRef kAnywhere = "ext_coppice_anywhere";
inline constexpr llvm::StringRef kNeighbours = "ext_coppice_neighbours";

// Tells whether a function carries a mark.
bool is_marked(const llvm::Function& f, llvm::StringRef with);
// Tells whether memory comes from a call of such a function, also through a cast or an index.
bool is_result_of_marked(const llvm::Value& object, llvm::StringRef with);
// Tells whether an object in memory is the kernel's own: a variable, a constant or an argument given by
// value.
bool is_own_object(const llvm::Value& object);
// Tells whether a call is an operation of the device on memory (gpu/device_intrinsics.h), its first argument:
// one that changes it, and one that only loads.
bool is_device_atomic(const llvm::Instruction& i);
bool is_device_load(const llvm::Instruction& i);
// Turns the functions that `is_opaque` names into declarations, so that calls of them stay calls.
void make_opaque(llvm::Module& module, const std::function<bool(const llvm::Function&)>& is_opaque);
// Collects all functions with a body that `f` leads to, itself included; false where it leads back to
// itself.
bool collect_reached(llvm::Function& f, Functions& reached);
// Lets nothing stand against the inlining of a function with a body, and of what it calls; or of neither
// where it stays one.
void let_inline(llvm::Function& f, bool stays = false);
// These are LLVM's analyses of a module. Each manager looks into the ones above it when it goes, so that
// their order matters.
struct Analyses {
  Analyses();
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
};
// Leaves the functions of `kept`, which stay functions, and what is inlined into them, promoted to registers.
// Loops stay loops where no constant unrolls them, so that their number of rounds can be asked for.
void inline_and_simplify(llvm::Module& module, const Functions& kept, const Functions& inlined,
                         Analyses& analyses);

}  // namespace coppice::jit
