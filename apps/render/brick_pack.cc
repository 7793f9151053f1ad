// Packs a tree's field into bricks: the host decides which, kernels fill them.
#include "apps/render/brick_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "brick_pack.kernels.h"
#include "core/error.h"
#include "sparse/tree_storage.h"

namespace coppice::render {
namespace {

constexpr uint32_t kByBlock = 2;  // as the kernels have it
constexpr int64_t kMostBricksInBounds = int64_t{1} << 24;

// Divides towards minus infinity.
int64_t brick_of(int64_t cell) { return cell >> 3; }

// Memory of at least so many bytes; what it held is lost. It grows by half at least, and never shrinks.
template <class T>
T* ensure(Device& device, IntrusivePtr<Buffer>& buffer, size_t count) {
  const size_t bytes = std::max<size_t>(count * sizeof(T), 64);
  if (!buffer || buffer->size_bytes() < bytes) {
    const size_t larger = std::max(bytes, buffer ? buffer->size_bytes() * 3 / 2 : 0);
    buffer.reset();
    buffer = device.reserve(larger, larger);
  }
  return buffer->as<T>();
}

// The node's domain and the extent of its containers, by axis of the tree; axes that it does not have: cell 0
// alone.
struct NodeBox {
  std::array<int64_t, 3> low{0, 0, 0}, high{1, 1, 1}, extent{1, 1, 1};

  NodeBox(const device::NodeLayout& node, int dim) {
    for (int axis = 0; axis < dim; ++axis) {
      const int padded = 3 - dim + axis;
      low[axis] = node.origin[padded];
      high[axis] = low[axis] + node.domain[padded];
      extent[axis] = node.level[node.depth - 1].extent[padded];
    }
  }
  BrickDomain domain() const {
    BrickDomain d{};
    for (int axis = 0; axis < 3; ++axis) {
      d.low[axis] = static_cast<int32_t>(low[axis]);
      d.high[axis] = static_cast<int32_t>(std::min<int64_t>(high[axis], std::numeric_limits<int32_t>::max()));
    }
    return d;
  }
};

// The kernel of the field's dimension among three.
template <class One, class Two, class Three, class... Arguments>
void launch_by_dim(Program& program, int dim, const One& one, const Two& two, const Three& three,
                   const Arguments&... arguments) {
  if (dim == 1) program.launch(one, arguments...);
  if (dim == 2) program.launch(two, arguments...);
  if (dim == 3) program.launch(three, arguments...);
}

bool are_leaves_bricks(const TreeLayout& tree, uint32_t id) {
  const NodeDescription& node = tree.node(id);
  const device::NodeLayout& layout = tree.node_layout(id);
  bool is_aligned = true;
  for (int axis = 0; axis < 3; ++axis)
    is_aligned &= layout.origin[axis] % kBrickCells == 0 &&
                  layout.level[layout.depth - 1].extent[axis] == uint32_t{kBrickCells};
  return tree.dims() == 3 && node.kind == device::NodeKind::kDense && is_aligned &&
         node.layout == CellLayout::kStructOfArrays && tree.has_neighbour_table(id);
}

void require_volume_field(const Field<float>& field, const Device& device) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); };
  if (!field.tree) refuse("a volume needs a field: Node::place() makes one");
  if (&field.tree->device() != &device) refuse("a volume's field is of another device than its packer");
  if (field.id.field == kNoField ||
      field.tree->description().node(field.id.node).kind == device::NodeKind::kDynamic)
    refuse(field.tree->description().path(field.id.node) +
           ": a volume needs a field with one value per cell");
}

}  // namespace

BrickPacker::BrickPacker(IntrusivePtr<Device> device) : device_(std::move(device)), program_(device_) {}

