// A file that appears whole or not at all: written beside its final name, flushed to disk, then renamed.
//
//   AtomicFile file("frames/0001.ply");
//   file.write(header);
//   file.write(std::as_bytes(std::span(positions)));
//   file.commit();                              // without it, the destructor removes the temporary
//
// A library that writes by name itself is given temporary_path() instead of write(); then comes commit(). So
// are other processes that write parts of it (core/file_part.h).
// Whatever fails throws Error(kIo) with the path and the reason and leaves no temporary behind; a file that
// was there before stays as it was until commit() replaces it. Links are followed. What is no regular file,
// such as a pipe or a device, is not replaced: the bytes go there as they come (see output_target.h for the
// names of descriptors). Not thread-safe; the folder must exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/unfinished_file.h"

namespace coppice {

class AtomicFile {
 public:
  // Creates the temporary, so that a missing or unwritable folder is reported before the work is done. Waits
  // for a reader where the name is a pipe's.
  explicit AtomicFile(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  // Makes the file so long, for those who write parts of it (core/file_part.h) instead of write(). Errors:
  // kIo, also for a stream.
  void set_size(uint64_t size_bytes);

  // Brings the file to disk, renames it, and brings the folder to disk. It is called once, and nothing is
  // written afterwards.
  void commit();

  const std::string& path() const { return path_; }
  // Returns true for a pipe, a device or a descriptor: what is written is there before commit(), and
  // nothing is replaced.
  bool is_stream() const { return is_stream_; }
  // Returns "<path>.tmp.<process>.<number>", unique among threads and processes. Errors: kIo for a stream,
  // which has none.
  const std::string& temporary_path() const;

 private:
  void flush();
  void write_through(std::string_view bytes);
  [[noreturn]] void fail(const char* what, int error_number);
  void discard() noexcept;

  std::string path_;            // as it was named
  std::string target_path_;     // of the file that is replaced, behind the links
  std::string temporary_path_;  // empty: of a stream, committed, moved from, or removed
  UnfinishedFile unfinished_;   // the temporary, which a signal that ends the program removes
  std::string buffer_;
  int descriptor_ = -1;  // -1: committed, moved from, or failed
  bool has_written_ = false;
  bool is_stream_ = false;
};

}  // namespace coppice
