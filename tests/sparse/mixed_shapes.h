// Trees of the mixed model's sequences (mixed_model.h): some by hand, and any number that are drawn.
#pragma once
#include <string>
#include <vector>

#include "tests/sparse/mixed_launches.h"

namespace coppice::mixed {

// Trees of a sequence, by shape.
struct MixedKind {
  std::string name;
  std::vector<MixedShape> shapes;
  int num_kinds = MixedLaunches::kWithoutTools;  // of launches
};

// ---- shapes that are drawn

// A tree of 2 to 1500 leaf cells: any kinds of nodes, extents that are powers of two and
// others, some of it below zero.
inline MixedShape random_shape(std::mt19937& random, int dims) {
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  using enum device::NodeKind;
  MixedShape s{dims, {}, 0, 1 << pick(4), {0, 0, 0}};
  const int num_levels = 1 + pick(4), most = dims == 1 ? 12 : dims == 2 ? 6 : 4;
  int cells = 1;
  for (int l = 0; l < num_levels; ++l) {
    const bool is_leaf = l + 1 == num_levels;
    // Any but dense above a leaf, most of the time.
    MixedLevel level{std::array{kPointer, kBitmasked, kDense, is_leaf ? kDense : kPointer}[pick(4)],
                     {1, 1, 1}};
    for (int d = 0; d < dims; ++d) {
      const int extent = 1 + pick(most);
      if (cells * extent <= 1500) level.extent[d] = extent, cells *= extent;
    }
    s.levels.push_back(level);
  }
  if (cells == 1) s.levels[0].extent[0] = 2;
  for (int d = 0; d < dims; ++d) s.before[d] = pick(s.levels[0].extent[d] + 1);
  s.lists_below = pick(num_levels);
  return s;
}
// Sets of trees that are drawn: a kernel is compiled for each that it runs over, so
// there are not as many as seeds.
inline constexpr int kDrawnKinds = 24;

// One to three trees; half of those behind the first have its extents and origin, and nodes of other kinds.
inline MixedKind random_kind(int seed) {
  std::mt19937 random(hash_u32(static_cast<uint64_t>(seed % kDrawnKinds), 3));
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  MixedKind kind{"RandomShapes", {}, MixedLaunches::kKinds};
  const int dims = 1 + pick(3);
  for (int n = 1 + pick(3); n > 0; --n) {
    MixedShape s = random_shape(random, dims);
    if (!kind.shapes.empty() && pick(2) == 0) {
      s = kind.shapes[0];
      for (MixedLevel& level : s.levels) {
        using enum device::NodeKind;
        level.kind = std::array{kPointer, kBitmasked, kDense}[pick(3)];
      }
      s.lists_below = pick(s.num_levels());
    }
    kind.shapes.push_back(s);
  }
  return kind;
}

// ---- shapes that are always the same
inline const std::vector<MixedKind>& mixed_kinds() {
  using enum device::NodeKind;
  static const std::vector<MixedKind> kinds = {
      {"PointerDense", {{1, {{kPointer, {60, 1, 1}}, {kDense, {7, 1, 1}}}, 0, 4, {13, 0, 0}}}},
      {"PointerPointerDenseAndBitmasked",
       {{2, {{kPointer, {3, 5, 1}}, {kPointer, {4, 3, 1}}, {kDense, {3, 2, 1}}}, 1, 4, {1, 2, 0}},
        {2, {{kBitmasked, {12, 15, 1}}}, 0, 2, {5, 0, 0}}}},
      {"PointerBitmaskedAndDense",
       {{3, {{kPointer, {3, 2, 3}}, {kBitmasked, {3, 4, 3}}}, 1, 4, {1, 1, 2}},
        {3, {{kDense, {3, 4, 5}}}, 0, 8, {0, 3, 1}}}},
      {"BitmaskedPointerDenseAndPointerAndPointerDense",
       {{2, {{kBitmasked, {3, 5, 1}}, {kPointer, {4, 2, 1}}, {kDense, {3, 3, 1}}}, 1, 4, {2, 0, 0}},
        {2, {{kPointer, {9, 8, 1}}}, 0, 1, {0, 5, 0}},
        {2, {{kPointer, {4, 3, 1}}, {kDense, {3, 5, 1}}}, 1, 2, {1, 1, 0}}}},
      {"PointerPointer", {{1, {{kPointer, {9, 1, 1}}, {kPointer, {7, 1, 1}}}, 1, 4, {2, 0, 0}}}},
      {"BitmaskedBitmaskedAndPointerPointerBitmasked",
       {{3, {{kBitmasked, {5, 3, 1}}, {kBitmasked, {2, 3, 5}}}, 1, 4, {0, 0, 0}},
        {3, {{kPointer, {3, 3, 2}}, {kPointer, {1, 2, 3}}, {kBitmasked, {3, 3, 1}}}, 0, 2, {1, 2, 1}}}},
  };
  return kinds;
}
// By number; those behind them are drawn, another for every seed.
inline int random_kind_number() { return static_cast<int>(mixed_kinds().size()); }
inline MixedKind kind_of(int number, int seed) {
  return number >= random_kind_number() ? random_kind(seed) : mixed_kinds()[static_cast<size_t>(number)];
}

}  // namespace coppice::mixed
