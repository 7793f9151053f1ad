// Storage groups: buffers that share one piece of memory, one after the other, because no two of them are
// needed at the same time. Simpler than offsets, and where sizes change, a group grows without its
// neighbours.
#pragma once
#include "executor/plan/problem.h"

namespace coppice::plan {

struct Groups {
  std::vector<uint32_t> group_of;  // of the buffer with the same index
  std::vector<int64_t> bytes;      // of each group: its largest buffer's
  Plan plan;                       // the groups side by side
};

// Puts each buffer, the largest first, into the group that is nearest to it in time, of those whose sizes it
// wastes least. Alignments are honoured; offsets, hints and gaps are not. Cost: n log n, and each buffer's
// look at every group. Errors: kInvalidArgument (check()).
Groups storage_groups(const Problem& problem);

}  // namespace coppice::plan
