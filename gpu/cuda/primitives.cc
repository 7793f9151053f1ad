// The parallel primitives by CUB, and what is said where there is none (see primitives.h).
#include "gpu/cuda/primitives.h"

#include <fmt/format.h>

#include "gpu/cuda/cub_primitives.h"
#include "gpu/cuda/driver_error.h"

namespace coppice::cuda {
namespace {

#ifdef COPPICE_HAS_CUB

constexpr unsigned kInsufficientDriver = 35;  // cudaErrorInsufficientDriver: also where there is none at all
constexpr unsigned kMemoryAllocation = 2;

unsigned scratch_bytes(const PrimitiveCall& call, size_t* bytes) {
  return static_cast<unsigned>(cub_primitives::scratch_bytes(call, bytes));
}
unsigned run(const PrimitiveCall& call, void* stream, void* scratch, size_t bytes) {
  return static_cast<unsigned>(cub_primitives::run(call, stream, scratch, bytes));
}

// Names the first driver of a CUDA version, as its users know it.
std::string driver_for(int version) {
  if (version / 1000 == 13) return "driver 580 or newer";
  return fmt::format("driver of CUDA {} or newer", version_text(version / 1000 * 1000));
}

Error error(unsigned answer, std::string_view what) {
  const int number = static_cast<int>(answer);
  if (answer == kInsufficientDriver) {
    const int driver = cub_primitives::driver_version();
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("device cuda: {}: built with CUDA {}, which needs NVIDIA's {} for it; {}", what,
                    version_text(cub_primitives::runtime_version()),
                    driver_for(cub_primitives::runtime_version()),
                    driver == 0 ? "there is none here" : "the one here is of CUDA " + version_text(driver)));
  }
  ErrorCode code = is_fatal(static_cast<Result>(answer)) ? ErrorCode::kUnavailable : ErrorCode::kInternal;
  if (answer == kMemoryAllocation) code = ErrorCode::kOutOfMemory;
  return Error(code, fmt::format("device cuda: {}: {} ({})", what, cub_primitives::error_text(number),
                                 cub_primitives::error_name(number)));
}

std::string description() {
  const int version = cub_primitives::runtime_version();
  return fmt::format("of CUDA {}: sorting and scanning need {}, all else works on older ones",
                     version_text(version), driver_for(version));
}

#else

unsigned scratch_bytes(const PrimitiveCall&, size_t*) { return 1; }
unsigned run(const PrimitiveCall&, void*, void*, size_t) { return 1; }
Error error(unsigned, std::string_view what) {
  return Error(
      ErrorCode::kUnavailable,
      fmt::format("device cuda: {}: built without nvcc: a build that finds it (docs/building.md) can "
                  "sort, scan and reduce on a GPU",
                  what));
}
std::string description() { return "absent (built without nvcc)"; }

#endif

}  // namespace

const Primitives& cub_primitives() {
  static const Primitives primitives{scratch_bytes, run, error};
  return primitives;
}

std::string describe_cub() { return description(); }

std::string_view name_of(PrimitiveCall::Kind kind) {
  using Kind = PrimitiveCall::Kind;
  switch (kind) {
    case Kind::kSortByKey:
      return "sorting";
    case Kind::kExclusiveScan:
      return "scanning";
    case Kind::kSum:
      return "summing";
    case Kind::kMax:
      return "finding the maximum";
    case Kind::kSegmentedSum:
      return "summing segments";
    case Kind::kSelectIfFlag:
      return "selecting";
    case Kind::kRunLengthEncode:
      return "encoding runs";
    case Kind::kHistogram:
      return "making a histogram";
    case Kind::kBinStarts:
      return "finding where bins start";
  }
  return "a primitive";
}

}  // namespace coppice::cuda
