// Reports what a tree's memory is spent on, node by node.
//
//     std::puts(tree.wait_memory_report().text().c_str());
//
// Bytes are those committed: address space that was only reserved is not counted, pages never touched are.
#pragma once
#include <string>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

struct MemoryReport {
  struct Row {
    std::string path;
    device::NodeKind kind;
    NodeUsage usage;
  };
  std::vector<Row> nodes;  // parents first
  // Says, for each node with temporary fields, what these take (sparse/cell_memory.h).
  std::vector<std::string> temporaries;
  uint64_t root_bytes = 0;
  uint64_t ambient_bytes = 0;      // the zeros that inactive cells read as
  uint64_t bookkeeping_bytes = 0;  // allocator states, layouts, counts
  uint64_t scratch_bytes = 0;      // for making loop lists, and for what is activated or appended in bulk
  // These count collections since the tree was made, behind launches that deactivated something, but for
  // those of recordings, which the host does not see. The time is the host's: on a GPU, that of giving the
  // work.
  uint64_t collections = 0;
  double collection_s = 0;

  // Counts everything once: what lies in a pointer node's cells or in the root is counted there.
  uint64_t total_bytes() const;
  // Returns a table of the nodes with a line for each of the rest, then the total.
  std::string text() const;
};

namespace detail {
// These are for the order of the tree's stream.
NodeUsage usage_of(InStream& s, TreeStorage& tree, uint32_t node);
MemoryReport report_memory(InStream& s, TreeStorage& tree);
}  // namespace detail

// Does the same as Tree::wait_memory_report(), for callers that have a field of the tree alone.
MemoryReport wait_memory_report(const TreeRef& tree);

}  // namespace coppice
