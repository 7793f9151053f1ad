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
#include "sparse/launch_errors.h"
#include "sparse/runtime_counts.h"
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

}  // namespace

struct TreeStorage::AppendWork {
  const FieldDescription& field;
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

TreeStorage::AppendWork TreeStorage::begin_append(InStream& s, uint32_t field, const int32_t* coords,
                                                  uint64_t n) {
  const FieldDescription& f = fields_[field];
  AppendWork w{.field = f, .what = fmt::format("append to '{}' on {}", f.name, path(f.node))};
  const std::vector<CoppiceKeyStep> steps = key_steps(layouts_[f.node]);
  auto* const totals = &counts()->append;
  auto* const in_memory = counts()->key_steps;
  write_value(s, totals, {});
  COPPICE_CHECK(steps.size() <= RuntimeCounts::kMostKeySteps);
  if (!steps.empty()) s.wait_copy(in_memory, steps.data(), steps.size() * sizeof(CoppiceKeyStep));
  w.keys = {device_layout(f.node), coords, in_memory, static_cast<uint32_t>(steps.size()), 0, n};
  w.append.tree = state(), w.append.node = device_layout(f.node), w.append.totals = totals;
  std::copy_n(layouts_[nodes_[f.node].parent].origin, device::kMaxDims, w.append.origin_above);
  const std::vector<uint32_t> way = path_nodes(f.node);
  w.append.rows = key_space(way, way.size() - 1);
  if (w.append.rows == ~uint64_t{0})
    throw Error(ErrorCode::kInvalidArgument, w.what + ": its keys would need more than 64 bits");
  // A block is one thread's; a GPU has too many of them.
  if (device_->name() == "cuda") return w;
  w.num_blocks = std::clamp<uint64_t>(n / kLeastBlock, 1, kBlocksPerThread * device_->threads());
  w.num_blocks = std::min(w.num_blocks, (kCountsPerElement * n + kFewCounts) / w.append.rows);
  return w;
}

// Each list that there can be has a row.
void TreeStorage::count_elements(InStream& s, AppendWork& w) {
  const uint64_t n = w.keys.n, rows = w.append.rows;
  Parts parts;
  const size_t keys = parts.add<uint32_t>(n), counts = parts.add<uint32_t>(w.num_blocks * rows);
  reserve_scratch<std::byte>(s, scratch_elements_, parts.bytes());
  w.blocks = {(n + w.num_blocks - 1) / w.num_blocks, rows, part<uint32_t>(scratch_elements_, keys),
              part<uint32_t>(scratch_elements_, counts)};
  run_now_by(s, 1, program_, count_in_blocks, w.num_blocks, w.keys, w.blocks, w.append.totals);
}

// Each list that is named has a row.
void TreeStorage::sort_elements(InStream& s, AppendWork& w) {
  const uint64_t n = w.keys.n;
  Parts parts;
  const size_t keys = parts.add<uint64_t>(n), order = parts.add<uint32_t>(n), flags = parts.add<uint32_t>(n),
               starts = parts.add<uint32_t>(n);
  reserve_scratch<std::byte>(s, scratch_elements_, parts.bytes());
  auto* const sorted = part<uint64_t>(scratch_elements_, keys);
  auto* const indices = part<uint32_t>(scratch_elements_, order);
  auto* const is_first = part<uint32_t>(scratch_elements_, flags);
  auto* const first = part<uint32_t>(scratch_elements_, starts);
  run_now(s, program_, write_keys, n, w.keys, sorted, indices, w.append.totals);
  primitives::sort_by_key(s, sorted, indices, n);
  run_now(s, program_, flag_runs, n, static_cast<const uint64_t*>(sorted), is_first);
  w.append.rows = primitives::wait_select_if_flag(s, is_first, first, n);
  w.starts = first, w.order = indices;
}

// Works out what every list is to get.
void TreeStorage::plan_append(InStream& s, AppendWork& w) {
  const uint64_t n = w.keys.n, rows = w.append.rows;
  const bool is_sorted = w.num_blocks == 0;
  Parts parts;
  const size_t names = parts.add<uint64_t>(is_sorted ? rows : 0), counts = parts.add<uint32_t>(rows),
               ends = parts.add<CoppiceListEnd>(rows), chunks = parts.add<uint32_t>(rows + 1),
               coords = parts.add<int32_t>(3 * std::min(rows, n));
  reserve_scratch<std::byte>(s, scratch_rows_, parts.bytes());
  auto* const row_counts = part<uint32_t>(scratch_rows_, counts);
  if (is_sorted) {
    auto* const keys = part<uint64_t>(scratch_rows_, names);
    run_now(s, program_, name_lists, rows, part<const uint64_t>(scratch_elements_, 0), w.starts, rows, n,
            keys, row_counts);
    w.append.names = keys;
  } else {
    run_now(s, program_, add_up_blocks, rows, w.blocks, w.num_blocks, row_counts);
  }
  w.append.counts = row_counts;
  w.append.ends = part<CoppiceListEnd>(scratch_rows_, ends);
  w.append.new_chunks = part<uint32_t>(scratch_rows_, chunks);
  w.append.inactive_coords = part<int32_t>(scratch_rows_, coords);
  run_now(s, program_, plan_lists, rows, w.append);
  primitives::exclusive_scan(s, w.append.new_chunks, w.append.new_chunks, rows + 1, &w.append.totals->chunks);
  w.known = wait_read(s, w.append.totals);
  if (w.known.too_full != 0) refuse_too_long(s, w);
}

void TreeStorage::check_inside(InStream& s, const AppendWork& w) const {
  const uint64_t outside = wait_read(s, &w.append.totals->outside);
  if (outside == 0) return;
  throw Error(ErrorCode::kOutOfRange, fmt::format("{}: {} of the coordinates are outside the domain {}",
                                                  w.what, outside, domain_text(layouts_[w.field.node])));
}

void TreeStorage::refuse_too_long(InStream& s, const AppendWork& w) {
  int64_t* const said = counts()->too_long;
  run_now(s, program_, describe_list, 1, w.append, ~w.known.too_full, said);
  const std::vector<int64_t> list = wait_read(s, static_cast<const int64_t*>(said), 5);
  std::string at;
  for (uint32_t d = device::kMaxDims - dims(); d < device::kMaxDims; ++d)
    at += fmt::format("{}{}", at.empty() ? "" : ", ", list[d]);
  throw Error(
      ErrorCode::kOutOfRange,
      fmt::format("{}: the list at ({}) has {} elements and is to get {} more; {} are all it may have",
                  w.what, at, list[3], list[4], nodes_[w.field.node].max_length));
}

// Takes cells for all new chunks.
void TreeStorage::allocate_chunks(InStream& s, AppendWork& w) {
  const uint32_t index = nodes_[w.field.node].allocator;
  const AllocatorState a = make_cells_free(s, index, w.known.chunks, "append");
  w.new_cells = {a.free_list + a.free_used, a.free_size - a.free_used, a.num_cells};
  take_cells(s, a, index, w.known.chunks);
}

void TreeStorage::write_elements_in(InStream& s, const AppendWork& w, const void* values) {
  const NodeDescription& node = nodes_[w.field.node];
  const CoppiceElementPlace place{allocators_[node.allocator].cells->as<unsigned char>(),
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

void TreeStorage::append_bulk(InStream& s, uint32_t field, const int32_t* coords, const void* values,
                              uint64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(values);
  for (; n > kPiece; n -= kPiece, coords += 3 * kPiece, bytes += kPiece * fields_[field].bytes)
    append_bulk(s, field, coords, bytes, kPiece);
  if (n == 0) return;
  AppendWork w = begin_append(s, field, coords, n);
  if (w.num_blocks > 0)
    count_elements(s, w);
  else
    sort_elements(s, w);
  check_inside(s, w);
  plan_append(s, w);
  if (w.known.inactive > 0)
    activate_bulk(s, nodes_[w.field.node].parent, w.append.inactive_coords, w.known.inactive);
  allocate_chunks(s, w);
  run_now_by(s, 16, program_, link_chunks, w.append.rows, w.append, w.new_cells);
  write_elements_in(s, w, values);
  write_value(s, &state()->lists_changed, 1);
  commit_topology(s);
}

namespace detail {

AsyncValueRef<Chain> append_bytes(const TreeRef& tree, const FieldId& field, const int32_t* coords,
                                  const void* values, uint64_t n) {
  tree->freeze();
  if (field.field == kNoField || tree->node(field.node).kind != NodeKind::kDynamic)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("append: {} is no dynamic node, so that its fields have no lists",
                            tree->path(field.node)));
  const DeviceContext& device = tree->device().context();
  check_array(device, coords, n, 3 * sizeof(int32_t), "the coordinates to append at");
  check_array(device, values, n, tree->field(field.field).bytes, "what is to be appended");
  return tree->stream().enqueue("sparse.append", [tree, field = field.field, coords, values, n](InStream& s) {
    tree->append_bulk(s, field, coords, values, n);
  });
}

}  // namespace detail

}  // namespace coppice
