// Puts texts and rows where they belong (see row_file.h).
#include "apps/output/row_file.h"

#include "core/check.h"

namespace coppice {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

uint64_t RowFile::size_bytes() const {
  uint64_t sum = end.size();
  for (const RowSection& section : sections) sum += section.before.size() + share.n_all * section.row_bytes;
  return sum;
}

void write_rows(const RowFile& rows, AtomicFile& file) {
  COPPICE_CHECK(rows.share.n == rows.share.n_all, "{} of {} rows", rows.share.n, rows.share.n_all);
  for (const RowSection& section : rows.sections) {
    file.write(section.before);
    section.rows([&](std::span<const std::byte> bytes) { file.write(bytes); });
  }
  file.write(rows.end);
}

void write_rows(const RowFile& rows, FilePart& file, bool adds_texts) {
  uint64_t at = 0;  // of the section
  for (const RowSection& section : rows.sections) {
    if (adds_texts) file.write(at, bytes_of(section.before));
    at += section.before.size();
    uint64_t own = at + rows.share.first * section.row_bytes;
    const uint64_t own_end = own + rows.share.n * section.row_bytes;
    section.rows([&](std::span<const std::byte> bytes) {
      file.write(own, bytes);
      own += bytes.size();
    });
    COPPICE_CHECK(own == own_end, "{} bytes too many", own - own_end);
    at += rows.share.n_all * section.row_bytes;
  }
  if (adds_texts) file.write(at, bytes_of(rows.end));
}

}  // namespace coppice
