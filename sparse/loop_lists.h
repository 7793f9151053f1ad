// The lists that loops over a tree's nodes run through, and their neighbour tables: made anew when the
// topology has changed since, and only then.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "sparse/tree_memory.h"
#include "sparse/tree_scratch.h"

struct CoppiceSlots;  // loop_lists.kernels.h

namespace coppice {

class Program;
struct Items;  // runtime_launch.h

// Says which part of the curve through a tree's blocks is this rank's own: lists of nodes right below
// `node`, whose cells are the blocks, have no others (sparse/ranks/tree_cut.h). In front they have what
// lies in interior blocks, which have none of others beside them, in the order of the coordinates, and then
// the rest in that order.
struct OwnPart {
  uint32_t node = 0;
  uint64_t begin = 0, end = 0;
};

// Describes the list that a loop over a node runs through; valid while the topology's version is the
// tree's. The device has the same numbers in a ListState.
struct LoopList {
  uint32_t number = 0;                        // of its ListState: the node
  IntrusivePtr<Buffer> elements, neighbours;  // LoopElement[n], u32[n][3^D]
  uint64_t items = 0, interior = 0;           // the latter of a rank's own part: those in front
  uint64_t version = ~uint64_t{0};            // of a dynamic node: the lists' version
  uint64_t neighbour_version = ~uint64_t{0};
};

// Names lists that a recording takes to be up to date: {node, with its neighbour table}.
using NeededLists = std::vector<std::pair<uint32_t, bool>>;

class LoopLists {
 public:
  LoopLists(TreeMemory& memory, TreeScratch& scratch, Program& program);

  // Brings a node's list (and its neighbour table) up to date; at most one select and sort per topology
  // change. In a recording: whether there is anything to do is found out by the device, each time.
  LoopList& update(InStream& s, uint32_t node, bool with_neighbours);
  void update(InStream& s, const NeededLists& needed);
  // Returns those that were made, by node; null where none was.
  const std::vector<std::unique_ptr<LoopList>>& all() const { return lists_; }
  // Nobody keeps a list between two launches; each asks for its own at its turn.
  void clear(InStream& s);
  // Lists that are made from now on are of this part alone. Those of recordings must not be.
  void set_own_part(const OwnPart& own) { own_ = own; }

  // The topology's version, and that of it with the lengths of dynamic nodes' lists.
  uint64_t version(InStream&) const { return version_; }
  // Is called when what a launch did to the topology has been committed; the device has counted, too.
  void count_version(InStream& s, bool topology_has_changed);

  // ---- recordings (list_recording.cc)
  // Begins one in which launches can change the topology, or none can. In the latter case it needs lists that
  // are up to date whenever it is replayed.
  void begin_recording(InStream& s, bool can_change);
  const NeededLists& needed(InStream&) const { return needed_; }
  // Is called where a recording commits the topology: lists are to be made again behind that.
  void forget_recorded(InStream&) { needed_.clear(); }
  // Adds to `kept` what a recording uses of the lists' memory, which they themselves may replace.
  void keep_for_recording(InStream& s, std::vector<IntrusivePtr<RefCounted>>& kept);
  // Is called before a recording is replayed: lists whose memory it replaced are to be made anew.
  void forget_lost(InStream& s);
  // Is called after replays: reads back what they did to the topology and the lists.
  void wait_sync_after_replays(InStream& s);

 private:
  struct ListWork;
  ListWork begin_list(InStream& s, uint32_t node, LoopList& list);
  void select_cells(InStream& s, ListWork& work);
  void sort_cells(InStream& s, ListWork& work, bool narrow);
  bool select_by_slots(InStream& s, ListWork& work);
  void write_selected(InStream& s, ListWork& work, const CoppiceSlots& slots, const Items& sources,
                      const uint32_t* begins);
  const uint32_t* expand(InStream& s, ListWork& work);
  void make_list(InStream& s, uint32_t node, LoopList& list);
  void keep_own(InStream& s, uint32_t node, LoopList& list);
  void make_neighbours(InStream& s, uint32_t node, LoopList& list);
  void record_list(InStream& s, LoopList& list, uint32_t node, bool with_neighbours);
  uint64_t most_containers(uint32_t node) const;
  Count containers_in(InStream& s, const LoopList& list) const;
  uint64_t list_version(uint32_t node) const;
  // Makes room for so many items in a list's memory.
  template <class T>
  void reserve(InStream& s, LoopList& list, IntrusivePtr<Buffer>& buffer, uint64_t items);

  const TreeLayout& layout_;
  TreeMemory& memory_;
  TreeScratch& scratch_;
  Program& program_;
  std::vector<std::unique_ptr<LoopList>> lists_;
  std::optional<OwnPart> own_;
  uint64_t version_ = 0;
  uint64_t lists_version_ = 0;  // of dynamic nodes' lengths
  // While recording, these are numbers of lists whose buffers were replaced.
  std::vector<uint32_t> lost_;
  bool can_change_ = false;
  NeededLists needed_;  // or, where it can change, those made since its topology was committed last
};

}  // namespace coppice
