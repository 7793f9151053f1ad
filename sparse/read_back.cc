// Values of a tree on the host (see read_back.h).
#include "sparse/read_back.h"

#include <fmt/format.h>

#include "core/error.h"
#include "runtime_lists.kernels.h"
#include "runtime_read_back.kernels.h"
#include "sparse/program.h"
#include "sparse/tree_storage.h"

namespace coppice::detail {

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
  CoppiceFieldBox box{{0, 0, 0}, {1, 1, 1}, d.offset, d.stride, static_cast<uint32_t>(d.bytes)};
  const uint32_t dims = tree->dims();
  for (uint32_t axis = 0; axis < dims; ++axis) {
    box.begin[3 - dims + axis] = begin[axis];
    box.size[3 - dims + axis] = end[axis] - begin[axis];
  }
  const AsyncValueRef<Chain> done =
      tree->program().launch(read_box, range(static_cast<int64_t>(cells)), tree->state(),
                             tree->device_layout(field.node), box, static_cast<unsigned char*>(values));
  wait(done);
  if (done.is_error()) throw done.error();
}

std::vector<std::byte> wait_list_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& coord) {
  const uint64_t length = Node(tree, field.node).wait_length(coord);
  const FieldDescription& d = tree->field(field.field);
  std::vector<std::byte> values(length * d.bytes);
  CoppiceElements from{{0, 0, 0}, d.stride, d.offset, d.bytes};
  const uint32_t dims = tree->dims();
  for (uint32_t axis = 0; axis < dims; ++axis) from.coord[3 - dims + axis] = coord[axis];
  const AsyncValueRef<Chain> done = tree->program().launch(
      read_elements, range(static_cast<int64_t>(length)), tree->state(), tree->device_layout(field.node),
      from, reinterpret_cast<unsigned char*>(values.data()));
  wait(done);
  if (done.is_error()) throw done.error();
  return values;
}

}  // namespace coppice::detail
