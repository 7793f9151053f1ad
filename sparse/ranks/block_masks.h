// The masks of bitmasked nodes in the blocks of a tree that is cut over ranks (tree_cut.h): which of a
// block's cells are active, as ranks tell each other.
//
// Between launches no cell is dirty or busy (sparse/device/masks.h), so the active bits are all there is to
// tell. What has wait_ in its name blocks the host until the stream has done it.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "gpu/device.h"
#include "sparse/tree_layout.h"

namespace coppice {

class TreeStorage;

class BlockMasks {
 public:
  using Coords = std::vector<std::array<int32_t, 3>>;  // of blocks, tree axes

  // The cells of the node `cut` are the blocks.
  BlockMasks(const TreeLayout& layout, uint32_t cut);

  // Returns how many words a block's masks have, those of all its bitmasked nodes one behind the other; 0 for
  // a tree without any, which nothing here does anything with.
  uint32_t words() const { return words_; }

  // Returns the words of some blocks, one block behind the other; zeros for those that are not there.
  std::vector<uint64_t> wait_read(TreeStorage& tree, const Coords& blocks) const;
  // Gives blocks just these words. Cells whose bits go keep their values, so blocks are such as get their
  // owners' values, too.
  void wait_store(TreeStorage& tree, const Coords& blocks, const std::vector<uint64_t>& words) const;
  // Activates the cells of these words beside those that are active; a block may be named several times.
  void wait_add(TreeStorage& tree, const Coords& blocks, const std::vector<uint64_t>& words) const;

 private:
  struct Node {
    uint32_t id, first, words;  // its words among a block's
  };
  template <class F>
  void wait_with(TreeStorage& tree, const char* name, const Coords& blocks, const uint64_t* in, uint64_t* out,
                 F run) const;
  template <class Kernel>
  void wait_put(TreeStorage& tree, const Kernel& kernel, const Coords& blocks,
                const std::vector<uint64_t>& words) const;

  const TreeLayout& layout_;
  const uint32_t cut_;
  std::vector<Node> nodes_;
  uint32_t words_ = 0;
};

// Deactivates all cells of a bitmasked node below a cut, of mirrors and what was activated for others, too:
// loops' lists have a rank's own blocks alone. The topology is to be committed behind that.
void deactivate_everywhere(InStream& s, TreeStorage& tree, uint32_t node);

}  // namespace coppice