void BrickPacker::list_candidates(const Field<float>& field, int dim) {
  const Node node = detail::node_of(field.tree, field.id.node);
  const NodeBox box(field.tree->layout().node_layout(field.id.node), dim);
  containers_.resize(node.wait_num_active_blocks());
  bricks_.clear();
  if (containers_.empty()) return;
  auto* const first = ensure<CellCoord>(*device_, coords_, containers_.size());
  launch_by_dim(program_, dim, list_containers_1, list_containers_2, list_containers_3, over(node), field,
                first);
  program_.wait();
  device_->wait_copy(containers_.data(), first, containers_.size() * sizeof(CellCoord));

  // A container's cells are in the bricks that begin up to eight cells before its first one.
  const auto touched_by = [&](const CellCoord& c) {
    const std::array<int32_t, 3> at{c.x, c.y, c.z};
    std::array<std::array<int64_t, 2>, 3> range{};
    for (int axis = 0; axis < dim; ++axis)
      range[axis] = {brick_of(at[axis] - 1), brick_of(at[axis] + box.extent[axis] - 1)};
    return range;
  };
  std::array<int64_t, 3> low, high;
  low.fill(std::numeric_limits<int64_t>::max()), high.fill(std::numeric_limits<int64_t>::lowest());
  for (const CellCoord& c : containers_) {
    const auto range = touched_by(c);
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], range[axis][0]);
      high[axis] = std::max(high[axis], range[axis][1]);
    }
  }
  std::array<int64_t, 3> size;
  double total = 1;
  for (int axis = 0; axis < 3; ++axis) size[axis] = high[axis] - low[axis] + 1, total *= double(size[axis]);
  if (total > kMostBricksInBounds) {
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("{}: its active cells span {} x {} x {} bricks of 8 x 8 x 8 cells; a volume may "
                            "span 2^24",
                            field.tree->description().path(field.id.node), size[0], size[1], size[2]));
  }
  number_of_.assign(static_cast<size_t>(total), 0);
  for (const CellCoord& c : containers_) {
    const auto range = touched_by(c);
    for (int64_t x = range[0][0]; x <= range[0][1]; ++x) {
      for (int64_t y = range[1][0]; y <= range[1][1]; ++y) {
        const int64_t row = ((x - low[0]) * size[1] + y - low[1]) * size[2] - low[2];
        for (int64_t z = range[2][0]; z <= range[2][1]; ++z) number_of_[static_cast<size_t>(row + z)] = 1;
      }
    }
  }
  size_t i = 0;
  for (int64_t x = low[0]; x <= high[0]; ++x) {
    for (int64_t y = low[1]; y <= high[1]; ++y) {
      for (int64_t z = low[2]; z <= high[2]; ++z) {
        uint32_t& number = number_of_[i++];
        if (number == 0) continue;
        bricks_.push_back(
            {static_cast<int32_t>(8 * x), static_cast<int32_t>(8 * y), static_cast<int32_t>(8 * z)});
        number = static_cast<uint32_t>(bricks_.size());
      }
    }
  }
  by_block_.assign(bricks_.size(), 0);
  brick_of_.clear();
  leaves_are_bricks_ = are_leaves_bricks(field.tree->layout(), field.id.node);
  if (!leaves_are_bricks_) return;
  for (const CellCoord& c : containers_) {
    const int64_t at =
        ((brick_of(c.x) - low[0]) * size[1] + brick_of(c.y) - low[1]) * size[2] + brick_of(c.z) - low[2];
    brick_of_.push_back(static_cast<int32_t>(number_of_[static_cast<size_t>(at)]) - 1);
    by_block_[static_cast<size_t>(brick_of_.back())] = 1;
  }
}

void BrickPacker::keep_filled(const Field<float>& field, int dim) {
  const BrickDomain domain = NodeBox(field.tree->layout().node_layout(field.id.node), dim).domain();
  is_filled_.assign(bricks_.size(), 0);
  for (size_t i = 0; i < bricks_.size(); ++i)
    if (by_block_[i] != 0) is_filled_[i] = kByBlock;
  auto* const bricks = ensure<CellCoord>(*device_, coords_, bricks_.size());
  auto* const flags = ensure<uint32_t>(*device_, flags_, bricks_.size());
  device_->wait_copy(bricks, bricks_.data(), bricks_.size() * sizeof(CellCoord));
  device_->wait_copy(flags, is_filled_.data(), is_filled_.size() * sizeof(uint32_t));
  launch_by_dim(program_, dim, find_filled_1, find_filled_2, find_filled_3,
                range(static_cast<int64_t>(bricks_.size())), field, bricks, domain, flags);
  if (leaves_are_bricks_) {
    auto* const brick_of = ensure<int32_t>(*device_, brick_of_buffer_, brick_of_.size());
    device_->wait_copy(brick_of, brick_of_.data(), brick_of_.size() * sizeof(int32_t));
    program_.launch(find_filled_blocks, over(detail::node_of(field.tree, field.id.node)), field, brick_of,
                    flags);
  }
  program_.wait();
  device_->wait_copy(is_filled_.data(), flags, is_filled_.size() * sizeof(uint32_t));
  size_t kept = 0;
  for (size_t i = 0; i < bricks_.size(); ++i) {
    if (is_filled_[i] == 0) continue;
    by_block_[kept] = by_block_[i];
    bricks_[kept] = bricks_[i];
    is_filled_[i] = static_cast<uint32_t>(++kept);  // its number, from 1
  }
  for (int32_t& brick : brick_of_) brick = static_cast<int32_t>(is_filled_[static_cast<size_t>(brick)]) - 1;
  by_block_.resize(kept);
  bricks_.resize(kept);
}

