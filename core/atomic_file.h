// A file that appears whole or not at all: written beside its final name, flushed to disk, then renamed.
//
//   AtomicFile file("frames/0001.ply");
//   file.write(header);
//   file.write(std::as_bytes(std::span(positions)));
//   file.commit();                              // without it, the destructor removes the temporary
//
// A library that writes by name itself is given temporary_path() instead of write(); then comes commit().
// Whatever fails throws Error(kIo) with the path and the reason and leaves no temporary behind; a file that
// was there before stays as it was until commit() replaces it. Not thread-safe; the folder must exist.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace coppice {

class AtomicFile {
 public:
  // Creates the temporary, so that a missing or unwritable folder is reported before the work is done.
  explicit AtomicFile(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  // File to disk, rename, folder to disk. Once, and nothing is written afterwards.
  void commit();

  const std::string& path() const { return path_; }
  // "<path>.tmp.<process>.<number>", unique among threads and processes.
  const std::string& temporary_path() const { return temporary_path_; }

 private:
  void flush();
  void write_through(const char* data, size_t size_bytes);
  [[noreturn]] void fail(const char* what, int error_number);
  void discard() noexcept;

  std::string path_;
  std::string temporary_path_;  // empty: committed, moved from, or removed
  std::string buffer_;
  int descriptor_ = -1;
  bool has_written_ = false;
};

}  // namespace coppice
