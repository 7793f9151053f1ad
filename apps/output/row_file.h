// A file of rows, which is laid out before it is written: so several processes can write it, each its rows.
//
// Sections follow one another: a text, and then rows of one size. Who writes gives its own rows of each
// section, and all give the same of everything else.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/file_part.h"

namespace coppice {

// A writer has `n` of a file's rows, from row `first` on.
struct RowShare {
  uint64_t first = 0, n = 0, n_all = 0;
};

struct RowSection {
  std::string before;  // stands in front of the rows
  uint64_t row_bytes = 0;
  // Calls write(bytes) with the writer's rows, one behind the other, in pieces of any size.
  using Write = std::function<void(std::span<const std::byte> bytes)>;
  std::function<void(const Write& write)> rows;
};

struct RowFile {
  RowShare share;  // of each section's rows
  std::vector<RowSection> sections;
  std::string end;

  uint64_t size_bytes() const;
};

// Writes a file whose rows are all the writer's, from its beginning to its end: that may be a pipe.
void write_rows(const RowFile& rows, AtomicFile& file);
// Writes the writer's rows where they belong; one of the writers adds the texts around them.
void write_rows(const RowFile& rows, FilePart& file, bool adds_texts);

// Gives rows as a section has them; append(i, bytes) adds the bytes of the writer's row i, counted from its
// first.
template <class Append>
std::function<void(const RowSection::Write&)> rows_one_by_one(uint64_t n, Append append) {
  return [n, append](const RowSection::Write& write) {
    constexpr size_t kPieceBytes = size_t{1} << 20;
    std::string bytes;
    const auto flush = [&] {
      if (!bytes.empty()) write(std::as_bytes(std::span(bytes)));
      bytes.clear();
    };
    for (uint64_t i = 0; i < n; ++i) {
      append(static_cast<int64_t>(i), bytes);
      if (bytes.size() >= kPieceBytes) flush();
    }
    flush();
  };
}

}  // namespace coppice
