// Knows which bitcode stands for a kernel file: the program's own, or one that took its place while the
// program runs.
//
// Thread-safe. A version is kept until the program ends (it has the size of the kernel file's bitcode, up
// to 1 MB): compilers may be at work with it. Code that keeps anything that was made of a version compares
// kernel_generation() with what it was then.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/codegen_options.h"
#include "gpu/jit/bitcode.h"
#include "gpu/kernel_builder.h"

namespace coppice {

struct KernelVersion {
  const KernelBitcode* file = nullptr;  // the program's own
  KernelBitcode code;                   // of `bytes`; otherwise as the program's own
  std::vector<std::byte> bytes;
  // Holds, by a kernel's name, what its constant in the generated header says of the program's own.
  struct Facts {
    bool active_only = false;
    uint32_t effects = 0;
    std::string contents;  // KernelContents::hash()
    bool operator==(const Facts&) const = default;
  };
  std::map<std::string, Facts, std::less<>> facts;
  // This names the oldest version in which kernels are as they are in this one, whose machine code there
  // may be already: the same but for its lines.
  std::map<std::string, const KernelBitcode*, std::less<>> as_before;
};

// Returns whether lines are part of kernels' code, so that a kernel that has moved is another one.
inline bool lines_count(const CodegenOptions& options) { return options.step || options.checks; }

// Makes a version of a file. Errors: kCompile where it may not take the place of the program's own, with
// the reason: "kernel heat.diffuse: its arguments changed; build the program again".
const KernelVersion& make_kernel_version(const KernelBitcode& file, BuiltKernels built);

// Returns what is known of a file's kernels, of its own and of versions, as lines of an interface.
std::string known_kernels(const KernelBitcode& file);

// Returns a number that changes when any file gets another version. Cost: one load.
uint64_t kernel_generation();
// Returns the version that stands for a file; null: the program's own.
const KernelVersion* current_kernel_version(const KernelBitcode& file);
// Returns whether kernels would be what they are now, if `version` stood for the file; lines may count or
// not.
bool stands(const KernelBitcode& file, const KernelVersion& version, bool with_lines);
// Returns the version that stood for it before `version`, and was not rejected; null: the program's own.
const KernelVersion* kernel_version_before(const KernelBitcode& file, const KernelVersion& version);
void install_kernel_version(const KernelBitcode& file, const KernelVersion& version);
// Is called when a device refused it: the one before stands for the file again, and the reason waits for
// whoever asks. A second call does nothing.
void reject_kernel_version(const KernelBitcode& file, const KernelVersion& version, const std::string& why);
struct RejectedKernels {
  const KernelBitcode* file;
  std::string why;
};
std::vector<RejectedKernels> take_rejected_kernels();

// Keep the files that something was launched of and that have a recipe, in the order in which they were
// first used.
void note_kernel_file(const KernelBitcode& file);
std::vector<const KernelBitcode*> noted_kernel_files();

}  // namespace coppice
