// Trees that kernels change (see growing.h).
#include "tests/kernel_fuzz/growing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "fill.kernels.h"
#include "gpu/host_access.h"
#include "sparse/read_back.h"
#include "tests/kernel_fuzz/forest.h"
#include "tests/kernel_fuzz/values.h"

namespace coppice::kernel_fuzz {
namespace {

using device::NodeKind;
using Bytes = std::vector<unsigned char>;

constexpr int32_t kUpper[3][3] = {{1, 1, 5}, {1, 3, 2}, {2, 2, 2}};
constexpr int32_t kLeaf[3][3] = {{1, 1, 8}, {1, 4, 5}, {3, 2, 4}};
constexpr int32_t kMaxLength = 16384;

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// Both kinds of trees share this: the box of EXTENTS, and a path of nodes to its cells.
class Boxed : public GrowingTree {
 public:
  Boxed(Program& fills, int dims, const std::string& type)
      : fills_(fills),
        dims_(dims),
        bytes_(bytes_of(type)),
        is_float_(type == "f32"),
        tree_(share(&fills.device()), TreeOptions{.name = "grown"}) {
    for (int d = 0; d < 3; ++d) box_.extent[d] = kUpper[dims - 1][d] * kLeaf[dims - 1][d];
  }
  FieldId field() const override { return field_; }

 protected:
  // Returns a leaf of one level with all cells, or of two.
  Node plant(NodeKind one, NodeKind upper, NodeKind leaf, bool two) {
    const int32_t(&u)[3] = kUpper[dims_ - 1], (&l)[3] = kLeaf[dims_ - 1];
    if (!two) return child_node(tree_.root(), one, dims_, box_.extent);
    return child_node(child_node(tree_.root(), upper, dims_, u), leaf, dims_, l);
  }
  FieldId place(Node& node, const char* name) const {
    return bytes_ == 4 ? node.place<uint32_t>(name).id : node.place<uint64_t>(name).id;
  }
  size_t number(const int32_t* c) const { return static_cast<size_t>(box_.index(c[0], c[1], c[2])); }
  size_t cells() const { return static_cast<size_t>(box_.extent[0]) * box_.extent[1] * box_.extent[2]; }
  std::array<int32_t, 3> coord(size_t cell) const {
    const auto [x, y, z] = box_.extent;
    const auto i = static_cast<int32_t>(cell);
    return {i / z / y, i / z % y, i % z};
  }
  detail::HostCoord given(size_t cell) const {
    detail::HostCoord at{};
    for (int d = 3 - dims_; d < 3; ++d) at[d - (3 - dims_)] = coord(cell)[d];
    return at;
  }
  std::string place_text(size_t cell) const { return fmt::format("({})", fmt::join(coord(cell), ", ")); }

  uint32_t append(const int32_t*, const void*) override { return 0; }
  void set_element(const int32_t*, int64_t, const void*) override {}
  uint32_t length(const int32_t*) const override { return 0; }
  const void* element(const int32_t*, int64_t) const override { return nullptr; }
  void set(const int32_t*, const void*) override {}
  void activate(const int32_t*) override {}
  void deactivate(const int32_t*) override {}
  bool is_active(const int32_t*) const override { return false; }

  Program& fills_;
  int dims_;
  uint32_t bytes_;
  bool is_float_;
  Tree tree_;
  FuzzBox box_{};
  FieldId field_{};
};

class Lists final : public Boxed {
 public:
  Lists(Program& fills, int dims, int number, const std::string& type, bool filled, uint64_t seed)
      : Boxed(fills, dims, type), lists_(cells()) {
    Node parent = plant(number % 2 == 0 ? NodeKind::kDense : NodeKind::kPointer, NodeKind::kPointer,
                        number % 3 == 0 ? NodeKind::kBitmasked : NodeKind::kDense, number % 4 < 2);
    Node node = parent.dynamic(kMaxLength, 1 << (2 + number % 4));
    field_ = place(node, "values");
    tree_.freeze();
    if (filled) fill(seed);
  }

