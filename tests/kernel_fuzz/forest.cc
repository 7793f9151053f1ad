// The trees that the fuzzer's kernels run over (see forest.h).
#include "tests/kernel_fuzz/forest.h"

#include <fmt/format.h>

#include "fill.kernels.h"
#include "gpu/host_access.h"
#include "sparse/read_back.h"
#include "tests/kernel_fuzz/values.h"

namespace coppice::kernel_fuzz {
namespace {

using fuzz_reference::At;

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

enum Kind {
  kRootDense,
  kPointerDense,
  kPointerMasked,
  kRootMasked,
  kDeepDense,
  kDeepMasked,
  kDenseDense,
  kPointer
};
constexpr int kKinds = 8;
const char* const kNames[kKinds] = {"dense",
                                    "pointer.dense",
                                    "pointer.bitmasked",
                                    "bitmasked",
                                    "pointer.pointer.dense",
                                    "pointer.dense.bitmasked",
                                    "dense.dense",
                                    "pointer"};
// Lengths of rows: one lane, full vectors of 8, rests, and what is no power of two.
constexpr int32_t kRows[] = {8, 1, 13, 16, 3, 20, 7, 9, 2, 5, 24, 4, 11, 6};

}  // namespace

Node child_node(const Node& parent, device::NodeKind kind, int dims, const int32_t (&e)[3]) {
  switch (dims * 10 + static_cast<int>(kind)) {
    case 10 + int(device::NodeKind::kDense):
      return parent.dense({e[2]});
    case 20 + int(device::NodeKind::kDense):
      return parent.dense({e[1], e[2]});
    case 30 + int(device::NodeKind::kDense):
      return parent.dense({e[0], e[1], e[2]});
    case 10 + int(device::NodeKind::kBitmasked):
      return parent.bitmasked({e[2]});
    case 20 + int(device::NodeKind::kBitmasked):
      return parent.bitmasked({e[1], e[2]});
    case 30 + int(device::NodeKind::kBitmasked):
      return parent.bitmasked({e[0], e[1], e[2]});
    case 10 + int(device::NodeKind::kPointer):
      return parent.pointer({e[2]});
    case 20 + int(device::NodeKind::kPointer):
      return parent.pointer({e[1], e[2]});
    default:
      return parent.pointer({e[0], e[1], e[2]});
  }
}

Grown::Grown(Program& program, int dims, int number, bool lists, bool blocks)
    : program_(program), dims_(dims), lists_(lists), blocks_only_(blocks) {
  plant(number);
  place_fields();
  tree_->freeze();
  activate(number);
  if (lists_) make_lists(number);
}

// Extents: few blocks of at most a hundred cells, so that the emulated GPU is through soon.
void Grown::plant(int number) {
  using device::NodeKind;
  int kind = number % kKinds;
  if (blocks_only_ &&
      (kind == kPointerMasked || kind == kRootMasked || kind == kDeepMasked || kind == kPointer)) {
    kind = kind == kRootMasked ? kRootDense : kPointerDense;  // a block's inactive cells must not be written
  }
  const uint64_t random = mix(number, dims_);
  TreeOptions options{.name = "fuzz"};
  int32_t upper[3] = {1, 1, 1}, top[3] = {1, 1, 1};
  for (int d = 3 - dims_; d < 3; ++d) {
    leaf_[d] = d == 2 ? kRows[(number / kKinds * 5 + number + dims_) % std::size(kRows)]
                      : 1 + int(random >> (8 * d)) % 4;
    upper[d] = dims_ == 1 ? 5 : dims_ == 2 ? 3 : 2;
    top[d] = dims_ == 3 ? 1 + (d == 1) : 2;
  }
  for (int& e : leaf_) e = std::max(e, 1);
  std::vector<std::pair<NodeKind, const int32_t*>> path;
  switch (kind) {
    case kRootDense:
      path = {{NodeKind::kDense, leaf_}};
      break;
    case kPointerDense:
      path = {{NodeKind::kPointer, upper}, {NodeKind::kDense, leaf_}};
      break;
    case kPointerMasked:
      path = {{NodeKind::kPointer, upper}, {NodeKind::kBitmasked, leaf_}};
      break;
    case kRootMasked:
      path = {{NodeKind::kBitmasked, leaf_}};
      break;
    case kDeepDense:
      path = {{NodeKind::kPointer, top}, {NodeKind::kPointer, upper}, {NodeKind::kDense, leaf_}};
      break;
    case kDeepMasked:
      path = {{NodeKind::kPointer, top}, {NodeKind::kDense, upper}, {NodeKind::kBitmasked, leaf_}};
      break;
    case kDenseDense:
      path = {{NodeKind::kDense, upper}, {NodeKind::kDense, leaf_}};
      break;
    default:
      path = {{NodeKind::kPointer, leaf_}};
      break;
  }
  int32_t all[3] = {1, 1, 1};
  for (const auto& [node_kind, e] : path) {
    for (int d = 0; d < 3; ++d) all[d] *= e[d];
  }
  for (int d = 3 - dims_; d < 3; ++d) {  // a multiple of the uppermost node's cells
    options.origin[d - (3 - dims_)] =
        (int(random >> (8 * d + 24) & 255) % 5 - 3) * (all[d] / path[0].second[d]);
  }
  tree_ = std::make_unique<Tree>(share(&program_.device()), options);
  Node at = tree_->root();
  for (const auto& [node_kind, e] : path) {
    const int32_t extents[3] = {e[0], e[1], e[2]};
    at = child_node(at, node_kind, dims_, extents);
  }
  if (number % 5 == 4 && kind != kPointer && !blocks_only_) at = at.layout(CellLayout::kArrayOfStructs);
  masked_ = kind == kPointerMasked || kind == kRootMasked || kind == kDeepMasked || kind == kPointer;
  all_active_ = kind == kRootDense || kind == kDenseDense;
  if (lists_) at = at.dynamic(64, 1 << (2 + number % 4));
  for (int d = 0; d < 3; ++d) {
    box_.extent[d] = all[d];
    box_.begin[d] = d < 3 - dims_ ? 0 : options.origin[d - (3 - dims_)];
  }
  description_ = fmt::format("{}{}{}", at.path(), number % 5 == 4 ? " aos" : "",
                             fmt::format(" origin [{}]", fmt::join(options.origin, ",")));
  node_ = std::make_unique<Node>(at);
}

void Grown::place_fields() {
  const auto place = [&]<class T>(const char* type, int n, T) {
    for (int k = 0; k < n; ++k) fields_[type].push_back(node_->place<T>(fmt::format("{}_{}", type, k)).id);
  };
  place("flag", 1, uint32_t{});  // 16 fields in all, the most that a node can have
  place("1", 2, uint8_t{});
  place("4", 6, uint32_t{});
  place("2", 2, uint16_t{});
  place("8", 5, uint64_t{});
}

FieldId Grown::field(const std::string& type, int number) const {
  return fields_.at(type == "flag" ? type : std::to_string(bytes_of(type))).at(number);
}

// A third of the leaves is not there; the masks of the others are full, of one cell, sparse or dense.
void Grown::activate(int number) {
  const int32_t(&b)[3] = box_.begin;
  active_.assign(box_cells(), 0);
  std::vector<std::array<int32_t, 3>> coords;
  for (int32_t x = 0; x < box_.extent[0]; ++x) {
    for (int32_t y = 0; y < box_.extent[1]; ++y) {
      for (int32_t z = 0; z < box_.extent[2]; ++z) {
        const uint64_t leaf = mix(number, x / leaf_[0], y / leaf_[1], z / leaf_[2]);
        const uint64_t cell = mix(leaf, x, y, z);
        const uint64_t one = leaf >> 32;
        bool active = all_active_ || leaf % 3 != 0;
        if (masked_ && leaf % 3 != 0) {
          const uint64_t pattern = leaf / 3 % 5;
          const int32_t local = (x % leaf_[0] * leaf_[1] + y % leaf_[1]) * leaf_[2] + z % leaf_[2];
          active = pattern == 0   ? true
                   : pattern == 1 ? uint64_t(local) == one % uint64_t(leaf_[0] * leaf_[1] * leaf_[2])
                   : pattern == 2 ? cell % 10 < 3
                   : pattern == 3 ? cell % 10 < 8
                                  : cell % 10 < 5;
        } else if (masked_) {
          active = false;
        }
        const At at{{b[0] + x, b[1] + y, b[2] + z}, 0, 0, {leaf_[0], leaf_[1], leaf_[2]}};
        const bool first = x % leaf_[0] == 0 && y % leaf_[1] == 0 && z % leaf_[2] == 0;
        if (first && active && !masked_) blocks_.push_back(at);
        if (!active) continue;
        active_[box_.index(at.coord[0], at.coord[1], at.coord[2])] = 1;
        cells_.push_back(at);
        std::array<int32_t, 3> c{};
        for (int d = 3 - dims_; d < 3; ++d) c[d - (3 - dims_)] = at.coord[d];
        coords.push_back(c);
      }
    }
  }
  const Node parent = *node_;
  if (!all_active_ && !lists_ && !coords.empty()) finish(parent.activate(coords));
  if (lists_) return;
  std::vector<int32_t> flags(box_cells());
  for (uint64_t i = 0; i < flags.size(); ++i) flags[i] = active_[i];
  wait_fill(field("flag", 0), 4, flags.data());
  std::vector<int32_t> back(flags.size());
  wait_read(field("flag", 0), 4, back.data());
  if (back != flags)
    throw Error(ErrorCode::kInternal, "the tree's active cells are not those that were asked for");
}

// A list for half of the cells, of 0 to 20 elements.
void Grown::make_lists(int number) {
  int64_t total = 0;
  for (const At& cell : cells_) {
    const uint64_t random = mix(number, cell.coord[0], cell.coord[1], cell.coord[2], 7);
    const int32_t length = random % 2 == 0 ? 0 : int32_t(random / 2 % 21);
    if (length == 0) continue;
    if (total > 400) break;
    for (int d = 0; d < 3; ++d) list_coords_.push_back(cell.coord[d]);
    list_firsts_.push_back(int32_t(total)), list_lengths_.push_back(length);
    for (int32_t e = 0; e < length; ++e) {
      At at = cell;
      at.index = e, at.number = total++;
      elements_.push_back(at);
    }
  }
}

template <class Cells, class Lists>
static void fill_with(Program& program, const Node& node, bool lists, const Cells& fill_kernel,
                      const Lists& list_kernel, FieldId id, const void* values, uint64_t n,
                      const FuzzBox& box, const std::vector<int32_t>& coords,
                      const std::vector<int32_t>& firsts, const std::vector<int32_t>& lengths) {
  Device& device = program.device();
  const auto run = [&]<class T>(T*) {
    const IntrusivePtr<Buffer> staged = wait_device_copy(device, static_cast<const T*>(values), n);
    const Field<T> field{id, node.tree()};
    if (!lists) {
      finish(program.launch(fill_kernel, over(node), field, staged->template as<T>(), box));
      return;
    }
    const IntrusivePtr<Buffer> c = wait_device_copy(device, coords), f = wait_device_copy(device, firsts),
                               l = wait_device_copy(device, lengths);
    finish(program.launch(list_kernel, range(int64_t(firsts.size())), field, c->template as<int32_t>(),
                          f->template as<int32_t>(), l->template as<int32_t>(), staged->template as<T>()));
  };
  [&]<class T>(
      const Kernel<void(Append<T>, Item, const int32_t*, const int32_t*, const int32_t*, const T*)>&) {
    run(static_cast<T*>(nullptr));
  }(list_kernel);
}

void Grown::wait_fill(FieldId id, uint32_t bytes, const void* values) {
  const auto fill = [&](const auto& cells, const auto& lists) {
    fill_with(program_, *node_, lists_, cells, lists, id, values, values_per_field(), box_, list_coords_,
              list_firsts_, list_lengths_);
  };
#define FUZZ_CASES(D)                      \
  case 10 * D + 1:                         \
    return fill(fill_8_##D, list_8_##D);   \
  case 10 * D + 2:                         \
    return fill(fill_16_##D, list_16_##D); \
  case 10 * D + 4:                         \
    return fill(fill_32_##D, list_32_##D); \
  case 10 * D + 8:                         \
    return fill(fill_64_##D, list_64_##D);
  switch (10 * uint32_t(dims_) + bytes) {
    FUZZ_CASES(1)
    FUZZ_CASES(2)
    FUZZ_CASES(3)
  }
#undef FUZZ_CASES
}

void Grown::wait_read(FieldId id, uint32_t bytes, void* values) const {
  const auto given = [&](const int32_t* c) {
    std::array<int32_t, 3> at{};
    for (int d = 3 - dims_; d < 3; ++d) at[d - (3 - dims_)] = c[d];
    return at;
  };
  if (!lists_) {
    const int32_t end[3] = {box_.begin[0] + box_.extent[0], box_.begin[1] + box_.extent[1],
                            box_.begin[2] + box_.extent[2]};
    const detail::HostCoord begin = given(box_.begin);
    detail::wait_read_bytes(node_->tree(), id, begin, detail::box_size(node_->tree(), begin, given(end)),
                            values);
    return;
  }
  auto* to = static_cast<std::byte*>(values);
  for (size_t i = 0; i < list_firsts_.size(); ++i) {
    const std::vector<std::byte> list =
        detail::wait_list_bytes(node_->tree(), id, given(&list_coords_[3 * i]));
    if (list.size() != uint64_t(list_lengths_[i]) * bytes)
      throw Error(ErrorCode::kInternal, "a list has another length");
    std::memcpy(to + uint64_t(list_firsts_[i]) * bytes, list.data(), list.size());
  }
}

}  // namespace coppice::kernel_fuzz
