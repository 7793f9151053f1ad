// Tells which sanitizer this program was built with, and what that means for kernels. No LLVM in here.
//
// Kernel bitcode is compiled with the same -fsanitize= (cmake/CoppiceKernels.cmake); the specializer
// instruments it (sanitizer_passes.cc), calls go to the program's own runtime library, and reports get the
// kernels' names and lines (sanitizer_report.cc, built with a sanitizer only).
#pragma once
#include <cstdint>
#include <string>

namespace coppice::jit {

enum class Sanitizer : uint32_t { kNone, kAddress, kThread };
#if defined(__SANITIZE_ADDRESS__)
inline constexpr Sanitizer kSanitizer = Sanitizer::kAddress;
#elif defined(__SANITIZE_THREAD__)
inline constexpr Sanitizer kSanitizer = Sanitizer::kThread;
#else
inline constexpr Sanitizer kSanitizer = Sanitizer::kNone;
#endif

// A sanitizer knows no function of code that was made at run time. After its report these lines follow, one
// for each frame that is a kernel's:
//     coppice: kernel heat.diffuse at /src/heat.kernels.cc:12
// `object` is the ELF file that `entry`, the function of that name, was loaded from. Thread-safe.
void report_lines_of(const std::string& object, const std::string& entry_name, uintptr_t entry,
                     const std::string& id);
void forget_lines_of(uintptr_t entry);

}  // namespace coppice::jit
