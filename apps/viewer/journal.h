// The journal of a session: which command came behind which step. A text file, one command a line,
// that a person can read and change:
//
//   coppice journal 1
//   0 set gravity [0.0, -3.0, 0.0]
//   96 step 1
//   97 reset
//   40 kernels 4f2a65e09cb1d38706f1c3ab55d80e12 heat.kernels.cc
//   3 push from 0.5 0.5 0.5 to 0.6 0.5 0.5 radius 0.1 velocity 2 0 0      (hand_text.h has all of this kind)
//
// Steps are counted from the beginning, or the last reset. Done again on the same scene, device and number of
// threads it gives the same states; with --deterministic on the cpu device the same bits on any number of
// threads. But not where kernels were taken over (with the hash of their bitcode): a replay has the program's
// own, and refuses that line.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/viewer/command.h"

namespace coppice::viewer {

struct JournalEntry {
  uint64_t steps = 0;  // made before
  Command command;     // one that changes_simulation()
};

std::string journal_text(const std::vector<JournalEntry>& entries);
// Errors: kUsage with file and line for what cannot be understood.
std::vector<JournalEntry> parse_journal(std::string_view text, const std::string& file_name);

// Errors: kIo; kUsage when it is `written`, the file that a new journal goes into: it would be
// lost where that one ends early.
std::vector<JournalEntry> read_journal(const std::filesystem::path& file,
                                       const std::filesystem::path& written = {});

// Writes a journal while the session goes on: what was done is in the file even when the program is
// killed. Without a file name it does nothing. Used by one thread at a time.
class JournalWriter {
 public:
  explicit JournalWriter(std::filesystem::path file);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;
  // Empties a file that is there; a pipe, a device or a descriptor (core/output_target.h) is written to
  // as it is. The first add() does this, too. Errors: kIo.
  void begin();
  // Errors: kIo.
  void add(const JournalEntry& entry);

 private:
  void append(std::string_view line);

  const std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace coppice::viewer
