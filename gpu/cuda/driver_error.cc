// Turns the driver's answers into errors of ours (see driver_error.h).
#include "gpu/cuda/driver_error.h"

#include <fmt/format.h>

#include <algorithm>

namespace coppice::cuda {
namespace {

ErrorCode code_of(Result result) {
  if (result == Result::kOutOfMemory) return ErrorCode::kOutOfMemory;
  if (is_fatal(result)) return ErrorCode::kUnavailable;
  switch (result) {
    case Result::kStubLibrary:
    case Result::kNotInitialized:
    case Result::kNoDevice:
    case Result::kInvalidDevice:
    case Result::kJitCompilerNotFound:
    case Result::kUnsupportedPtxVersion:
    case Result::kJitCompilationDisabled:
    case Result::kNotSupported:
    case Result::kSystemNotReady:
    case Result::kSystemDriverMismatch:
    case Result::kCompatNotSupportedOnDevice:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

// Returns the word behind `directive` in PTX; empty when there is none.
std::string_view word_after(std::string_view text, std::string_view directive) {
  const size_t at = text.find(directive);
  if (at == text.npos) return {};
  text.remove_prefix(at + directive.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_of(" ,\n\r\t"));
}

// Returns the first line of the assembler's log that tells of an error, else its first line.
std::string_view error_line(std::string_view log) {
  std::string_view first;
  while (!log.empty()) {
    const size_t end = std::min(log.find_first_of("\n\r"), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.find("error") != line.npos || line.find("fatal") != line.npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

bool is_fatal(Result result) {
  switch (result) {
    case Result::kDeinitialized:
    case Result::kDeviceUnavailable:
    case Result::kEccUncorrectable:
    case Result::kNvlinkUncorrectable:
    case Result::kContained:
    case Result::kIllegalAddress:
    case Result::kLaunchTimeout:
    case Result::kContextIsDestroyed:
    case Result::kAssert:
    case Result::kHardwareStackError:
    case Result::kIllegalInstruction:
    case Result::kMisalignedAddress:
    case Result::kInvalidAddressSpace:
    case Result::kInvalidPc:
    case Result::kLaunchFailed:
    case Result::kTensorMemoryLeak:
    case Result::kUnknown:
      return true;
    default:
      return false;
  }
}

std::string describe(const Driver& driver, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  // A driver does not know the numbers of newer ones.
  if (driver.get_error_name(result, &name) != Result::kSuccess || name == nullptr)
    return fmt::format("error {}", static_cast<uint32_t>(result));
  if (driver.get_error_string(result, &text) != Result::kSuccess || text == nullptr) return name;
  return fmt::format("{} ({})", text, name);
}

Error driver_error(const Driver& driver, Result result, std::string_view what) {
  return Error(code_of(result), fmt::format("device cuda: {}: {}", what, describe(driver, result)));
}

Error refused_ptx(const Driver& driver, Result result, std::string_view kernel, std::string_view ptx,
                  std::string_view log) {
  const std::string what = fmt::format("loading kernel {}", kernel);
  if (result == Result::kUnsupportedPtxVersion) {
    int version = 0;
    driver.driver_get_version(&version);
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("device cuda: {}: the NVIDIA driver is too old: it is of CUDA {}, and PTX {} needs a "
                    "newer one",
                    what, version_text(version), word_after(ptx, ".version")));
  }
  const bool of_the_text = result == Result::kInvalidPtx || result == Result::kInvalidImage ||
                           result == Result::kNoBinaryForGpu || result == Result::kInvalidSource ||
                           result == Result::kNotFound;
  if (!of_the_text) return driver_error(driver, result, what);
  const std::string_view line = error_line(log);
  return Error(ErrorCode::kCompile, fmt::format("kernel {}: the driver refuses its PTX: {}", kernel,
                                                line.empty() ? describe(driver, result) : std::string(line)));
}

void initialize(const Driver& driver) {
  int version = 0;
  if (driver.driver_get_version(&version) == Result::kSuccess && version > 0 &&
      version < kNeededDriverVersion) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the NVIDIA driver is too old: it is of CUDA {}, and {} or newer is needed",
                            version_text(version), version_text(kNeededDriverVersion)));
  }
  const Result result = driver.init(0);
  if (result == Result::kSuccess) return;
  throw Error(ErrorCode::kUnavailable, "no NVIDIA driver: cuInit: " + describe(driver, result));
}

}  // namespace coppice::cuda
