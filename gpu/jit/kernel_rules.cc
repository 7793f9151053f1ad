// The rules for kernels (see kernel_rules.h).
#include "gpu/jit/kernel_rules.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/AtomicOrdering.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "gpu/jit/gpu_intrinsics.h"
#include "gpu/jit/libdevice_names.h"
#include "gpu/jit/library_symbols.h"

namespace coppice::kernelgen {
namespace {

bool is_one_of(llvm::StringRef name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), std::string_view(name)) != names.end();
}
bool is_library_function(llvm::StringRef name) {
  const auto symbols = jit::library_symbols();
  return std::binary_search(
      symbols.begin(), symbols.end(), jit::LibrarySymbol{name.data(), nullptr},
      [](const auto& a, const auto& b) { return std::string_view(a.name) < std::string_view(b.name); });
}
// Returns whether it is a constant of a specialization (sparse/device/layout.h, sparse/device/checks.h).
bool is_baked(llvm::StringRef name) {
  return is_one_of(name, {"coppice_nodes", "coppice_fields", "coppice_loop", "coppice_debug_checks",
                          "coppice_makes_room"});
}

// Says what there is instead of a function that kernels cannot call.
std::string_view instead_of(llvm::StringRef name) {
  if (is_one_of(name, {"printf", "fprintf", "puts", "putchar", "__printf_chk", "__fprintf_chk"}))
    return "use print(cell, \"x is {}\", x)";
  if (is_one_of(name, {"__assert_fail", "abort", "exit", "_Exit", "_ZSt21__glibcxx_assert_failPKciS0_S0_",
                       "_ZSt9terminatev"}))
    return "use COPPICE_ASSERT(cell, condition)";
  // Containers that grow throw for what is too long before they ask for memory.
  const bool grows = name.starts_with("_ZSt20__throw_length_error") ||
                     name.starts_with("_ZSt17__throw_bad_alloc") ||
                     name.starts_with("_ZSt28__throw_bad_array_new_length");
  if (grows || name.starts_with("_Zn") || name.starts_with("_Zd") ||
      is_one_of(name, {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign"}))
    return "use an array of constant size, a field, or memory that the host gives as an argument";
  if (name.starts_with("_ZSt") && name.contains("__throw_")) return "test before what it would throw on";
  if (is_one_of(name.rtrim('f'),
                {"cabs", "carg", "cexp", "clog", "cpow", "csqrt", "csin", "ccos", "ctan", "csinh", "ccosh",
                 "ctanh", "casin", "cacos", "catan", "casinh", "cacosh", "catanh", "cproj"}))
    return "write it with real numbers, such as std::hypot(z.real(), z.imag()) for abs(z)";
  if (name.starts_with("str") || name.starts_with("mem")) return "no device has C's strings";
  if (is_one_of(name, {"rand", "srand", "random", "drand48", "lrand48", "rand_r"}) ||
      name.contains("random_device"))
    return "use Random random(cell); random.uniform()";
  if (is_one_of(name, {"setjmp", "_setjmp", "__sigsetjmp", "longjmp"})) return "return a value";
  if (name.starts_with("fe")) return "a device rounds to nearest and has no flags";
  return "define it in the kernel file or in a header that it includes";
}

// Returns the static variable that a guard is of: "guard variable for f()::kept" by its mangled name.
std::string without_guard(llvm::StringRef name) {
  return name.starts_with("_ZGV") ? "_Z" + name.substr(4).str() : name.str();
}

// Says what clang says about a variable's declaration; null when it says nothing.
const llvm::DIGlobalVariable* declaration_of(const std::string& symbol, const llvm::Module& debug) {
  const llvm::GlobalVariable* variable = debug.getNamedGlobal(symbol);
  llvm::SmallVector<llvm::DIGlobalVariableExpression*> infos;
  if (variable != nullptr) variable->getDebugInfo(infos);
  return infos.empty() ? nullptr : infos[0]->getVariable();
}
std::string place_of(const llvm::DIGlobalVariable& declared) {
  return fmt::format("{}:{}", path_of(&declared), declared.getLine());
}

// Tells whether objects of a type hold nothing.
bool is_empty(const llvm::DIType* type) {
  while (const auto* named = llvm::dyn_cast_or_null<llvm::DIDerivedType>(type)) {
    const unsigned tag = named->getTag();
    if (tag != llvm::dwarf::DW_TAG_typedef && tag != llvm::dwarf::DW_TAG_const_type) return false;
    type = named->getBaseType();
  }
  const auto* record = llvm::dyn_cast_or_null<llvm::DICompositeType>(type);
  if (record == nullptr || record->isForwardDecl()) return false;
  if (record->getTag() != llvm::dwarf::DW_TAG_structure_type &&
      record->getTag() != llvm::dwarf::DW_TAG_class_type)
    return false;
  return llvm::all_of(record->getElements(), [](const llvm::DINode* element) {
    const auto* part = llvm::dyn_cast<llvm::DIDerivedType>(element);  // a member or a base class
    return part == nullptr || part->isStaticMember() || part->getTag() == llvm::dwarf::DW_TAG_typedef ||
           is_empty(part->getBaseType());
  });
}

// clang makes a function for each variable that code initialises or destroys; those of Eigen's placeholders
// do nothing.
bool is_initialised_by_code(const llvm::GlobalVariable& variable) {
  for (const llvm::Function& f : *variable.getParent()) {
    if (!f.getName().starts_with("_GLOBAL__sub_I_") && !f.getName().starts_with("__cxx_global_var_init"))
      continue;
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      if (!i.mayHaveSideEffects() || i.isLifetimeStartOrEnd()) continue;
      for (const llvm::Use& operand : i.operands())
        if (operand->stripInBoundsOffsets() == &variable) return true;
    }
  }
  return false;
}

class KernelRules {
 public:
  KernelRules(const std::string& name, const llvm::Module& debug, const SourceFolders& folders)
      : name_(name), debug_(debug), folders_(folders) {}

  void check(const llvm::Function& entry) {
    callers_[&entry] = nullptr;
    std::vector<const llvm::Function*> to_do{&entry};
    while (!to_do.empty()) {
      const llvm::Function* const f = to_do.back();
      to_do.pop_back();
      for (const llvm::Instruction& i : llvm::instructions(*f)) {
        check_instruction(i);
        for (const llvm::Function* callee : check_operands(i)) {
          if (callers_.emplace(callee, &i).second) to_do.push_back(callee);
        }
      }
    }
    check_stack(entry);
  }

 private:
  // Returns the innermost place that the user wrote, in the code that was inlined to `i` or in that which
  // calls it.
  std::string place_of(const llvm::Instruction& i) const {
    std::string innermost;
    for (const llvm::Instruction* at = &i; at != nullptr; at = callers_.at(at->getFunction())) {
      for (const llvm::DILocation* l = at->getDebugLoc().get(); l != nullptr; l = l->getInlinedAt()) {
        if (l->getLine() == 0) continue;
        const std::string file = path_of(l->getScope());
        const std::string place = fmt::format("{}:{}", file, l->getLine());
        if (folders_.is_users(file)) return place;
        if (innermost.empty()) innermost = place;
      }
    }
    return innermost.empty() ? "kernel file" : innermost;
  }
  [[noreturn]] void refuse_at(const std::string& place, const std::string& what,
                              std::string_view instead) const {
    throw std::runtime_error(fmt::format("{}: kernel {} {}; {}", place, name_, what, instead));
  }
  [[noreturn]] void refuse(const llvm::Instruction& i, const std::string& what,
                           std::string_view instead) const {
    refuse_at(place_of(i), what, instead);
  }

  // ---- functions and variables

  // Refuses what must not be named; returns the functions that are, with a body.
  std::vector<const llvm::Function*> check_operands(const llvm::Instruction& i) {
    std::vector<const llvm::Function*> functions;
    std::set<const llvm::Constant*> seen;
    std::vector<const llvm::User*> to_do{&i};
    while (!to_do.empty()) {
      const llvm::User* const user = to_do.back();
      to_do.pop_back();
      for (const llvm::Use& operand : user->operands()) {
        const auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get());
        if (constant == nullptr || !seen.insert(constant).second) continue;
        if (const auto* f = llvm::dyn_cast<llvm::Function>(constant)) {
          check_function(i, *f);
          if (!f->isDeclaration()) functions.push_back(f);
          continue;
        }
        if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(constant)) check_variable(i, *global);
        if (llvm::isa<llvm::GlobalAlias>(constant) || llvm::isa<llvm::GlobalIFunc>(constant))
          refuse(i, "uses another name of a function", "define the function under one name");
        to_do.push_back(constant);
      }
    }
    return functions;
  }

  void check_function(const llvm::Instruction& i, const llvm::Function& f) const {
    if (!f.isDeclaration()) {
      if (f.isVarArg()) refuse_variadic(i, f);
      return;
    }
    if (f.isIntrinsic()) return check_intrinsic(i, f);
    const llvm::StringRef name = f.getName();
    if (is_library_function(name)) return;
    const llvm::DISubprogram* declared = f.getSubprogram();
    if (declared == nullptr) {
      if (const llvm::Function* in_debug = debug_.getFunction(name)) declared = in_debug->getSubprogram();
    }
    if (declared != nullptr && folders_.library_header(path_of(declared)) == "gpu/device_intrinsics.h")
      return;
    if (name == "__cxa_pure_virtual") refuse_virtual(i, "");
    refuse(i, fmt::format("calls {}, which kernels cannot", llvm::demangle(name.str())), instead_of(name));
  }

  [[noreturn]] void refuse_virtual(const llvm::Instruction& i, const std::string& of) const {
    refuse(i, "uses virtual functions" + of, "use a template, or a switch");
  }

  void check_variable(const llvm::Instruction& i, const llvm::GlobalVariable& global) const {
    const std::string symbol = without_guard(global.getName());
    const std::string name = llvm::demangle(symbol);
    if (llvm::StringRef(symbol).starts_with("_ZTV")) refuse_virtual(i, ", " + name);
    if (global.isThreadLocal())
      refuse(i, fmt::format("uses the thread-local variable {}", name), "use a variable of the kernel's own");
    if (global.isDeclaration()) {
      if (is_baked(global.getName())) return;
      refuse(i, fmt::format("uses the variable {}, which the kernel file does not define", name),
             "give its value as an argument");
    }
    if (global.isConstant()) return;
    const llvm::DIGlobalVariable* declared = declaration_of(symbol, debug_);
    const bool is_initialised = is_initialised_by_code(global);
    if (!is_initialised && declared != nullptr && is_empty(declared->getType()))
      return;  // as Eigen's placeholders are (Eigen::last)
    const std::string place = declared == nullptr ? place_of(i) : kernelgen::place_of(*declared);
    if (is_initialised)
      refuse_at(place,
                fmt::format("uses {}, which is initialised or destroyed by code that no device runs", name),
                "make it constexpr");
    refuse_at(place, fmt::format("uses the static variable {}, which is not constant", name),
              "make it constexpr, or give it as an argument: no variable is shared by a kernel's runs");
  }
  static bool is_trap(llvm::Intrinsic::ID id) {
    return id == llvm::Intrinsic::trap || id == llvm::Intrinsic::debugtrap ||
           id == llvm::Intrinsic::ubsantrap;
  }
  // Devices lay such arguments out differently, and clang has compiled for one of them already.
  [[noreturn]] void refuse_variadic(const llvm::Instruction& i, const llvm::Function& f) const {
    refuse(i,
           fmt::format("leads to {}, whose `...` every device would read differently",
                       llvm::demangle(f.getName().str())),
           "use a template with `class... Args`");
  }
  void check_intrinsic(const llvm::Instruction& i, const llvm::Function& f) const {
    const std::string name = f.getName().str();
    const llvm::Intrinsic::ID id = f.getIntrinsicID();
    if (is_trap(id)) refuse(i, "traps, which ends the whole program", instead_of("abort"));
    if (id == llvm::Intrinsic::vastart) refuse_variadic(i, *i.getFunction());
    if (id == llvm::Intrinsic::stacksave || id == llvm::Intrinsic::stackrestore)
      return;  // beside an array of a size that only the run knows, which is refused where it stands
    if (id == llvm::Intrinsic::not_intrinsic || llvm::Function::isTargetIntrinsic(id))
      refuse(i, fmt::format("uses {}, which not every device has", name), "write it as C++");
    if (jit::ptx_has_intrinsic(id, name, 90) || !jit::libdevice_name(name, false).empty() ||
        id == llvm::Intrinsic::frexp || id == llvm::Intrinsic::var_annotation ||
        id == llvm::Intrinsic::ptr_annotation || id == llvm::Intrinsic::annotation)
      return;
    refuse(i, fmt::format("uses {}, which not every device has", name), "write it as C++");
  }

  // ---- instructions

  void check_instruction(const llvm::Instruction& i) const {
    check_type(i, *i.getType());
    for (const llvm::Use& operand : i.operands()) check_type(i, *operand->getType());
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) {
      const auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand());
      if (assembly != nullptr && !assembly->getAsmString().empty())  // none: a barrier to the compiler
        refuse(i, "has assembly, which is of one processor", "write it as C++");
    }
    switch (i.getOpcode()) {
      case llvm::Instruction::IndirectBr:
      case llvm::Instruction::CallBr:
        refuse(beside(i), "has a computed goto", "use a switch");
      case llvm::Instruction::Invoke:
      case llvm::Instruction::LandingPad:
      case llvm::Instruction::Resume:
        refuse(i, "has an exception", "return a value");
      case llvm::Instruction::Alloca:
        if (!llvm::cast<llvm::AllocaInst>(i).isStaticAlloca()) refuse_variable_size(i);
        return;
      case llvm::Instruction::Fence:
        refuse(i, "has a fence", kOrderedInstead);
      default:
        check_atomic(i);
    }
  }
  // Returns an instruction with a place. clang makes one jump of all computed ones, which stands nowhere:
  // what comes before it does.
  static const llvm::Instruction& beside(const llvm::Instruction& jump) {
    for (const llvm::Instruction* i = &jump; i != nullptr; i = i->getPrevNode())
      if (i->getDebugLoc() && i->getDebugLoc().getLine() != 0) return *i;
    const llvm::BasicBlock& block = *jump.getParent();
    return block.hasNPredecessors(0) ? jump : *(*llvm::pred_begin(&block))->getTerminator();
  }
  [[noreturn]] void refuse_variable_size(const llvm::Instruction& i) const {
    refuse(i, "has an array whose size only the run knows", "give it a constant size");
  }

  void check_type(const llvm::Instruction& i, const llvm::Type& type) const {
    const llvm::Type& scalar = *type.getScalarType();
    if (scalar.isX86_FP80Ty()) refuse(i, "uses long double", "use double");
    if (scalar.isFP128Ty()) refuse(i, "uses a float of 128 bits", "use double");
    if (type.isScalableTy() || scalar.isX86_AMXTy() || scalar.isX86_MMXTy() || scalar.isTargetExtTy())
      refuse(i, "uses a register that only one processor has", "write it as C++");
  }

  void check_atomic(const llvm::Instruction& i) const {
    llvm::AtomicOrdering order = llvm::AtomicOrdering::NotAtomic;
    const llvm::Type* type = nullptr;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i); load != nullptr && load->isAtomic()) {
      order = load->getOrdering(), type = load->getType();
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i);
               store != nullptr && store->isAtomic()) {
      order = store->getOrdering(), type = store->getValueOperand()->getType();
    } else if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
      order = update->getOrdering(), type = update->getType();
    } else if (const auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
      order = swap->getMergedOrdering(), type = swap->getNewValOperand()->getType();
    }
    if (type == nullptr) return;
    if (llvm::isStrongerThan(order, llvm::AtomicOrdering::Monotonic))
      refuse(i, "has an atomic with an order other than relaxed", kOrderedInstead);
    if (i.getModule()->getDataLayout().getTypeStoreSize(const_cast<llvm::Type*>(type)) > 8)
      refuse(i, "has an atomic of more than 64 bits", "use several, or a lock");
  }

  // ---- the stack

  struct Stack {
    uint64_t bytes = 0;                          // of a function and the deepest of what it calls
    uint64_t largest_bytes = 0;                  // the largest variable among them ...
    const llvm::Instruction* largest = nullptr;  // ... and where it comes to life
  };

  void check_stack(const llvm::Function& entry) {
    const Stack stack = stack_of(entry);
    if (stack.bytes <= kMaxStackBytes) return;
    refuse(*stack.largest,
           fmt::format("has variables of {} bytes, {} of them in the one that begins here, and may have {}",
                       stack.bytes, stack.largest_bytes, kMaxStackBytes),
           "use a field, or memory that the host gives as an argument");
  }

  // Recursion counts once: what remains of it after optimising is refused there.
  const Stack& stack_of(const llvm::Function& f) {
    const auto [found, is_new] = stacks_.emplace(&f, Stack{});
    Stack& stack = found->second;
    if (!is_new) return stack;
    std::map<const llvm::DILocation*, Stack> copies;
    Stack own, deepest;
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      if (const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&i)) add_variable(*variable, copies);
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
      const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
      if (callee == nullptr || callee->isDeclaration()) continue;
      const Stack& below = stack_of(*callee);
      if (below.bytes > deepest.bytes) deepest = below;
    }
    for (const auto& [call, copy] : copies) {
      if (copy.bytes > own.bytes) own = copy;
    }
    stack = own.largest_bytes > deepest.largest_bytes ? own : deepest;
    stack.bytes = own.bytes + deepest.bytes;
    return stack;
  }

  // Returns where the library's loops call the kernel, going outwards from a place in it; null in a
  // function of its own.
  const llvm::DILocation* call_by_library(const llvm::DILocation* at) const {
    while (at != nullptr && !folders_.is_library(path_of(at->getScope()))) at = at->getInlinedAt();
    return at;
  }

  // The library's own variables, such as the cpu's tiles, are on no GPU's stack and bounded. Its loops have
  // several copies of the kernel, of which one runs at a time.
  void add_variable(const llvm::AllocaInst& variable,
                    std::map<const llvm::DILocation*, Stack>& copies) const {
    // Without line tables, which coppice_add_kernels() always asks for, nothing tells copies and owners
    // apart.
    if (variable.getFunction()->getSubprogram() == nullptr) return;
    const auto size = variable.getAllocationSize(variable.getModule()->getDataLayout());
    const llvm::Instruction* begins = where_it_begins(variable);
    const llvm::DILocation* at = begins->getDebugLoc().get();
    if (!size || size->isScalable() || (at != nullptr && folders_.is_library(path_of(at->getScope()))))
      return;
    Stack& stack = copies[call_by_library(at)];
    const uint64_t bytes = size->getFixedValue();
    stack.bytes += bytes;
    if (bytes > stack.largest_bytes) stack.largest_bytes = bytes, stack.largest = begins;
  }
  static const llvm::Instruction* where_it_begins(const llvm::AllocaInst& variable) {
    const llvm::Instruction* first = nullptr;
    for (const llvm::User* user : variable.users()) {
      const auto* i = llvm::dyn_cast<llvm::Instruction>(user);
      if (i == nullptr || !i->getDebugLoc()) continue;
      if (const auto* marker = llvm::dyn_cast<llvm::IntrinsicInst>(i);
          marker != nullptr && marker->getIntrinsicID() == llvm::Intrinsic::lifetime_start)
        return i;
      first = i;  // users come last first
    }
    return first != nullptr ? first : &variable;
  }

  static constexpr char kOrderedInstead[] =
      "use a relaxed one, or the ordered ones of gpu/device_intrinsics.h";
  const std::string& name_;
  const llvm::Module& debug_;
  const SourceFolders& folders_;
  std::map<const llvm::Function*, const llvm::Instruction*> callers_;  // the instruction that led to each
  std::map<const llvm::Function*, Stack> stacks_;
};

}  // namespace

void check_kernel(const llvm::Function& entry, const std::string& name, const llvm::Module& debug,
                  const SourceFolders& folders) {
  KernelRules(name, debug, folders).check(entry);
}

void check_file(const llvm::Module& debug) {
  if (!debug.getModuleInlineAsm().empty())
    throw std::runtime_error(debug.getSourceFileName() + ": assembly outside of functions; write it as C++");
}

}  // namespace coppice::kernelgen
