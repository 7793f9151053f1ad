// Appends whole CSV rows.
#include "apps/output/csv_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>

#include "apps/output/io_error.h"
#include "apps/output/same_file.h"
#include "core/check.h"
#include "core/error.h"

namespace coppice {

CsvLog::CsvLog(std::string path, std::vector<std::string> columns)
    : path_(std::move(path)), n_columns_(columns.size()) {
  COPPICE_CHECK(!columns.empty());
  for (const std::string& column : columns) {
    COPPICE_CHECK(column.find_first_of(",\"\r\n") == std::string::npos, "column '{}'", column);
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_io_error("cannot create the table", path_, errno);
  try {
    append_line(fmt::format("{}\n", fmt::join(columns, ",")));
  } catch (...) {
    ::close(descriptor_);  // the destructor does not run for a constructor that throws
    throw;
  }
}

CsvLog::~CsvLog() { ::close(descriptor_); }

void CsvLog::write_row(std::span<const double> values) {
  COPPICE_CHECK(values.size() == n_columns_, "{}", path_);
  require_in_place();
  append_line(fmt::format("{}\n", fmt::join(values, ",")));
}

void CsvLog::require_in_place() const {
  if (is_open_file_at(descriptor_, path_)) return;
  throw Error(ErrorCode::kIo, "the table is gone: it was removed or replaced while the run wrote it",
              {path_});
}

void CsvLog::append_line(const std::string& line) {
  ssize_t written = 0;
  do {
    written = ::write(descriptor_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  const int64_t expected = static_cast<int64_t>(line.size());
  if (written != expected) {
    // A short count without an error is what a disk gives that fills up in the middle of the row.
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(descriptor_, size_bytes_) != 0) {
      throw_io_error("cannot take back half a row of the table", path_, errno);
    }
    throw_io_error("cannot write the table", path_, reason);
  }
  // EINVAL: not a file that can be synchronised, a pipe for one.
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL)
    throw_io_error("cannot write the table", path_, errno);
  size_bytes_ += expected;
}

}  // namespace coppice
