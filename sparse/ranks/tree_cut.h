// A tree that is cut over the ranks of a job: which blocks are this rank's own, and the mirrors of others'
// blocks beside them.
//
// A block is a cell of the tree's only lowest pointer node, with all that lies in it. A curve goes through
// all blocks (sparse/device/space_curve.h), each rank owns a part of it, and the parts are chosen so that
// all have about as many active blocks. Where a rank's part ends, it has mirrors: all blocks beside its own
// that others own, as they are there. Loops visit own blocks alone; stencils read mirrors.
//
// All ranks give the same launches in the same order. So each knows, without asking, when topologies may have
// changed and which fields' mirrors are out of date, and they come to the exchanges together:
//
//   wait_sync()     before a launch, when cells may have come or gone since: blocks that were activated in
//                   others' parts, or had cells activated, are told to their owners; parts are chosen anew
//                   where they have become uneven, and blocks that change hands are sent with all their
//                   values; mirrors are made and dropped
//   wait_fresh()    before a launch that reads around its own cells: owners send the values of the blocks
//                   that others mirror
//   wait_clear_mirrors(), wait_sum_home()
//                   before and behind a launch that adds to cells around its own
//
// All block the host. Used by one thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/device.h"
#include "sparse/device/sum_types.h"
#include "sparse/loop_lists.h"
#include "sparse/ranks/balance.h"
#include "sparse/ranks/block_masks.h"
#include "sparse/ranks/cluster.h"

namespace coppice {

class TreeStorage;

class TreeCut {
 public:
  // Errors: kInvalidArgument for a tree whose nodes are not: pointer nodes one in another, and dense or
  // bitmasked nodes with nothing below them in the last one; for temporaries, and more than 2^21 blocks along
  // an axis.
  TreeCut(const TreeLayout& layout, Cluster cluster);

  const Cluster& cluster() const { return cluster_; }
  uint32_t node() const { return node_; }  // whose cells are the blocks
  bool is_below(uint32_t node) const { return node != 0 && layout_.node(node).parent == node_; }
  OwnPart own_part() const;
  const std::vector<uint64_t>& ends() const { return ends_; }  // of each rank's part of the curve
  // Returns how many cells beyond a block's own a mirror has, along the axis where these are fewest.
  int32_t most_reach(uint32_t node) const;

  // Returns whether a cell of the cut node, or of one below it, is this rank's; none outside of the domain
  // is.
  bool owns(uint32_t node, const std::array<int32_t, 3>& cell) const;
  // Returns how often ranks have found that topologies had changed: the same number on all of them.
  uint64_t num_changes() const { return num_changes_; }

  // Runs something on all ranks that may fail on one: an Error of one is an AgreedError of all.
  void wait_agreed(const std::function<void()>& act) const;
  // Something was given to the stream that may change which cells are active.
  void note_topology_change() { is_open_ = true; }
  // Values of a field may differ from their mirrors.
  void note_stores(uint32_t field);
  void wait_sync(TreeStorage& tree);
  // Does so where the host asks for cells or values; an error of one rank until now is one of all.
  void wait_asked(TreeStorage& tree);
  // Returns whether mirrors of one of these fields are out of date.
  bool is_any_stale(std::span<const uint32_t> fields) const;
  // Brings these fields' mirrors up to date, in the order of the stream. `meanwhile` is called when own
  // values are packed, and before others' have come: what it gives to the stream runs beside the messages.
  void wait_fresh(TreeStorage& tree, std::span<const uint32_t> fields,
                  const std::function<void()>& meanwhile = {});
  // Returns whether values of a field are to be packed ahead by the launch that stores to it: others read
  // them when it was stored to last. Where values were packed in vain it is tried ever more seldom.
  bool wants_ahead(uint32_t field);
  // Packs the values of own blocks that others mirror for the next wait_fresh(), if nothing is stored to them
  // until then. Never throws an Error: that call does.
  void wait_pack_ahead(TreeStorage& tree, const std::vector<uint32_t>& fields);
  // See balance.h.
  double wait_balance(TreeStorage& tree, uint32_t node, std::span<const CellWeight> own);
  // Before and behind a launch that adds to cells around its own: mirrors begin with zeros, and what was
  // added to them is added to their owners' cells, by rank.
  struct Sum {
    uint32_t field;
    device::SumKind kind;
  };
  void wait_clear_mirrors(TreeStorage& tree, std::span<const Sum> sums);
  void wait_sum_home(TreeStorage& tree, std::span<const Sum> sums);
  // Replaces the values of a box that are not this rank's by those of their owners; `begin` and `size` have
  // an entry per axis of the tree.
  void wait_complete(uint32_t field, const std::array<int32_t, 3>& begin, const std::array<uint32_t, 3>& size,
                     std::byte* values) const;

 private:
  using Coord = std::array<int32_t, 3>;  // tree axes, of a cell of the cut node
  struct Block {
    uint64_t place = 0;  // on the curve
    Coord at{};
    int32_t unused = 0;
    bool operator==(const Block& b) const { return place == b.place; }
    auto operator<=>(const Block& b) const { return place <=> b.place; }
  };
  using Blocks = std::vector<Block>;
  using Parts = std::vector<RankLink::Bytes>;

