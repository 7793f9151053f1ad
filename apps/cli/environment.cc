// The list of environment variables (see environment.h).
#include "apps/cli/environment.h"

namespace coppice::cli {
namespace {

constexpr EnvironmentVariable kVariables[] = {
    {"COPPICE_LOG", "debug|info|warning|error|off", "the least important lines that are logged"},
    {"COPPICE_ASSETS", "DIR", "scenes and meshes that come with the program"},
    {"COPPICE_CACHE_DIR", "DIR", "compiled kernels"},
    {"COPPICE_CACHE_MAX_MB", "N", "how large that folder may get; 0 keeps nothing"},
    {"COPPICE_DUMP", "DIR", "write every kernel's LLVM IR, assembly and PTX there"},
    {"COPPICE_PERF", "DIR", "write there what Linux's perf must know of kernels"},
    {"COPPICE_PTX_FOLDER", "DIR", "write every kernel's PTX there, for three generations of GPUs"},
    {"COPPICE_DEBUG", "step,checks", "compile kernels for a debugger, or with checks"},
    {"COPPICE_SIMT_SEED", "N", "the order in which --device simt runs things"},
    {"COPPICE_GPU_PROFILE", "DIR", "on an NVIDIA GPU, write every kernel's time and resources there"},
    {"COPPICE_PROFILE", "1", "log the time of every kernel at the end"},
};

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

}  // namespace coppice::cli
