// COPPICE_SIMT_SEED (see environment.h).
#include "gpu/simt/environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "core/error.h"

namespace coppice::simt {

Options options_from_environment() {
  Options options;
  const char* text = std::getenv("COPPICE_SIMT_SEED");
  if (text == nullptr) return options;
  const std::string_view digits = text;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), options.seed);
  if (error != std::errc() || end != digits.end())
    throw Error(ErrorCode::kUsage,
                fmt::format("COPPICE_SIMT_SEED: '{}' is not a seed; expected a number from 0 to {}", digits,
                            UINT64_MAX));
  return options;
}

}  // namespace coppice::simt
