// The trees that the fuzzer's kernels run over: a fixed set per number of dimensions, made when first asked
// for.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/kernel_fuzz/fill.h"
#include "tests/kernel_fuzz/reference.h"

namespace coppice::kernel_fuzz {

inline constexpr int kTreesPerDims = 24;
inline constexpr int kWholeFields = 50;  // added to a field's number: its values are small and whole
inline constexpr int kFlagField = 99;    // which cells are active, as i32; instead of a field's number

// A stateless generator of 64 bits (splitmix64).
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
template <class... Rest>
uint64_t mix(uint64_t x, Rest... rest) {
  return mix(mix(x) ^ mix(static_cast<uint64_t>(rest)...));
}

// A child of a kind, of extents whose leading axes the tree lacks.
Node child_node(const Node& parent, device::NodeKind kind, int dims, const int32_t (&extents)[3]);

// A tree with its active cells, and where they are.
class Grown {
 public:
  Grown(Program& program, int dims, int number, bool lists, bool blocks);

  const Node& node() const { return *node_; }
  const FuzzBox& box() const { return box_; }
  const std::string& description() const { return description_; }
  uint64_t box_cells() const { return uint64_t(box_.extent[0]) * box_.extent[1] * box_.extent[2]; }
  const std::vector<uint8_t>& active() const { return active_; }  // per cell of the box
  // Places of one launch over the node: cells, blocks or elements.
  const std::vector<fuzz_reference::At>& cells() const { return cells_; }
  const std::vector<fuzz_reference::At>& blocks() const { return blocks_; }
  const std::vector<fuzz_reference::At>& elements() const { return elements_; }
  int32_t block_cells() const { return leaf_[0] * leaf_[1] * leaf_[2]; }
  uint64_t values_per_field() const { return lists_ ? elements_.size() : box_cells(); }

  // By the type of its values, or "flag"; fields of one size are numbered together.
  FieldId field(const std::string& type, int number) const;
  // Values of all cells of the box, or of all elements.
  void wait_fill(FieldId field, uint32_t bytes, const void* values);
  void wait_read(FieldId field, uint32_t bytes, void* values) const;

 private:
  void plant(int number);
  void place_fields();
  void activate(int number);
  void make_lists(int number);

  Program& program_;
  int dims_;
  bool lists_, blocks_only_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Node> node_;
  std::string description_;
  FuzzBox box_{};
  int32_t leaf_[3] = {1, 1, 1};  // extent of the innermost node
  bool masked_ = false, all_active_ = false;
  std::vector<uint8_t> active_;
  std::vector<fuzz_reference::At> cells_, blocks_, elements_;
  std::vector<int32_t> list_coords_, list_firsts_, list_lengths_;
  std::map<std::string, std::vector<FieldId>> fields_;
};

}  // namespace coppice::kernel_fuzz
