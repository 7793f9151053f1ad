// Where trees' values lie (see tree_addresses.h).
#include "sparse/tree_addresses.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/launch_uses.h"

namespace coppice {

using device::LevelLayout;
using device::NodeKind;

MemoryUse whole_memory(uint64_t begin, uint64_t bytes, uint32_t effects) {
  return {begin, begin + bytes, std::max<uint64_t>(bytes, 1), 0, bytes, effects};
}

MemoryUse memory_of_field(const TreeMemory& memory, uint32_t field) {
  const TreeLayout& tree = memory.layout();
  const TreeField& f = tree.field(field);
  const device::NodeLayout& layout = tree.node_layout(f.node);
  MemoryUse use =
      whole_memory(reinterpret_cast<uint64_t>(memory.root().data()), memory.root().reserved_bytes(), 0);
  use.first = layout.root_offset, use.last = layout.root_offset;
  for (uint32_t l = 0; l < layout.depth; ++l) {
    const LevelLayout& level = layout.level[l];
    const bool is_last = l + 1 == layout.depth;
    if (level.kind == NodeKind::kPointer || level.kind == NodeKind::kDynamic) {
      const IntrusivePtr<Buffer> cells = memory.storages_to_be()[level.allocator].cells;
      use = whole_memory(reinterpret_cast<uint64_t>(cells->data()), cells->reserved_bytes(), 0);
      use.period = level.cell_bytes, use.first = use.last = 0;
      if (!is_last) use.first = use.last = level.child_offset;
    } else if (!is_last) {
      use.first += level.cell_offset + level.child_offset;
      use.last +=
          level.cell_offset + level.child_offset + (device::num_cells_of(level) - 1) * level.cell_bytes;
    }
  }
  const bool is_cell = tree.node(f.node).kind == NodeKind::kPointer;
  use.first += f.offset;
  use.last += f.offset + (is_cell ? 0 : (tree.node(f.node).num_cells - 1) * uint64_t{f.stride}) + f.bytes;
  return use;
}

MemoryUse zeros_of(const TreeMemory& memory) {
  return whole_memory(reinterpret_cast<uint64_t>(memory.ambient().data()), memory.ambient().size_bytes(),
                      effect::kReads);
}

std::vector<KnownBuffer> buffers_of(const TreeMemory& memory) {
  std::vector<KnownBuffer> known;
  for (const IntrusivePtr<Buffer>& buffer : memory.buffers()) {
    const auto begin = reinterpret_cast<uint64_t>(buffer->data());
    known.push_back({begin, begin + buffer->reserved_bytes(), 1});
  }
  return known;
}

std::string name_in_tree(const TreeMemory& memory, uint64_t address) {
  const TreeLayout& tree = memory.layout();
  for (uint32_t field = 0; field < tree.fields().size(); ++field) {
    const MemoryUse use = memory_of_field(memory, field);
    if (address < use.begin || address >= use.end) continue;
    const uint64_t in_period = (address - use.begin) % use.period;
    if (in_period >= use.first && in_period < use.last)
      return fmt::format("'{}' on {}", tree.field(field).name, tree.path(tree.field(field).node));
  }
  for (const KnownBuffer& buffer : buffers_of(memory)) {
    if (address >= buffer.begin && address < buffer.end)
      return fmt::format("the tree '{}', beside its values", tree.options().name);
  }
  return "";
}

}  // namespace coppice
