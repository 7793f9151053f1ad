// Appends whole CSV rows.
#include "apps/output/csv_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>

#include "core/check.h"
#include "core/error.h"
#include "core/read_file.h"

namespace coppice {

namespace {

std::string header_of(const std::vector<std::string>& columns) {
  return fmt::format("{}\n", fmt::join(columns, ","));
}

// Returns the bytes of the header and so many rows.
int64_t bytes_of(const std::string& path, const std::vector<std::string>& columns, int64_t rows) {
  std::string text;
  if (const int problem = read_file(path, text, size_t{1} << 32); problem != 0)
    throw Error(ErrorCode::kIo,
                fmt::format("cannot read the table: {}", why_unread(problem, size_t{1} << 32)), {path});
  if (!text.starts_with(header_of(columns)))
    throw Error(ErrorCode::kIo, "the table has other columns than this run writes", {path});
  size_t end = 0;
  for (int64_t line = 0; line <= rows; ++line) {
    end = text.find('\n', end);
    if (end == std::string::npos)
      throw Error(ErrorCode::kIo, fmt::format("the table has fewer rows than {}", rows), {path});
    ++end;
  }
  return static_cast<int64_t>(end);
}

}  // namespace

CsvLog::CsvLog(std::string path, std::vector<std::string> columns, int64_t rows)
    : n_columns_(columns.size()), size_bytes_(bytes_of(path, columns, rows)) {
  file_.emplace(std::move(path), "table", GrowingFile::Kept{size_bytes_}, O_APPEND);
}

CsvLog::CsvLog(std::string path, std::vector<std::string> columns) : n_columns_(columns.size()) {
  file_.emplace(std::move(path), "table", O_APPEND);
  COPPICE_CHECK(!columns.empty());
  for (const std::string& column : columns) {
    COPPICE_CHECK(column.find_first_of(",\"\r\n") == std::string::npos, "column '{}'", column);
  }
  append_line(header_of(columns));
}

void CsvLog::write_row(std::span<const double> values) {
  COPPICE_CHECK(values.size() == n_columns_, "{}", file_->path());
  require_in_place();
  file_->cut();
  append_line(fmt::format("{}\n", fmt::join(values, ",")));
}

void CsvLog::append_line(const std::string& line) {
  ssize_t written = 0;
  do {
    written = ::write(file_->descriptor(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  const int64_t expected = static_cast<int64_t>(line.size());
  if (written != expected) {
    // A short count without an error is what a disk gives that fills up in the middle of the row.
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(file_->descriptor(), size_bytes_) != 0)
      file_->fail_to_take_back("a row", errno);
    file_->fail_to_write(reason);
  }
  file_->sync();
  size_bytes_ += expected;
}

}  // namespace coppice
