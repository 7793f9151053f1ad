// Files that are nothing yet: a signal that ends the program at once (core/stop_signals.h) removes them.
//
//   UnfinishedFile unfinished(path);     // before the file is there, so that no moment is left out
//   create(path), unfinished.note_made();
//   ...
//   unfinished = {};                     // it is whole, or has another name now, or is gone
//
// At most 64 are known at a time, with paths of less than 4096 bytes; what is beyond that is not removed.
// Thread-compatible.
#pragma once

#include <string_view>
#include <utility>

namespace coppice {

class UnfinishedFile {
 public:
  UnfinishedFile() = default;
  // The path is one of this process, whose folder does not change while it is known.
  explicit UnfinishedFile(std::string_view path);
  UnfinishedFile(UnfinishedFile&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
  UnfinishedFile& operator=(UnfinishedFile&& other) noexcept {
    forget();
    slot_ = std::exchange(other.slot_, -1);
    return *this;
  }
  ~UnfinishedFile() { forget(); }

  // Says that the file is there, or that it will not be: remove_all() waits for that.
  void note_made() const;
  void forget();

  // Stops the calling thread for ever where remove_all() is under way: what fails then is no error.
  static void stop_at_end();
  // Removes all that this process has, and lets no thread make another one. It is for a signal handler that
  // ends the process then.
  static void remove_all();

 private:
  int slot_ = -1;  // -1: it stands for no file
};

}  // namespace coppice
