// Appends whole CSV rows.
#include "apps/output/csv_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>

#include "core/check.h"

namespace coppice {

CsvLog::CsvLog(std::string path, std::vector<std::string> columns)
    : file_(std::move(path), "table", O_APPEND), n_columns_(columns.size()) {
  COPPICE_CHECK(!columns.empty());
  for (const std::string& column : columns) {
    COPPICE_CHECK(column.find_first_of(",\"\r\n") == std::string::npos, "column '{}'", column);
  }
  append_line(fmt::format("{}\n", fmt::join(columns, ",")));
}

void CsvLog::write_row(std::span<const double> values) {
  COPPICE_CHECK(values.size() == n_columns_, "{}", file_.path());
  require_in_place();
  append_line(fmt::format("{}\n", fmt::join(values, ",")));
}

void CsvLog::append_line(const std::string& line) {
  ssize_t written = 0;
  do {
    written = ::write(file_.descriptor(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  const int64_t expected = static_cast<int64_t>(line.size());
  if (written != expected) {
    // A short count without an error is what a disk gives that fills up in the middle of the row.
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(file_.descriptor(), size_bytes_) != 0)
      file_.fail_to_take_back("a row", errno);
    file_.fail_to_write(reason);
  }
  file_.sync();
  size_bytes_ += expected;
}

}  // namespace coppice
