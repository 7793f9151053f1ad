// Words for failed writes.
#include "apps/output/io_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace coppice {

void throw_io_error(const std::string& what, const std::string& path, int error_number) {
  const std::string reason = std::generic_category().message(error_number);
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT;
  throw Error(ErrorCode::kIo, fmt::format("{}: {}{}", what, is_full ? "disk full: " : "", reason), {path});
}

}  // namespace coppice