void BrickPacker::wait_pack(const Field<float>& field, BrickVolume& volume) {
  wait_pack(field, format_, volume);
  if (format_ == BrickFormat::kFloat) return;
  constexpr float kLargest = 65504, kSmallest = 1e-3f;  // below, the steps between halves are above 1/1000
  float largest = 0;
  bool is_finite = true;
  for (const BrickStats& b : volume.stats) {
    for (const float v : {b.min, b.max}) {
      if (std::isfinite(v))
        largest = std::max(largest, std::fabs(v));
      else
        is_finite = false;
    }
  }
  // Statistics of bricks with infinities say nothing of their other values.
  const bool fits = largest <= kLargest && (largest >= kSmallest || (largest == 0 && is_finite));
  if (fits) return;
  wait_pack(field, BrickFormat::kFloat, volume);
  format_ = BrickFormat::kFloat;
}

void BrickPacker::wait_pack(const Field<float>& field, BrickFormat format, BrickVolume& volume) {
  require_volume_field(field, *device_);
  field.tree->freeze();
  const int dim = static_cast<int>(field.tree->layout().dims());
  list_candidates(field, dim);
  if (!bricks_.empty()) keep_filled(field, dim);
  const size_t n = bricks_.size();
  volume.dim = dim;
  volume.format = format;
  volume.origins = bricks_;
  volume.stats.resize(n);
  volume.values.resize(n * kBrickValues * bytes_per_value(format));
  if (n == 0) return;

  const BrickDomain domain = NodeBox(field.tree->layout().node_layout(field.id.node), dim).domain();
  auto* const bricks = ensure<CellCoord>(*device_, coords_, n);
  auto* const stats = ensure<BrickStats>(*device_, stats_, n);
  auto* const values = ensure<std::byte>(*device_, values_, volume.values.size());
  device_->wait_copy(bricks, bricks_.data(), n * sizeof(CellCoord));
  auto* const by_block = ensure<uint32_t>(*device_, flags_, n);
  device_->wait_copy(by_block, by_block_.data(), n * sizeof(uint32_t));
  int32_t* brick_of = nullptr;
  if (leaves_are_bricks_) {
    brick_of = ensure<int32_t>(*device_, brick_of_buffer_, brick_of_.size());
    device_->wait_copy(brick_of, brick_of_.data(), brick_of_.size() * sizeof(int32_t));
  }
  const Loop all = range(static_cast<int64_t>(n)), leaves = over(detail::node_of(field.tree, field.id.node));
  const auto launch = [&](const auto& one, const auto& two, const auto& three, const auto& blocks, auto* to) {
    launch_by_dim(program_, dim, one, two, three, all, field, bricks, by_block, domain, stats, to);
    if (leaves_are_bricks_) program_.launch(blocks, leaves, field, brick_of, stats, to);
  };
  if (format == BrickFormat::kHalf)
    launch(pack_half_1, pack_half_2, pack_half_3, pack_blocks_half, reinterpret_cast<uint16_t*>(values));
  else
    launch(pack_float_1, pack_float_2, pack_float_3, pack_blocks_float, reinterpret_cast<float*>(values));
  program_.wait();
  device_->wait_copy(volume.stats.data(), stats, n * sizeof(BrickStats));
  device_->wait_copy(volume.values.data(), values, volume.values.size());
}

}  // namespace coppice::render
