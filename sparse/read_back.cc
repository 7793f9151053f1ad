// Values of a tree on the host (see read_back.h).
#include "sparse/read_back.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "runtime_lists.kernels.h"
#include "runtime_read_back.kernels.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice::detail {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

}  // namespace

void check_count(const TreeRef& tree, const GivenCoord& coord) {
  tree->freeze();  // a tree has its dimensions from then on
  if (coord.count == 0 || coord.count == tree->dims()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} coordinate{} given, tree '{}' has {} dimension{}", coord.count,
                          coord.count == 1 ? "" : "s", tree->options().name, tree->dims(),
                          tree->dims() == 1 ? "" : "s"));
}

uint64_t count_box(const TreeRef& tree, const HostCoord& begin, const HostCoord& end) {
  tree->freeze();
  uint64_t count = 1;
  for (uint32_t axis = 0; axis < tree->dims(); ++axis) {
    if (end[axis] < begin[axis]) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("tree '{}': a box to read ends at {} of axis {}, before it begins, at {}",
                              tree->options().name, end[axis], axis, begin[axis]));
    }
    count *= static_cast<uint64_t>(int64_t{end[axis]} - begin[axis]);
  }
  return count;
}

void wait_read_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& begin, const HostCoord& end,
                     void* values) {
  const uint64_t cells = count_box(tree, begin, end);
  if (cells == 0) return;
  const FieldDescription& d = tree->field(field.field);
  CoppiceFieldBox box{{0, 0, 0}, {1, 1, 1}, 0, d.offset, d.stride, static_cast<uint32_t>(d.bytes)};
  const uint32_t dims = tree->dims();
  for (uint32_t axis = 0; axis < dims; ++axis) {
    box.begin[3 - dims + axis] = begin[axis];
    box.size[3 - dims + axis] = end[axis] - begin[axis];
  }
  // Piece by piece: what is on its way to the host takes little memory and stays in the processor's cache.
  const uint64_t piece = std::min(cells, std::max<uint64_t>(1, kPieceBytes / d.bytes));
  wait_in_order(tree->stream(), "sparse.read", [&] {
    const IntrusivePtr<Buffer> read = tree->device().reserve(piece * d.bytes, piece * d.bytes);
    for (uint64_t first = 0; first < cells; first += piece) {
      const uint64_t n = std::min(piece, cells - first);
      box.first = static_cast<int64_t>(first);
      run_now_by(1024, tree->stream_program(), read_box, n, tree->state(), tree->device_layout(field.node),
                 box, read->as<unsigned char>());
      tree->stream().wait_copy_inline(static_cast<std::byte*>(values) + first * d.bytes, read->data(),
                                      n * d.bytes);
    }
  });
}

std::vector<std::byte> wait_list_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& coord) {
  const uint64_t length = Node(tree, field.node).wait_length(coord);
  const FieldDescription& d = tree->field(field.field);
  std::vector<std::byte> values(length * d.bytes);
  CoppiceElements from{{0, 0, 0}, d.stride, d.offset, d.bytes};
  const uint32_t dims = tree->dims();
  for (uint32_t axis = 0; axis < dims; ++axis) from.coord[3 - dims + axis] = coord[axis];
  if (values.empty()) return values;
  wait_in_order(tree->stream(), "sparse.read_list", [&] {
    const IntrusivePtr<Buffer> read = tree->device().reserve(values.size(), values.size());
    run_now(tree->stream_program(), read_elements, length, tree->state(), tree->device_layout(field.node),
            from, read->as<unsigned char>());
    tree->stream().wait_copy_inline(values.data(), read->data(), values.size());
  });
  return values;
}

}  // namespace coppice::detail
