// Reading all active cells (see active_cells.h; the kernels are in runtime/runtime_active_cells.kernels.cc).
#include "sparse/active_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "runtime_active_cells.kernels.h"
#include "sparse/read_back.h"
#include "sparse/runtime_launch.h"
#include "sparse/temporary_fields.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

void check_readable(const TreeRef& tree, const FieldId& field) {
  detail::tree_to_read(tree).freeze();
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", tree->layout().path(field.node), why));
  };
  if (field.tree != tree.get())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the field to read is of another tree than '{}', which its handle names",
                            tree->options().name));
  if (field.field == kNoField) refuse("a node's topology has no values to read");
  if (tree->layout().node(field.node).kind == device::NodeKind::kDynamic)
    refuse("its fields have lists of values: wait_read_list() reads one");
  check_has_values(*tree, field.field, "a value to read");
}

// The list of the node whose cells are a cut tree's blocks has mirrors, too.
void keep_own_blocks(TreeStorage& tree, const FieldId& field, ActiveCells<std::byte>& cells) {
  if (field.node != tree.cut().node()) return;
  const size_t bytes = tree.layout().field(field.field).bytes;
  size_t n = 0;
  for (size_t i = 0; i < cells.coords.size(); ++i) {
    if (!tree.cut().owns(field.node, cells.coords[i])) continue;
    cells.coords[n] = cells.coords[i];
    std::memmove(cells.values.data() + n * bytes, cells.values.data() + i * bytes, bytes);
    ++n;
  }
  cells.coords.resize(n), cells.values.resize(n * bytes);
}

}  // namespace

ActiveCells<std::byte> detail::wait_active_bytes(const TreeRef& tree, const FieldId& field) {
  check_readable(tree, field);
  tree->wait_sync_over_ranks();
  ActiveCells<std::byte> cells = wait_active_of(*tree, field.node, &tree->layout().field(field.field));
  if (tree->is_over_ranks()) keep_own_blocks(*tree, field, cells);
  return cells;
}

ActiveCells<std::byte> detail::wait_active_of(TreeStorage& tree, uint32_t node, const TreeField* field) {
  const uint64_t value_bytes = field == nullptr ? 0 : field->bytes;
  ActiveCells<std::byte> cells;
  wait_in_order(tree.stream(), "sparse.read_active", [&](InStream& s) {
    const LoopList& list = tree.lists().update(s, node, false);
    const uint64_t n = list.items;
    if (n == 0) return;
    const CoppiceActiveCells from{tree.memory().state(),
                                  tree.memory().device_layout(node),
                                  list.elements->as<device::LoopElement>(),
                                  field == nullptr ? 0 : field->offset,
                                  field == nullptr ? 0 : field->stride,
                                  static_cast<uint32_t>(value_bytes)};
    Program& program = tree.programs().in_order(s);
    const IntrusivePtr<Buffer> starts = tree.device().reserve(4 * n, 4 * n);
    run_now_by(s, 4, program, count_active_of, n, from, starts->as<uint32_t>());
    const uint64_t all =
        primitives::wait_exclusive_scan(s, starts->as<uint32_t>(), starts->as<uint32_t>(), n);
    if (all > UINT32_MAX)
      throw Error(ErrorCode::kOutOfMemory, fmt::format("{}: {} active cells to read, at most 2^32 - 1",
                                                       tree.layout().path(node), all));
    if (all == 0) return;
    cells.coords.resize(all), cells.values.resize(all * value_bytes);
    const size_t coord_bytes = all * sizeof(cells.coords[0]);
    const IntrusivePtr<Buffer> coords = tree.device().reserve(coord_bytes, coord_bytes),
                               values = tree.device().reserve(cells.values.size(), cells.values.size());
    run_now_by(s, 4, program, read_active, n, from, starts->as<uint32_t>(), coords->as<int32_t>(),
               values->as<unsigned char>());
    s.wait_copy(cells.coords.data(), coords->data(), coord_bytes);
    s.wait_copy(cells.values.data(), values->data(), cells.values.size());
  });
  const uint32_t missing = 3 - tree.layout().dims();  // leading axes
  for (std::array<int32_t, 3>& c : cells.coords) std::rotate(c.begin(), c.begin() + missing, c.end());
  return cells;
}

}  // namespace coppice
