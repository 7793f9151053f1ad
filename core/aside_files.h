// Files that have other names for a while, until it is known whether what replaces them succeeds. A signal
// that ends the program at once (core/stop_signals.h) gives them their names back, or, once they are being
// removed, removes the rest.
//
//   AsideFiles earlier;
//   earlier.add("frame_0000.png", "frame_0000.png.tmp.earlier");     // renames it
//   ...
//   earlier.remove();                                                // or put_back(), as does the destructor
//
// At most 8 objects that have files are known to the handler at a time. Thread-compatible.
#pragma once
#include <string>
#include <system_error>
#include <utility>

namespace coppice {

class AsideFiles {
 public:
  AsideFiles() = default;
  AsideFiles(const AsideFiles&) = delete;
  AsideFiles& operator=(const AsideFiles&) = delete;
  ~AsideFiles() { put_back(); }

  // Renames a file. Errors: as rename(2); then it is as it was.
  std::error_code add(const std::string& file, const std::string& aside);
  // Gives all files their names again, over what has these now. One for which that fails stays as it is.
  void put_back();
  // Removes all. Returns the first file for which that failed and why, or an empty name.
  std::pair<std::string, std::error_code> remove();

  // Does what is owed to all files of this process. It is for a signal handler that ends the process then,
  // and that has called UnfinishedFile::remove_all().
  static void settle_all();

 private:
  struct Table;
  void forget();
  Table* table_ = nullptr;
};

}  // namespace coppice
