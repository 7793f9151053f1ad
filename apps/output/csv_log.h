// A table of per-frame numbers as CSV: the header once, then one row per frame.
//
// Rows are appended, each by one write() and an fdatasync(), instead of rewriting the file and renaming it: a
// run of n frames then writes O(n) bytes and not O(n^2), and the file can be followed (`tail -f`) while the
// run goes on. A killed process leaves whole rows, because a row is one system call; a row that was cut short
// (a full disk) is truncated away before the error is reported. The other outputs, which nobody reads while
// they grow, are written by AtomicFile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/output/growing_file.h"

namespace coppice {

class CsvLog {
 public:
  // Creates `path`, or empties it, and writes the header. Column names hold no comma, quote or line break.
  // Throws Error(kIo).
  CsvLog(std::string path, std::vector<std::string> columns);
  // Goes on with a table behind its first `rows` rows. Errors: kIo, when it has fewer, or other columns.
  CsvLog(std::string path, std::vector<std::string> columns, int64_t rows);

  // One value per column, written with the fewest digits that read back as the same double. Blocks until the
  // row is on disk. Throws Error(kIo), which names the file and the reason; the rows before stay.
  void write_row(std::span<const double> values);
  // Throws Error(kIo) when the table was removed, moved or replaced, so that nobody would find the rows.
  void require_in_place() const { file_->require_in_place(); }

 private:
  void append_line(const std::string& line);

  std::optional<GrowingFile> file_;
  size_t n_columns_;
  int64_t size_bytes_ = 0;  // of the whole rows
};

}  // namespace coppice