  uint32_t append(const int32_t* c, const void* value) override {
    Bytes& list = lists_[number(c)];
    const auto* from = static_cast<const unsigned char*>(value);
    list.insert(list.end(), from, from + bytes_);
    is_ordered_ = false;
    return static_cast<uint32_t>(list.size() / bytes_ - 1);
  }
  void set_element(const int32_t* c, int64_t index, const void* value) override {
    Bytes& list = lists_[number(c)];
    list.resize(std::max(list.size(), static_cast<size_t>(index + 1) * bytes_));
    std::memcpy(&list[static_cast<size_t>(index) * bytes_], value, bytes_);
  }
  uint32_t length(const int32_t* c) const override {
    return static_cast<uint32_t>(lists_[number(c)].size() / bytes_);
  }
  const void* element(const int32_t* c, int64_t index) const override {
    return index < length(c) ? &lists_[number(c)][static_cast<size_t>(index) * bytes_] : nullptr;
  }

  std::string wait_difference() override {
    for (size_t cell = 0; cell < lists_.size(); ++cell) {
      const std::vector<std::byte> got = detail::wait_list_bytes(tree_.root().tree(), field_, given(cell));
      if (got.size() != lists_[cell].size())
        return fmt::format("list {}: got {} elements, want {}", place_text(cell), got.size() / bytes_,
                           lists_[cell].size() / bytes_);
      if (elements(reinterpret_cast<const unsigned char*>(got.data()), got.size()) !=
          elements(lists_[cell].data(), lists_[cell].size()))
        return fmt::format("list {} of {} elements: other values", place_text(cell), got.size() / bytes_);
    }
    return "";
  }

 private:
  // In order, where the kernel says which is which. All NaNs are one.
  std::vector<uint64_t> elements(const unsigned char* from, size_t bytes) const {
    std::vector<uint64_t> all(bytes / bytes_);
    for (size_t i = 0; i < all.size(); ++i) std::memcpy(&all[i], from + i * bytes_, bytes_);
    if (is_float_) {
      for (uint64_t& bits : all)
        if ((bits & 0x7fffffffu) > 0x7f800000u) bits = 0x7fc00000u;
    }
    if (!is_ordered_) std::sort(all.begin(), all.end());
    return all;
  }

  void fill(uint64_t seed) {
    std::vector<int32_t> coords, firsts, lengths;
    std::vector<uint32_t> values;
    for (size_t cell = 0; cell < lists_.size(); ++cell) {
      const int32_t length = static_cast<int32_t>(mix(seed, cell) % 12) - 4;
      if (length <= 0) continue;
      for (const int32_t c : coord(cell)) coords.push_back(c);
      firsts.push_back(static_cast<int32_t>(values.size())), lengths.push_back(length);
      for (int32_t i = 0; i < length; ++i) {
        values.push_back(static_cast<uint32_t>(mix(seed, cell, i)));
        set_element(coord(cell).data(), i, &values.back());
      }
    }
    Device& device = fills_.device();
    const IntrusivePtr<Buffer> c = wait_device_copy(device, coords), f = wait_device_copy(device, firsts),
                               l = wait_device_copy(device, lengths), v = wait_device_copy(device, values);
    const Field<uint32_t> handle{field_, {}};
    const auto& kernel = dims_ == 1 ? list_32_1 : dims_ == 2 ? list_32_2 : list_32_3;
    finish(fills_.launch(kernel, range(static_cast<int64_t>(firsts.size())), handle, c->as<int32_t>(),
                         f->as<int32_t>(), l->as<int32_t>(), v->as<uint32_t>()));
  }

  std::vector<Bytes> lists_;
  bool is_ordered_ = true;
};

class Cells final : public Boxed {
 public:
  Cells(Program& fills, int dims, int number, const std::string& type, uint64_t seed)
      : Boxed(fills, dims, type), values_(cells() * bytes_), active_(cells()) {
    node_ = std::make_unique<Node>(plant(number % 2 == 0 ? NodeKind::kBitmasked : NodeKind::kPointer,
                                         number % 3 == 0 ? NodeKind::kDense : NodeKind::kPointer,
                                         NodeKind::kBitmasked, number % 4 < 2));
    field_ = place(*node_, "values");
    flag_ = node_->place<uint32_t>("flag").id;
    tree_.freeze();
    begin(seed);
  }

