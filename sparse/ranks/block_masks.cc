// Copies the masks of blocks between the device and the host (see block_masks.h).
#include "sparse/ranks/block_masks.h"

#include "gpu/host_access.h"
#include "runtime_collection.kernels.h"
#include "runtime_ranks.kernels.h"
#include "sparse/deactivation.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::NodeKind;

BlockMasks::BlockMasks(const TreeLayout& layout, uint32_t cut) : layout_(layout), cut_(cut) {
  for (uint32_t id = 1; id < layout.nodes().size(); ++id) {
    const TreeNode& n = layout.node(id);
    if (n.kind != NodeKind::kBitmasked || n.parent != cut) continue;
    const auto words = static_cast<uint32_t>(device::mask_words(n.num_cells));
    nodes_.push_back({id, words_, words});
    words_ += words;
  }
}

// Runs run(stream, program, masks, coords, words) for each bitmasked node; `words`, of all blocks, are copied
// from `in` before that, where it is given, and to `out` behind it.
template <class F>
void BlockMasks::wait_with(TreeStorage& tree, const char* name, const Coords& blocks, const uint64_t* in,
                           uint64_t* out, F run) const {
  const IntrusivePtr<Buffer> coords = wait_device_copy(tree.device(), flatten(blocks, layout_.dims()));
  const uint64_t bytes = blocks.size() * words_ * sizeof(uint64_t);
  const IntrusivePtr<Buffer> words = tree.device().reserve(bytes, bytes);
  wait_in_order(tree.stream(), name, [&](InStream& s) {
    if (in != nullptr) s.wait_copy(words->data(), in, bytes);
    for (const Node& n : nodes_)
      run(s, tree.programs().in_order(s),
          CoppiceBlockMasks{tree.memory().state(), tree.memory().device_layout(n.id),
                            tree.memory().device_layout(cut_), n.first, n.words, words_, 0},
          coords->as<const int32_t>(), words->as<uint64_t>());
    if (out != nullptr) s.wait_copy(out, words->data(), bytes);
  });
}

std::vector<uint64_t> BlockMasks::wait_read(TreeStorage& tree, const Coords& blocks) const {
  std::vector<uint64_t> words(blocks.size() * words_);
  if (words.empty()) return words;
  wait_with(tree, "sparse.read_masks", blocks, nullptr, words.data(),
            [&](InStream& s, Program& program, const CoppiceBlockMasks& masks, const int32_t* coords,
                uint64_t* to) { run_now(s, program, read_masks, blocks.size(), masks, coords, to); });
  return words;
}

template <class Kernel>
void BlockMasks::wait_put(TreeStorage& tree, const Kernel& kernel, const Coords& blocks,
                          const std::vector<uint64_t>& words) const {
  if (words.empty()) return;
  wait_with(tree, "sparse.put_masks", blocks, words.data(), nullptr,
            [&](InStream& s, Program& program, const CoppiceBlockMasks& masks, const int32_t* coords,
                const uint64_t* from) { run_now(s, program, kernel, blocks.size(), masks, coords, from); });
}

void BlockMasks::wait_store(TreeStorage& tree, const Coords& blocks,
                            const std::vector<uint64_t>& words) const {
  wait_put(tree, store_masks, blocks, words);
}
void BlockMasks::wait_add(TreeStorage& tree, const Coords& blocks, const std::vector<uint64_t>& words) const {
  wait_put(tree, add_masks, blocks, words);
}

void deactivate_everywhere(InStream& s, TreeStorage& tree, uint32_t node) {
  const TreeNode& n = tree.layout().node(node);
  const uint32_t allocator = tree.layout().node(n.parent).allocator;
  Program& program = tree.programs().in_order(s);
  uint64_t* const cells = &tree.memory().counts()->recycled;
  run_now(s, program, mark_changed, 1, tree.memory().state());
  run_now(s, program, count_batches, 1, tree.memory().allocator_state(allocator), 1u, cells);
  run_now_by(s, 16, program, zero_in_all_cells, cells, tree.memory().state(),
             tree.memory().device_layout(node), n.container_bytes);
}

}  // namespace coppice
