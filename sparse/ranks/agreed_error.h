// An Error that all ranks have been told of, so that they go on together behind it: the one rank's own there,
// kUnavailable with its number elsewhere. Any other Error may be one rank's alone, while the others wait.
#pragma once
#include "core/error.h"

namespace coppice {

class AgreedError : public Error {
 public:
  explicit AgreedError(const Error& error) : Error(error) {}
};

}  // namespace coppice
