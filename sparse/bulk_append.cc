// Appending many elements at once (see bulk_append.h): counting by list, one allocation,
// whole chunks.
//
// Needs no atomics on lists. Where few lists are possible, blocks of elements count by list on their own
// and every list adds their counts up, which gives each element its place; where many are, keys are
// sorted and lists are the runs.
#include "sparse/bulk_append.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/check.h"
#include "core/error.h"
#include "gpu/buffer_ranges.h"
#include "gpu/stream_primitives.h"
#include "runtime_append.kernels.h"
#include "sparse/bulk_activation.h"
#include "sparse/launch_errors.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::NodeKind;

namespace {

constexpr uint64_t kPiece = uint64_t{1} << 28;  // elements at a time; indices have 32 bits
// Counting pays while the tables that blocks count in are about as large as what is counted.
constexpr uint64_t kLeastBlock = 4096, kBlocksPerThread = 4, kCountsPerElement = 1, kFewCounts = 1024;
constexpr uint64_t kOrderBatch = 1024;

// Lays out parts of one buffer, each on a cache line.
class Parts {
 public:
  template <class T>
  size_t add(uint64_t items) {
    const size_t at = bytes_;
    bytes_ += device::align_up(items * sizeof(T), 64);
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};
template <class T>
T* part(const IntrusivePtr<Buffer>& buffer, size_t at) {
  return reinterpret_cast<T*>(buffer->as<std::byte>() + at);
}

// Returns the steps from a coordinate to a list's key.
std::vector<CoppiceKeyStep> key_steps(const device::NodeLayout& node) {
  std::vector<CoppiceKeyStep> steps;
  for (uint32_t l = 0; l + 1 < node.depth; ++l) {
    for (uint32_t d = 0; d < device::kMaxDims; ++d) {
      const uint32_t span = node.level[l].span[d], extent = node.level[l].extent[d];
      if (extent == 1) continue;
      const bool is_shift = std::has_single_bit(span) && std::has_single_bit(extent);
      const auto log2 = [](uint32_t n) { return static_cast<uint32_t>(std::countr_zero(n)); };
      steps.push_back({d, is_shift ? log2(span) : span, is_shift ? log2(extent) : extent, is_shift});
    }
  }
  return steps;
}

// Describes an append in the making.
struct AppendWork {
  const TreeField& field;
  std::string what;  // for messages
  CoppiceKeys keys{};
  CoppiceAppend append{};
  CoppiceAppendTotals known{};
  CoppiceNewCells new_cells{};
  // These are used by counting,
  uint64_t num_blocks = 0;  // 0: by sorting
  CoppiceBlocks blocks{};
  // and these by sorting.
  const uint32_t *starts = nullptr, *order = nullptr;
};

// Appends to the lists of one tree.
class BulkAppend {
 public:
  BulkAppend(InStream& s, TreeStorage& tree)
      : tree_(tree),
        layout_(tree.layout()),
        memory_(tree.memory()),
        scratch_(tree.scratch()),
        growth_(tree.growth()),
        program_(tree.programs().in_order(s)) {}

  // Appends as many elements as have indices of 32 bits.
  void run(InStream& s, uint32_t field, const int32_t* coords, const void* values, uint64_t n);

 private:
  AppendWork begin_append(InStream& s, uint32_t field, const int32_t* coords, uint64_t n);
  void count_elements(InStream& s, AppendWork& work);
  void sort_elements(InStream& s, AppendWork& work);
  void check_inside(InStream& s, const AppendWork& work) const;
  void plan_append(InStream& s, AppendWork& work);
  [[noreturn]] void refuse_too_long(InStream& s, const AppendWork& work);
  void allocate_chunks(InStream& s, AppendWork& work);
  void write_elements_in(InStream& s, const AppendWork& work, const void* values);

