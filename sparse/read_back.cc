// Values of a tree on the host (see read_back.h).
#include "sparse/read_back.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "dynamic_lists.kernels.h"
#include "gpu/cpu/memory_limits.h"
#include "runtime_read_back.kernels.h"
#include "sparse/launch_errors.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice::detail {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr double kMostCells = 1ull << 40;

}  // namespace

void refuse_axis(const std::string& value) {
  throw Error(ErrorCode::kOutOfRange,
              fmt::format("{} is no coordinate: these are from -2^31 up to, not including, 2^31", value));
}

TreeStorage& tree_to_read(const TreeRef& tree) {
  if (!tree) throw Error(ErrorCode::kInvalidArgument, "the field to read is none: Node::place() makes one");
  return *tree;
}

void check_count(TreeStorage& tree, const GivenCoord& coord) {
  tree.freeze();  // a tree has its dimensions from then on
  const auto surplus = coord.at.begin() + std::min(tree.layout().dims(), coord.count);
  const bool names_a_cell = coord.count >= tree.layout().dims() &&
                            std::all_of(surplus, coord.at.end(), [](int32_t number) { return number == 0; });
  if (coord.count == 0 || names_a_cell) return;
  throw Error(ErrorCode::kInvalidArgument,
              wrong_count_text(coord.count, tree.options().name, tree.layout().dims()));
}

BoxSize box_size(const TreeRef& tree, const HostCoord& begin, const HostCoord& end) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("tree '{}': {}", tree->options().name, why));
  };
  tree->freeze();
  BoxSize size{1, 1, 1};
  double cells = 1;
  for (uint32_t axis = 0; axis < tree->layout().dims(); ++axis) {
    if (end[axis] < begin[axis])
      refuse(fmt::format("a box to read ends at {} of axis {}, before it begins, at {}", end[axis], axis,
                         begin[axis]));
    size[axis] = static_cast<uint32_t>(int64_t{end[axis]} - begin[axis]);
    cells *= size[axis];
  }
  if (cells > kMostCells)
    refuse(fmt::format("a box to read has {} cells, at most 2^40", fmt::join(size, " x ")));
  return size;
}

void refuse_box(const TreeRef& tree, const BoxSize& size, size_t value_bytes) {
  const std::string cells =
      fmt::format("{}", fmt::join(size.begin(), size.begin() + tree->layout().dims(), " x "));
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("tree '{}': the host has no memory for a box of {} values of {} bytes{}",
                          tree->options().name, cells, value_bytes, near_address_limit()));
}

uint64_t count_cells(const BoxSize& size) { return uint64_t{size[0]} * size[1] * size[2]; }

namespace {
// Handles are made by hand, too.
void check_field_of(const TreeStorage& tree, const FieldId& field) {
  if (field.tree == &tree) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the field to read is of another tree than '{}', which its handle names",
                          tree.options().name));
}
}  // namespace

void wait_read_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& begin, const BoxSize& size,
                     void* values) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", tree->layout().path(field.node), why));
  };
  check_field_of(*tree, field);
  if (field.field == kNoField) refuse("a node's topology has no values to read");
  if (tree->layout().node(field.node).kind == device::NodeKind::kDynamic)
    refuse("its fields have lists of values: wait_read_list() reads one");
  tree->freeze();
  check_has_values(*tree, field.field, "a value to read");
  const uint32_t dims = tree->layout().dims();
  const TreeField& d = tree->layout().field(field.field);
  CoppiceFieldBox box{{0, 0, 0},
                      {1, 1, 1},
                      0,
                      d.offset,
                      d.stride,
                      static_cast<uint32_t>(d.bytes),
                      d.is_temporary() ? 1u : 0u};
  for (uint32_t axis = 0; axis < dims; ++axis) {
    box.begin[3 - dims + axis] = begin[axis];
    box.size[3 - dims + axis] = size[axis];
  }
  const uint64_t cells = count_cells({box.size[0], box.size[1], box.size[2]});
  if (cells == 0) return;
  tree->wait_sync_over_ranks();
  // Values are read piece by piece: what is on its way to the host takes little memory and stays in the
  // processor's cache.
  const uint64_t piece = std::min(cells, std::max<uint64_t>(1, kPieceBytes / d.bytes));
  const auto wait_read = [&] {
    wait_in_order(tree->stream(), "sparse.read", [&](InStream& s) {
      const IntrusivePtr<Buffer> read = tree->device().reserve(piece * d.bytes, piece * d.bytes);
      for (uint64_t first = 0; first < cells; first += piece) {
        const uint64_t n = std::min(piece, cells - first);
        box.first = static_cast<int64_t>(first);
        run_now_by(s, 1024, tree->programs().in_order(s), read_box, n, tree->memory().state(),
                   tree->memory().device_layout(field.node), box, read->as<unsigned char>());
        s.wait_copy(static_cast<std::byte*>(values) + first * d.bytes, read->data(), n * d.bytes);
      }
    });
  };
  if (!tree->is_over_ranks()) return wait_read();
  tree->cut().wait_agreed(wait_read);
  tree->cut().wait_complete(field.field, begin, size, static_cast<std::byte*>(values));
}

std::vector<std::byte> wait_list_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& coord) {
  check_field_of(*tree, field);
  tree->freeze();
  if (tree->layout().node(field.node).kind != device::NodeKind::kDynamic)
    throw Error(
        ErrorCode::kInvalidArgument,
        tree->layout().path(field.node) + " has no lists: wait_read_list() is for fields on dynamic nodes");
  const uint64_t length = node_of(tree, field.node).wait_length(coord);
  if (field.field == kNoField)
    throw Error(ErrorCode::kInvalidArgument,
                tree->layout().path(field.node) + ": a node's topology has no values to read");
  check_has_values(*tree, field.field, "a list to read");
  const TreeField& d = tree->layout().field(field.field);
  std::vector<std::byte> values(length * d.bytes);
  CoppiceElements from{{0, 0, 0}, d.stride, d.offset, d.bytes};
  const uint32_t dims = tree->layout().dims();
  for (uint32_t axis = 0; axis < dims; ++axis) from.coord[3 - dims + axis] = coord[axis];
  if (values.empty()) return values;
  wait_in_order(tree->stream(), "sparse.read_list", [&](InStream& s) {
    const IntrusivePtr<Buffer> read = tree->device().reserve(values.size(), values.size());
    run_now(s, tree->programs().in_order(s), read_elements, length, tree->memory().state(),
            tree->memory().device_layout(field.node), from, read->as<unsigned char>());
    s.wait_copy(values.data(), read->data(), values.size());
  });
  return values;
}

}  // namespace coppice::detail
