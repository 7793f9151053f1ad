// What one multiprocessor of the emulated GPU sees of memory: copies of 64-byte lines that may be stale, and stores that
// others do not see yet.
//
// A weak load reads the copy if there is one. Otherwise it reads memory and may keep the line. A weak store goes to the
// copy and reaches memory whenever the seed says so, at the latest when a release or the launch's end needs it. Lines are chosen
// by when they came, never by their address, so that a seed means the same in every process; that also needs buffers
// that begin at a line.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/simt/random.h"

namespace coppice::simt {

class View {
 public:
  // Between launches; the view is empty. Without `weak` every access goes to memory at once.
  void begin(uint64_t seed, bool weak);

  void load(const void* address, void* to, size_t bytes);
  // True when it changed what this view shows.
  bool store(void* address, const void* from, size_t bytes);

  // Before an access that must reach memory itself: writes back what was stored there and forgets the copy.
  void settle(const void* address, size_t bytes);
  // Writes back all stores: what others acquire from here on they see.
  void release();
  // Forgets all that may be stale, but no store of its own.
  void acquire();
  // Writes back and forgets everything.
  void end();

  size_t lines() const { return lines_.size(); }

 private:
  static constexpr size_t kLineBytes = 64;
  struct Line {
    uintptr_t address;
    uint64_t valid;  // a bit a byte: those that the copy has
    uint64_t dirty;  // and memory has not; a part of valid
    alignas(8) unsigned char bytes[kLineBytes];
  };

  uint32_t find(uintptr_t line) const;  // where in table_: its entry, or the empty one where it would stand
  Line* get(uintptr_t line);
  Line& make(uintptr_t line);
  void load_part(uintptr_t address, unsigned char* to, size_t bytes);
  bool store_part(uintptr_t address, const unsigned char* from, size_t bytes);
  void write_back(Line& line);
  void drop(uint32_t index);

  bool weak_ = false;
  Random random_;
  uint32_t capacity_ = 0;        // lines
  uint32_t keep_one_in_ = 1;     // loads that leave a copy
  uint32_t evict_one_in_ = 1;    // stores after which some line leaves
  uint32_t dirty_lines_ = 0;     // at most: to know when there is nothing to write back
  std::vector<Line> lines_;      // in the order that they came in, but that the last one fills a hole
  std::vector<uint16_t> table_;  // open addressing over the lines' addresses: index + 1, or 0
};

}  // namespace coppice::simt