  TreeStorage& tree_;
  const TreeLayout& layout_;
  TreeMemory& memory_;
  TreeScratch& scratch_;
  TreeGrowth& growth_;
  Program& program_;
};

AppendWork BulkAppend::begin_append(InStream& s, uint32_t field, const int32_t* coords, uint64_t n) {
  const TreeField& f = layout_.field(field);
  AppendWork w{.field = f, .what = fmt::format("append to '{}' on {}", f.name, layout_.path(f.node))};
  const std::vector<CoppiceKeyStep> steps = key_steps(layout_.node_layout(f.node));
  auto* const totals = &memory_.counts()->append;
  auto* const in_memory = memory_.counts()->key_steps;
  write_value(s, totals, {});
  COPPICE_CHECK(steps.size() <= RuntimeCounts::kMostKeySteps);
  if (!steps.empty()) s.wait_copy(in_memory, steps.data(), steps.size() * sizeof(CoppiceKeyStep));
  w.keys = {memory_.device_layout(f.node), coords, in_memory, static_cast<uint32_t>(steps.size()), 0, n};
  w.append.tree = memory_.state(), w.append.node = memory_.device_layout(f.node), w.append.totals = totals;
  std::copy_n(layout_.node_layout(layout_.node(f.node).parent).origin, device::kMaxDims,
              w.append.origin_above);
  const std::vector<uint32_t> way = layout_.path_nodes(f.node);
  w.append.rows = layout_.key_space(way, way.size() - 1);
  if (w.append.rows == ~uint64_t{0})
    throw Error(ErrorCode::kInvalidArgument, w.what + ": its keys would need more than 64 bits");
  // A block is one thread's; a GPU has too many of them.
  if (memory_.device().name() == "cuda") return w;
  w.num_blocks = std::clamp<uint64_t>(n / kLeastBlock, 1, kBlocksPerThread * memory_.device().threads());
  w.num_blocks = std::min(w.num_blocks, (kCountsPerElement * n + kFewCounts) / w.append.rows);
  return w;
}

// Each list that there can be has a row.
void BulkAppend::count_elements(InStream& s, AppendWork& w) {
  const uint64_t n = w.keys.n, rows = w.append.rows;
  Parts parts;
  const size_t keys = parts.add<uint32_t>(n), counts = parts.add<uint32_t>(w.num_blocks * rows);
  scratch_.reserve<std::byte>(s, scratch_.elements, parts.bytes());
  w.blocks = {(n + w.num_blocks - 1) / w.num_blocks, rows, part<uint32_t>(scratch_.elements, keys),
              part<uint32_t>(scratch_.elements, counts)};
  run_now_by(s, 1, program_, count_in_blocks, w.num_blocks, w.keys, w.blocks, w.append.totals);
}

// Each list that is named has a row.
void BulkAppend::sort_elements(InStream& s, AppendWork& w) {
  const uint64_t n = w.keys.n;
  Parts parts;
  const size_t keys = parts.add<uint64_t>(n), order = parts.add<uint32_t>(n), flags = parts.add<uint32_t>(n),
               starts = parts.add<uint32_t>(n);
  scratch_.reserve<std::byte>(s, scratch_.elements, parts.bytes());
  auto* const sorted = part<uint64_t>(scratch_.elements, keys);
  auto* const indices = part<uint32_t>(scratch_.elements, order);
  auto* const is_first = part<uint32_t>(scratch_.elements, flags);
  auto* const first = part<uint32_t>(scratch_.elements, starts);
  run_now(s, program_, write_keys, n, w.keys, sorted, indices, w.append.totals);
  primitives::sort_by_key(s, sorted, indices, n);
  run_now(s, program_, flag_runs, n, static_cast<const uint64_t*>(sorted), is_first);
  w.append.rows = primitives::wait_select_if_flag(s, is_first, first, n);
  w.starts = first, w.order = indices;
}

// Works out what every list is to get.
void BulkAppend::plan_append(InStream& s, AppendWork& w) {
  const uint64_t n = w.keys.n, rows = w.append.rows;
  const bool is_sorted = w.num_blocks == 0;
  Parts parts;
  const size_t names = parts.add<uint64_t>(is_sorted ? rows : 0), counts = parts.add<uint32_t>(rows),
               ends = parts.add<CoppiceListEnd>(rows), chunks = parts.add<uint32_t>(rows + 1),
               coords = parts.add<int32_t>(3 * std::min(rows, n));
  scratch_.reserve<std::byte>(s, scratch_.rows, parts.bytes());
  auto* const row_counts = part<uint32_t>(scratch_.rows, counts);
  if (is_sorted) {
    auto* const keys = part<uint64_t>(scratch_.rows, names);
    run_now(s, program_, name_lists, rows, part<const uint64_t>(scratch_.elements, 0), w.starts, rows, n,
            keys, row_counts);
    w.append.names = keys;
  } else {
    run_now(s, program_, add_up_blocks, rows, w.blocks, w.num_blocks, row_counts);
  }
  w.append.counts = row_counts;
  w.append.ends = part<CoppiceListEnd>(scratch_.rows, ends);
  w.append.new_chunks = part<uint32_t>(scratch_.rows, chunks);
  w.append.inactive_coords = part<int32_t>(scratch_.rows, coords);
  run_now(s, program_, plan_lists, rows, w.append);
  primitives::exclusive_scan(s, w.append.new_chunks, w.append.new_chunks, rows + 1, &w.append.totals->chunks);
  w.known = wait_read(s, w.append.totals);
  if (w.known.too_full != 0) refuse_too_long(s, w);
}

void BulkAppend::check_inside(InStream& s, const AppendWork& w) const {
  const uint64_t outside = wait_read(s, &w.append.totals->outside);
  if (outside == 0) return;
  throw Error(ErrorCode::kOutOfRange,
              fmt::format("{}: {} of the coordinates are outside the domain {}", w.what, outside,
                          domain_text(layout_.node_layout(w.field.node))));
}

void BulkAppend::refuse_too_long(InStream& s, const AppendWork& w) {
  int64_t* const said = memory_.counts()->too_long;
  run_now(s, program_, describe_list, 1, w.append, ~w.known.too_full, said);
  const std::vector<int64_t> list = wait_read(s, static_cast<const int64_t*>(said), 5);
  std::string at;
  for (uint32_t d = device::kMaxDims - layout_.dims(); d < device::kMaxDims; ++d)
    at += fmt::format("{}{}", at.empty() ? "" : ", ", list[d]);
  throw Error(
      ErrorCode::kOutOfRange,
      fmt::format("{}: the list at ({}) has {} elements and is to get {} more; {} are all it may have",
                  w.what, at, list[3], list[4], layout_.node(w.field.node).max_length));
}

// Takes cells for all new chunks.
void BulkAppend::allocate_chunks(InStream& s, AppendWork& w) {
  const uint32_t index = layout_.node(w.field.node).allocator;
  const AllocatorState a = growth_.make_cells_free(s, index, w.known.chunks, "append");
  w.new_cells = {a.free_list + a.free_used, a.free_size - a.free_used, a.num_cells};
  growth_.take_cells(s, a, index, w.known.chunks);
}

void BulkAppend::write_elements_in(InStream& s, const AppendWork& w, const void* values) {
  const TreeNode& node = layout_.node(w.field.node);
  const CoppiceElementPlace place{memory_.allocators()[node.allocator].cells->as<unsigned char>(),
                                  node.cell_bytes,
                                  w.field.offset,
                                  w.field.stride,
                                  static_cast<uint32_t>(w.field.bytes),
                                  static_cast<uint32_t>(std::min<uint64_t>(8, w.field.alignment)),
                                  static_cast<uint32_t>(std::countr_zero(node.num_cells)),
                                  0,
                                  w.new_cells};
  const auto* ends = static_cast<const CoppiceListEnd*>(w.append.ends);
  const auto* bytes = static_cast<const unsigned char*>(values);
  if (w.num_blocks > 0) {
    run_now_by(s, 1, program_, write_blocks, w.num_blocks, w.blocks, w.keys.n, ends, place, bytes);
  } else {
    run_now_by(s, 8, program_, write_in_order, (w.keys.n + kOrderBatch - 1) / kOrderBatch, w.starts,
               w.append.rows, w.order, w.keys.n, kOrderBatch, ends, place, bytes);
  }
}

void BulkAppend::run(InStream& s, uint32_t field, const int32_t* coords, const void* values, uint64_t n) {
  AppendWork w = begin_append(s, field, coords, n);
  if (w.num_blocks > 0)
    count_elements(s, w);
  else
    sort_elements(s, w);
  check_inside(s, w);
  plan_append(s, w);
  if (w.known.inactive > 0)
    activate_bulk(s, tree_, layout_.node(w.field.node).parent, w.append.inactive_coords, w.known.inactive);
  allocate_chunks(s, w);
  run_now_by(s, 16, program_, link_chunks, w.append.rows, w.append, w.new_cells);
  write_elements_in(s, w, values);
  write_value(s, &memory_.state()->lists_changed, 1);
  tree_.collector().commit_topology(s);
}

// Appends `n` values of a field on a dynamic node, one to the list at each of the coordinates, i32[n][3],
// in the order in which they are given; activates what lies above. Errors: kOutOfRange when a coordinate is
// outside the domain or a list would be too long, kOutOfMemory; then nothing has been appended, and in the
// latter case cells above lists may have been activated.
void append_bulk(InStream& s, TreeStorage& tree, uint32_t field, const int32_t* coords, const void* values,
                 uint64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(values);
  BulkAppend append(s, tree);
  for (; n > kPiece; n -= kPiece, coords += 3 * kPiece, bytes += kPiece * tree.layout().field(field).bytes)
    append.run(s, field, coords, bytes, kPiece);
  if (n > 0) append.run(s, field, coords, bytes, n);
}

}  // namespace

namespace detail {

AsyncValueRef<Chain> append_bytes(const TreeRef& tree, const FieldId& field, const int32_t* coords,
                                  const void* values, uint64_t n) {
  tree->freeze();
  if (field.field == kNoField || tree->layout().node(field.node).kind != NodeKind::kDynamic)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("append: {} is no dynamic node, so that its fields have no lists",
                            tree->layout().path(field.node)));
  const DeviceContext& device = tree->device().context();
  if (tree->layout().field(field.field).is_temporary())
    throw Error(ErrorCode::kInvalidArgument, fmt::format("append: {} is a temporary; append to another field",
                                                         tree->layout().field_name(field.field)));
  check_array(device, coords, n, 3 * sizeof(int32_t), "the coordinates to append at");
  check_array(device, values, n, tree->layout().field(field.field).bytes, "what is to be appended");
  return tree->stream().enqueue("sparse.append", [tree, field = field.field, coords, values, n](InStream& s) {
    append_bulk(s, *tree, field, coords, values, n);
  });
}

}  // namespace detail

}  // namespace coppice
