// Loading NVIDIA's driver library (see driver.h).
//
// It is loaded by dlopen: a program that is linked with libcuda.so.1 does not start where there is none.
// RTLD_LOCAL keeps it from getting in the way of a CUDA that the user's program brings along. Its
// functions are found by dlsym with the versioned names, which never change their meaning.
#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.h"
#include "gpu/cuda/driver_error.h"
#include "gpu/cuda/primitives.h"

namespace coppice::cuda {
namespace {

[[noreturn]] void no_driver(const std::string& reason) {
  throw Error(ErrorCode::kUnavailable, "no NVIDIA driver: " + reason);
}

template <class F>
void resolve(void* library, const char* symbol, F*& member) {
  void* const found = ::dlsym(library, symbol);
  if (found == nullptr)
    no_driver(fmt::format("it lacks {}; the driver of CUDA {} or newer is needed", symbol,
                          version_text(kNeededDriverVersion)));
  member = reinterpret_cast<F*>(found);
}

}  // namespace

Driver driver_from_library(const char* name) {
  // The library is never closed: its threads and exit handlers stay.
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    no_driver(why != nullptr ? why : name);
  }
  Driver driver;
  driver.primitives = &cub_primitives();
#define COPPICE_CUDA_RESOLVE(member, symbol, parameters) resolve(library, #symbol, driver.member);
  COPPICE_CUDA_FUNCTIONS(COPPICE_CUDA_RESOLVE)
  COPPICE_CUDA_FIRST_VERSIONS(COPPICE_CUDA_RESOLVE)
#undef COPPICE_CUDA_RESOLVE
  return driver;
}

const Driver& load_driver() {
  // This is a function's static: loading is tried again after a failure, since a driver may have come
  // meanwhile.
  static const Driver loaded = [] {
    Driver driver = driver_from_library("libcuda.so.1");
    initialize(driver);
    return driver;
  }();
  return loaded;
}

}  // namespace coppice::cuda
