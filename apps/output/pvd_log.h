// The files of a series with their times, as a collection (.pvd) that ParaView opens.
//
// It can be opened while the series grows: each entry is written by one pwrite() over the closing tags, which
// it ends with, and an fdatasync(). One that was cut short (a full disk) is taken back before the error is
// reported, so that the collection stays whole; n entries cost O(n) bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/output/growing_file.h"

namespace coppice {

class PvdLog {
 public:
  // Creates `path`, or empties it, as a collection of nothing. Throws Error(kIo).
  explicit PvdLog(std::string path);
  // Goes on with a collection behind its first `entries`. Errors: kIo, when it has fewer.
  PvdLog(std::string path, int64_t entries);

  // Adds a file of the series, by its name as seen from the collection's folder. Blocks until the entry is on
  // disk. Throws Error(kIo), which names the collection and the reason; the entries before stay.
  void add(const std::string& file_name, double time_s);
  // Throws Error(kIo) when the collection was removed, moved or replaced, so that nobody would find it.
  void require_in_place() const { file_->require_in_place(); }

 private:
  void write_at_end(const std::string& text);

  std::optional<GrowingFile> file_;
  int64_t size_bytes_ = 0;  // without the closing tags
};

}  // namespace coppice
