// The specializer: kernel bitcode + constants -> machine code for x86-64, or PTX for NVIDIA GPUs.
//
// Links the kernel with its target's device intrinsics, writes constants (trees' layouts, field bindings)
// into the module, keeps one entry point, runs LLVM's O3 pipeline and emits. Thread-safe: every call has its
// own LLVM context. Errors: coppice::Error kCompile, with the kernel's name and LLVM's words; unsupported
// targets and code (validate.h) are refused before LLVM's back ends see them, since those abort the process
// on some inputs. kInvalidArgument for a handle that is used against its contract, with the kernel's line
// (misuse.cc). Cost: 20 to 60 ms per kernel on one core.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/codegen_options.h"
#include "gpu/jit/bitcode.h"

namespace coppice::jit {

// This is a global that the kernel declares `extern const` and the specializer defines.
struct ConstantGlobal {
  std::string_view name;
  std::span<const std::byte> bytes;  // the image of a prefix; the rest is zero
};

struct SpecializeRequest {
  std::string id;  // "file.kernel", for messages and symbol names
  const KernelBitcode* file = nullptr;
  std::string entry;  // extern "C" function to keep
  std::vector<ConstantGlobal> constants;
  CodegenOptions options;  // `checks` is baked as the kernel's `extern const uint32_t coppice_debug_checks`
  // This code only finds out how much room a launch needs, `coppice_makes_room` in the kernel: whatever
  // the kernel's author stores anywhere but in the kernel's own variables is left out.
  bool makes_room = false;
  // Its launches have a table of the memory that they may reach by pointers (gpu/memory_uses.h): what its
  // author reads and writes is compared with it.
  bool guards_memory = false;
  // Some of its arguments are read where slots have them (sparse/slot.h): what pointers there lead to is not
  // in that table.
  bool has_slots = false;
  uint32_t shared_bytes = 0;  // that launches will ask for; means nothing to the compilers
  // Returns what is wrong with a use of handle `binding` that code has left (coppice_misuse() in
  // gpu/device_intrinsics.h); nothing where it is fine. Called from the thread that compiles.
  std::function<std::string(uint32_t what, uint32_t binding, uint32_t given)> why_misused;
};

// Has LLVM make, once in the process, the static objects that it makes in its functions while it compiles:
// what exit() destroys first when a thread calls it that is neither main's nor ours (core/process_end.h).
// Cost: some 10 ms, the first time. Any number of threads.
void make_llvms_static_objects();

// Describes the machine this process runs on, as LLVM names it: part of every cache key.
struct HostTarget {
  std::string cpu;       // "znver4"
  std::string features;  // "+avx2,+fma,..."
};
const HostTarget& host_target();
// Returns the version of the LLVM that runs, which need not be the one that this was compiled with:
// "19.1.7".
std::string_view llvm_version();
// Returns the version and the build (build_identity.h) of the library that holds LLVM; of the program
// where it is linked into that.
const std::string& llvm_identity();

// Returns an x86-64 ELF object that defines `request.entry`.
std::string compile_x86(const SpecializeRequest& request);

struct PtxTarget {
  int sm = 75;  // 75, 80, 86, 87, 89 or 90
  // If false, it compiles as a build without a CUDA toolkit, where kernels that call math functions are
  // refused.
  bool libdevice = true;
};
// Returns the newest target that LLVM 19 knows for GPUs of a compute capability, 10 times major plus
// minor: sm_90's PTX for all newer ones. Errors: kUnavailable for GPUs older than sm_75.
PtxTarget newest_ptx_target(int compute_capability);
// Returns whether the build embedded NVIDIA's libdevice, the math functions of GPUs.
bool has_libdevice();
// Returns PTX text with one kernel `file_kernel(LaunchBlock)`: a thread block of kGpuThreadsPerBlock threads
// per item for cell and block loops.
std::string compile_ptx(const SpecializeRequest& request, PtxTarget target);
// Calls take(sm, text) with PTX for each of `targets`, all made of one module that is optimised for the last
// one, and take_error(sm, message) for one that the kernel cannot be compiled for. It takes little longer
// than for one target. The text differs from compile_ptx()'s where the optimiser asks for the target; no
// kernel here makes it do so.
void compile_ptx_of_each(const SpecializeRequest& request, std::span<const PtxTarget> targets,
                         const std::function<void(int sm, std::string text)>& take,
                         const std::function<void(int sm, std::string message)>& take_error);
// Returns the same text for at least so many thread blocks on a multiprocessor: the assembler gives a thread
// as many registers as that leaves. Text that compile_ptx() made asks for one block.
std::string with_blocks_per_multiprocessor(std::string ptx, int blocks);

}  // namespace coppice::jit