  // Returns whether any rank's answer is yes. Each asks its stream first: an error of one rank is an Error of
  // all.
  template <class F>
  bool wait_ask_all(TreeStorage& tree, F ask) const;
  // Ranks tell each other of their errors by the largest of such marks. Throws the rank's own, or that there
  // is another's.
  uint32_t failed_mark(const std::optional<Error>& failed) const;
  void check_failed(const std::optional<Error>& failed, uint32_t mark) const;
  void wait_agree(const std::optional<Error>& failed) const;
  // Does what this rank does for itself between two exchanges, which go on without it where it fails.
  template <class F>
  void do_own(F act) {
    try {
      act();
    } catch (const Error& error) {
      if (!failed_) failed_ = error;
    }
  }
  Block block_at(const Coord& at) const;
  std::optional<Block> block_of(uint32_t node, const Coord& cell) const;  // nothing outside of the domain
  size_t owner(uint64_t place) const { return owner_in(ends_, place); }
  static size_t owner_in(const std::vector<uint64_t>& ends, uint64_t place);
  bool is_own(const Block& b) const { return owner(b.place) == self_; }
  // Blocks by rank and, one behind the other in the same order, the words of their masks.
  struct MaskedBlocks {
    std::vector<Blocks> blocks;
    std::vector<uint64_t> masks;
  };
  MaskedBlocks wait_exchange_blocks(const MaskedBlocks& parts) const;
  std::vector<uint64_t> wait_read_masks(TreeStorage& tree, const std::vector<Blocks>& parts);
  MaskedBlocks wait_find_news(TreeStorage& tree, const Blocks& here);
  Blocks wait_active_blocks(TreeStorage& tree) const;
  void wait_activate(TreeStorage& tree, const Blocks& blocks) const;
  void wait_drop(TreeStorage& tree, const std::vector<Coord>& blocks) const;
  void wait_forward(TreeStorage& tree, Blocks& here);
  void wait_rebalance(TreeStorage& tree, Blocks& here);
  // The parts' ends are others: blocks move to their new owners.
  void wait_cut(TreeStorage& tree, Blocks& here, std::vector<uint64_t> ends);
  void wait_move(TreeStorage& tree, Blocks& here, const std::vector<uint64_t>& ends_before);
  void wait_mirror(TreeStorage& tree, const Blocks& here);
  uint32_t block_cells(uint32_t node) const;
  uint64_t block_bytes(uint32_t field) const;
  // Blocks by rank, and by node the coordinates of their first cells in device memory, once they were asked
  // for.
  using CellLists = std::map<uint32_t, IntrusivePtr<Buffer>>;
  struct Lists {
    std::vector<Blocks> blocks;
    CellLists cells;
    uint64_t size() const {
      uint64_t n = 0;
      for (const Blocks& b : blocks) n += b.size();
      return n;
    }
  };
  struct ListAccess;
  template <class F>
  void each_field(InStream& s, TreeStorage& tree, const std::vector<uint32_t>& fields, uint64_t n_blocks,
                  const CellLists& cells, std::byte* at, F run) const;
  template <class F>
  void wait_in_lists(TreeStorage& tree, const char* name, const std::vector<uint32_t>& fields, Lists& lists,
                     std::span<const std::byte> bytes, F run, std::span<std::byte> back = {});
  // A field's values on their way to other ranks.
  struct Packed {
    uint32_t field = 0;
    Parts parts;
    std::optional<Error> failed;  // the others still wait for as many bytes
  };
  std::vector<Packed> wait_pack(TreeStorage& tree, const std::vector<uint32_t>& fields, Lists& from);
  RankLink::Bytes wait_exchange_packed(TreeStorage& tree, std::vector<Packed> packed, Lists& to);
  void give_unpack(TreeStorage& tree, std::vector<uint32_t> fields, const Lists& to, RankLink::Bytes come);
  void note_agreed_errors();
  void drop_ahead(uint32_t field);
  static std::vector<uint32_t> fields_of(std::span<const Sum> sums);
  const IntrusivePtr<Buffer>& room_for(Device& device, uint64_t bytes);
  void upload_cells(Device& device, uint32_t node, Lists& lists) const;
  // Sends values of the blocks in `from` to their ranks, and puts what comes into those in `to`, in the
  // order of the stream.
  void wait_bring_values(TreeStorage& tree, const std::vector<uint32_t>& fields, Lists& from, Lists& to);

  const TreeLayout& layout_;
  const Cluster cluster_;
  const size_t self_, n_ranks_;
  uint32_t node_ = 0;           // whose cells are the blocks
  std::vector<uint64_t> ends_;  // of each rank's part of the curve
  Lists own_, mirror_;          // own blocks that a rank mirrors, and a rank's blocks that are mirrored here
  Blocks mirrors_;              // all of mirror_, in order
  const BlockMasks masks_;
  std::vector<uint64_t> mirror_masks_;  // of mirrors_, as their owners told
  IntrusivePtr<Buffer> staging_;        // for values on their way between the device and the host
  bool is_open_ = true;
  bool evens_blocks_ = true;     // until the program says what the work is
  double reached_ = 1;           // by the last cut of wait_balance(): the largest part's share
  std::optional<Error> failed_;  // of this rank, within a change of the cut that goes on
  std::vector<bool> is_stale_;   // by field
  std::vector<Packed> ahead_;    // own_'s values, as they are
  // Says of a field whether its mirrors were read, and how many stores to it are not to be packed ahead.
  struct Ahead {
    bool is_read = false;
    uint32_t waits = 0, all_waits = 0;
  };
  std::vector<Ahead> aheads_;
  uint64_t num_changes_ = 0;
  uint64_t version_ = ~uint64_t{0};  // of the topology, when it was seen last
  uint64_t errors_seen_ = 0;         // of all ranks (Cluster::num_agreed_errors())
};

// Returns the tree of a node, whose layout is fixed from now on. Errors: kInvalidArgument, where it is not
// cut, or the node does not lie below the cut; `what` was to be done.
TreeRef cut_tree_of(const Node& node, const char* what);

}  // namespace coppice
