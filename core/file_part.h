// A part of a file that an AtomicFile makes, here or in another process: several fill one file so.
//
//   AtomicFile file("frames/0001.ply");                      // one process makes it
//   file.set_size(n_bytes);
//   FilePart part(file.path(), file.temporary_path());       // each that has a part, while `file` lives
//   part.write(offset, rows);
//   part.finish();
//   file.commit();                                           // when all have finished
//
// Parts that overlap have no order. Whatever fails throws Error(kIo) with the path and the reason. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace coppice {

class FilePart {
 public:
  // Opens the temporary, which is there; `path` names the file in messages.
  FilePart(std::string path, const std::string& temporary_path);
  FilePart(const FilePart&) = delete;
  FilePart& operator=(const FilePart&) = delete;
  ~FilePart();

  void write(uint64_t offset_bytes, std::span<const std::byte> bytes);
  // Brings what was written to disk: where others make the file by way of a network, they see it then. It is
  // called once, and nothing is written afterwards.
  void finish();

 private:
  [[noreturn]] void fail(const char* what, int error_number) const;

  std::string path_;
  int descriptor_ = -1;    // -1: finished
  uint64_t position_ = 0;  // where the descriptor stands
};

}  // namespace coppice
