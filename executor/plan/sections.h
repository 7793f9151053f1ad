// A planning problem as the exact search sees it: the times that matter, and which buffers meet there.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

// A buffer's bytes [low, high) from its offset on.
struct SectionUse {
  uint32_t buffer;
  int64_t low, high;
  bool operator==(const SectionUse&) const = default;
};
// All that is needed at one time, by index of buffer. Only times are here at which no other time's needs
// include all of theirs.
using Section = std::vector<SectionUse>;

// Another buffer that is needed at a time when this one is. What lies above must have an offset larger by so
// much, at least.
struct Neighbor {
  uint32_t buffer;
  int64_t its_above;   // this one's offset to that of the other, above
  int64_t this_above;  // the other's offset to that of this one, above
};

// The bytes that a buffer needs in a section.
struct Need {
  uint32_t section;
  int64_t bytes;
};

struct Sections {
  // Cost: the times at which anything begins or ends, times the buffers that are needed then.
  explicit Sections(const Problem& problem);

  std::vector<Section> all;           // in the order of time
  std::vector<uint32_t> first, last;  // [buffers]: the sections that a buffer reaches from and to
  std::vector<std::vector<Need>> needs;
  std::vector<std::vector<Neighbor>> neighbors;
  std::vector<uint32_t> searched;  // buffers that need bytes and have no offset of their own
};

}  // namespace coppice::plan