  void set(const int32_t* c, const void* value) override {
    activate(c);
    std::memcpy(&values_[number(c) * bytes_], value, bytes_);
  }
  void activate(const int32_t* c) override { active_[number(c)] = 1; }
  void deactivate(const int32_t* c) override {
    active_[number(c)] = 0;
    std::memset(&values_[number(c) * bytes_], 0, bytes_);
  }
  bool is_active(const int32_t* c) const override { return active_[number(c)] != 0; }

  std::string wait_difference() override {
    fill(flag_, std::vector<uint32_t>(cells(), 1));
    std::vector<uint32_t> flags(cells());
    Bytes got(values_.size());
    const detail::HostCoord first{};
    const detail::BoxSize size = detail::box_size(node_->tree(), first, past_the_end());
    detail::wait_read_bytes(node_->tree(), flag_, first, size, flags.data());
    detail::wait_read_bytes(node_->tree(), field_, first, size, got.data());
    for (size_t cell = 0; cell < cells(); ++cell) {
      if (flags[cell] != active_[cell])
        return fmt::format("cell {}: active {}, want {}", place_text(cell), flags[cell], active_[cell]);
      if (!is_same(&got[cell * bytes_], &values_[cell * bytes_]))
        return fmt::format("cell {}: another value", place_text(cell));
    }
    return "";
  }

 private:
  // Some cells are active, with values.
  void begin(uint64_t seed) {
    std::vector<std::array<int32_t, 3>> coords;
    std::vector<uint32_t> words(cells());
    std::vector<uint64_t> doubles(cells());
    for (size_t cell = 0; cell < cells(); ++cell) {
      if (mix(seed, cell) % 3 == 0) continue;
      coords.push_back(given(cell)), active_[cell] = 1;
      words[cell] = static_cast<uint32_t>(doubles[cell] = mix(seed, cell, 1) & 0x3fffffff);
      std::memcpy(&values_[cell * bytes_],
                  bytes_ == 4 ? static_cast<const void*>(&words[cell]) : &doubles[cell], bytes_);
    }
    finish(node_->activate(coords));
    bytes_ == 4 ? fill(field_, words) : fill(field_, doubles);
  }
  template <class T>
  void fill(FieldId id, const std::vector<T>& values) {
    const IntrusivePtr<Buffer> staged = wait_device_copy(fills_.device(), values);
    const Field<T> field{id, {}};
    const auto run = [&](const auto& kernel) {
      finish(fills_.launch(kernel, over(*node_), field, staged->template as<T>(), box_));
    };
    const auto by_dims = [&](const auto& one, const auto& two, const auto& three) {
      if (dims_ == 1) return run(one);
      return dims_ == 2 ? run(two) : run(three);
    };
    if constexpr (sizeof(T) == 4)
      by_dims(fill_32_1, fill_32_2, fill_32_3);
    else
      by_dims(fill_64_1, fill_64_2, fill_64_3);
  }
  detail::HostCoord past_the_end() const {
    detail::HostCoord end = given(cells() - 1);
    for (int32_t& e : end) ++e;
    return end;
  }
  bool is_same(const unsigned char* a, const unsigned char* b) const {
    if (std::memcmp(a, b, bytes_) == 0) return true;
    uint32_t x, y;
    std::memcpy(&x, a, 4), std::memcpy(&y, b, 4);
    return is_float_ && (x & 0x7fffffffu) > 0x7f800000u && (y & 0x7fffffffu) > 0x7f800000u;
  }

  std::unique_ptr<Node> node_;
  FieldId flag_{};
  Bytes values_;
  std::vector<uint32_t> active_;
};

}  // namespace

std::unique_ptr<GrowingTree> make_lists(Program& fills, int dims, int number, const std::string& type,
                                        bool filled, uint64_t seed) {
  return std::make_unique<Lists>(fills, dims, number, type, filled, seed);
}
std::unique_ptr<GrowingTree> make_cells(Program& fills, int dims, int number, const std::string& type,
                                        uint64_t seed) {
  return std::make_unique<Cells>(fills, dims, number, type, seed);
}

}  // namespace coppice::kernel_fuzz
