// A file that grows while a run goes on, under its final name: what a table and a collection share.
//
// It can be read meanwhile. Every failure is an Error(kIo) that names the file, what it is and the
// reason.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace coppice {

class GrowingFile {
 public:
  // Creates `path`, or empties it. `what` it is stands in messages: "table". `flags` are further ones of
  // open().
  GrowingFile(std::string path, const char* what, int flags = 0);
  // Goes on with a file behind its first `size_bytes`. All that is behind them stays until cut() takes it
  // back, which comes before anything is written.
  struct Kept {
    int64_t size_bytes;
  };
  void cut();
  GrowingFile(std::string path, const char* what, Kept kept, int flags = 0);
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  ~GrowingFile();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  // Throws when the file was removed, moved or replaced, so that nobody would find what is written.
  void require_in_place() const;
  // Brings what was written to disk.
  void sync() const;
  [[noreturn]] void fail_to_write(int error_number) const;
  // Says that a `part` that was cut short ("a row") cannot be taken back either.
  [[noreturn]] void fail_to_take_back(const char* part, int error_number) const;

 private:
  std::string path_, what_;
  int descriptor_ = -1;
  std::optional<int64_t> kept_bytes_;  // until cut()
};

}  // namespace coppice
