// Describes this build and this machine, as far as the operating system tells.
#include "apps/cli/system_info.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "apps/cli/assets.h"
#include "gpu/cuda/primitives.h"

#ifndef COPPICE_VERSION
#define COPPICE_VERSION "unversioned"
#endif
#ifndef COPPICE_BUILD_TYPE
#define COPPICE_BUILD_TYPE "unknown build type"
#endif

namespace coppice::cli {
namespace {

namespace fs = std::filesystem;

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

Library open_library(const char* name) { return Library(dlopen(name, RTLD_LAZY | RTLD_LOCAL)); }

std::string compiler_text() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

std::string cpu_text() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string system_text() {
  utsname system{};
  if (uname(&system) != 0) return "unknown";
  return fmt::format("{} {} {}", system.sysname, system.release, system.machine);
}

// The driver's own library answers, without a CUDA toolkit and without starting a context.
std::string cuda_text() {
  const Library driver = open_library("libcuda.so.1");
  if (!driver) return "absent (no libcuda.so.1)";
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(driver.get(), "cuDriverGetVersion"));
  int version = 0;
  if (!get_version || get_version(&version) != 0) return "libcuda.so.1 is there but does not answer";
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

std::string egl_text() { return open_library("libEGL.so.1") ? "present" : "absent (no libEGL.so.1)"; }

std::string ffmpeg_text() {
  const std::optional<fs::path> program = find_program("ffmpeg");
  return program ? program->string() : "absent (no film is written)";
}

std::string assets_text() {
  const std::optional<fs::path> folder = find_assets_folder();
  return folder ? folder->string() : "absent";
}

}  // namespace

std::string version_text() { return "coppice " COPPICE_VERSION; }

std::optional<fs::path> find_program(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable ? variable : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code status;
    if (fs::is_regular_file(candidate, status) && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::vector<InfoLine> system_info() {
  return {
      {"version", COPPICE_VERSION},
      {"build", COPPICE_BUILD_TYPE},
      {"compiler", compiler_text()},
      {"system", system_text()},
      {"glibc", gnu_get_libc_version()},
      {"CPU", cpu_text()},
      {"threads", fmt::format("{}", std::thread::hardware_concurrency()), true},
      {"CUDA driver", cuda_text()},
      {"CUB", cuda::describe_cub()},
      {"EGL", egl_text()},
      {"ffmpeg", ffmpeg_text()},
      {"assets", assets_text()},
  };
}

}  // namespace coppice::cli
