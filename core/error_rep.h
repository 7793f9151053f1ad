// Holds what copies of an Error share; private to error.cc and async_value.cc, which keeps it in the
// value's one word.
#pragma once

#include <string>

#include "core/error.h"

namespace coppice {

struct Error::Rep final : RefCountedBase<Error::Rep> {
  Rep(ErrorCode code, std::string message, InputLocation location, std::vector<std::string> path);

  const ErrorCode code;
  const std::string message;
  const InputLocation location;
  const std::vector<std::string> path;
  const std::string what;
};

}  // namespace coppice
