// Kernels of reductions (sparse/reductions.h): sums, extremes and dot products of trees and buffers.
//
// A CPU's thread has all lanes of a slice in its registers, a GPU's threads have one each (reduced_values.h).
#include "sparse/runtime/containers.h"
#include "sparse/runtime/reduced_values.h"

using namespace coppice;
using namespace coppice::device;

namespace {

// ---- what is done with values: `Sum` is what a lane has, none() of no value

template <class T>
struct SumOf {
  using Type = double;
};
template <>
struct SumOf<uint64_t> {
  using Type = uint64_t;  // of all integers: sums wrap
};
template <>
struct SumOf<int32_t> : SumOf<uint64_t> {};
template <>
struct SumOf<uint32_t> : SumOf<uint64_t> {};

template <class S>
struct Adds {
  using Sum = S;
  static constexpr Sum none() { return 0; }
  static Sum join(Sum a, Sum b) { return a + b; }
};
// A NaN among the values is the result.
template <class S>
struct TakesLeast {
  using Sum = S;
  static constexpr Sum none() {
    if constexpr (std::is_floating_point_v<S>) return __builtin_inf();
    return std::is_signed_v<S> ? static_cast<S>(~uint64_t{0} >> 1) : static_cast<S>(~uint64_t{0});
  }
  static Sum join(Sum a, Sum b) { return b < a || b != b ? b : a; }
};
template <class S>
struct TakesMost {
  using Sum = S;
  static constexpr Sum none() {
    if constexpr (std::is_floating_point_v<S>) return -__builtin_inf();
    return std::is_signed_v<S> ? static_cast<S>(uint64_t{1} << 63) : S{0};
  }
  static Sum join(Sum a, Sum b) { return b > a || b != b ? b : a; }
};
// Takes values of type T by an operation; of dot products, those of two arrays.
template <class Operation, class T, bool kIsDot = false>
struct Taking : Operation {
  using Value = T;
  using Sum = typename Operation::Sum;
  static COPPICE_INLINE Sum take(Sum s, const unsigned char* a, const unsigned char* b) {
#pragma clang fp contract(off)
    const Sum first = static_cast<Sum>(*reinterpret_cast<const T*>(a));
    if constexpr (kIsDot) return s + first * static_cast<Sum>(*reinterpret_cast<const T*>(b));
    return Operation::join(s, first);
  }
};
struct Counting : Adds<uint64_t> {
  using Value = unsigned char;
  static COPPICE_INLINE Sum take(Sum s, const unsigned char*, const unsigned char*) { return s + 1; }
};

// ---- the cells of a container, or a part of it

// Cells `first` to `end` of a dense container, a buffer, or a chunk of a list: all are there.
template <uint32_t kStride>  // 0: as said
struct AllCells {
  const unsigned char *a, *b;
  const CoppiceReduced& r;
  uint64_t n;
  template <class R>
  COPPICE_INLINE typename R::Sum take(typename R::Sum s, uint64_t k) const {
    return R::take(s, a + k * (kStride != 0 ? kStride : r.stride[0]),
                   b + k * (kStride != 0 ? kStride : r.stride[1]));
  }
};
struct MaskedCells {
  const unsigned char *a, *b;
  const CoppiceReduced& r;
  uint64_t n;
  const uint64_t* mask;  // from the first of these cells on, whose bits begin a word
  template <class R>
  COPPICE_INLINE typename R::Sum take(typename R::Sum s, uint64_t k) const {
    if ((mask[k / 64] >> (k % 64) & 1) == 0) return s;
    return R::take(s, a + k * r.stride[0], b + k * r.stride[1]);
  }
};
struct PointedCells {
  const unsigned char* cells;  // of the allocator
  uint64_t cell_bytes;
  const CoppiceReduced& r;
  uint64_t n;
  const uint32_t* slots;
  template <class R>
  COPPICE_INLINE typename R::Sum take(typename R::Sum s, uint64_t k) const {
    if (slots[k] == kAmbientCell) return s;
    const unsigned char* const cell = cells + slots[k] * cell_bytes;
    return R::take(s, cell + r.offset[0], cell + r.offset[1]);
  }
};

// A CPU's thread takes all lanes' cells; a GPU's those of its own, whose sum is sums[0].
template <class R, class Cells>
COPPICE_INLINE void take_all(typename R::Sum* sums, uint32_t lane, bool has_all, const Cells& cells) {
  if (!has_all) {
    for (uint64_t k = lane; k < cells.n; k += kReductionLanes) sums[0] = cells.template take<R>(sums[0], k);
    return;
  }
  uint64_t k = 0;
  for (; k + kReductionLanes <= cells.n; k += kReductionLanes) {
    for (uint32_t l = 0; l < kReductionLanes; ++l) sums[l] = cells.template take<R>(sums[l], k + l);
  }
  for (uint32_t l = 0; k + l < cells.n; ++l) sums[l] = cells.template take<R>(sums[l], k + l);
}

template <class R>
COPPICE_INLINE void take_contiguous(typename R::Sum* sums, uint32_t lane, bool has_all,
                                    const CoppiceReduced& r, const unsigned char* a, const unsigned char* b,
                                    uint64_t n) {
  constexpr uint32_t kStride = sizeof(typename R::Value);
  if (r.stride[0] == kStride && r.stride[1] == kStride)
    take_all<R>(sums, lane, has_all, AllCells<kStride>{a, b, r, n});
  else
    take_all<R>(sums, lane, has_all, AllCells<0>{a, b, r, n});
}

// Takes cells `first` to `end` of a container of the node.
template <class R>
COPPICE_INLINE void take_container(typename R::Sum* sums, uint32_t lane, bool has_all,
                                   const CoppiceReduced& r, const unsigned char* container, uint64_t first,
                                   uint64_t end) {
  const LevelLayout& level = last_level(r.node);
  const unsigned char *const a = container + r.offset[0] + first * r.stride[0], *const b =
                                                                                    container + r.offset[1] +
                                                                                    first * r.stride[1];
  if (level.kind == NodeKind::kDense) return take_contiguous<R>(sums, lane, has_all, r, a, b, end - first);
  if (level.kind == NodeKind::kDynamic) {
    const uint64_t count = reinterpret_cast<const CellHeader*>(container)->count;
    const uint64_t last = count < end ? count : end;
    return take_contiguous<R>(sums, lane, has_all, r, a, b, last > first ? last - first : 0);
  }
  if (level.kind == NodeKind::kBitmasked) {
    const auto* const mask = reinterpret_cast<const uint64_t*>(container) + first / 64;
    return take_all<R>(sums, lane, has_all, MaskedCells{a, b, r, end - first, mask});
  }
  take_all<R>(sums, lane, has_all,
              PointedCells{r.tree->allocators[level.allocator].cells, level.cell_bytes, r, end - first,
                           reinterpret_cast<const uint32_t*>(container) + first});
}

// A large container is several pieces.
COPPICE_INLINE uint64_t values_of_container(const LevelLayout& l) {
  return l.kind == NodeKind::kDynamic ? l.chunk_cells : cells_of(l);
}
COPPICE_INLINE uint64_t pieces_of(uint64_t cells) { return (cells + kPieceCells - 1) / kPieceCells; }
static_assert(kPieceCells % 64 == 0, "a piece begins with a word of the mask");

template <class R>
COPPICE_INLINE void take_slice(typename R::Sum* sums, uint32_t lane, bool has_all, const CoppiceReduced& r,
                               const LoopElement* elements, const unsigned char* a, const unsigned char* b,
                               uint32_t slice) {
  const uint64_t cells = r.tree == nullptr ? r.n : values_of_container(last_level(r.node)),
                 per_container = pieces_of(cells);
  const uint64_t pieces = r.tree == nullptr ? per_container : *r.containers * per_container;
  // Without an overflow of 64 bits: there are fewer than 2^53 pieces.
  for (uint64_t p = pieces * slice / kReductionSlices; p < pieces * (slice + 1) / kReductionSlices; ++p) {
    const uint64_t first = p % per_container * kPieceCells,
                   end = cells - first < kPieceCells ? cells : first + kPieceCells;
    if (r.tree != nullptr)
      take_container<R>(sums, lane, has_all, r, elements[p / per_container].container, first, end);
    else
      take_contiguous<R>(sums, lane, has_all, r, a + r.offset[0] + first * r.stride[0],
                         b + r.offset[1] + first * r.stride[1], end - first);
  }
}

// Joins the sums of a slice's lanes, which threads of a warp have that stand side by side.
template <class R>
COPPICE_INLINE typename R::Sum join_lanes(typename R::Sum sum) {
  static_assert(sizeof sum == sizeof(uint64_t) && 32 % kReductionLanes == 0);
  const uint32_t first = coppice_warp_lane() / kReductionLanes * kReductionLanes;
  const auto bits = __builtin_bit_cast(uint64_t, sum);
  const auto sum_of = [&](uint32_t lane) {
    const uint64_t low = coppice_shuffle_u32(~0u, static_cast<uint32_t>(bits), first + lane),
                   high = coppice_shuffle_u32(~0u, static_cast<uint32_t>(bits >> 32), first + lane);
    return __builtin_bit_cast(typename R::Sum, high << 32 | low);
  };
  typename R::Sum all = sum_of(0);
  for (uint32_t lane = 1; lane < kReductionLanes; ++lane) all = R::join(all, sum_of(lane));
  return all;
}

// Item i is the team of slices kSlicesOfTeam * i and on. partials[kReductionSlices]
template <class R>
COPPICE_INLINE void reduce(Team team, CoppiceReduced r, const unsigned char* a, const unsigned char* b,
                           typename R::Sum* partials) {
  using Sum = typename R::Sum;
  const auto* const elements = static_cast<const LoopElement*>(team.launch->elements);
  const auto first = static_cast<uint32_t>(team.index) * kSlicesOfTeam;
  if (team.lanes() == 1) {
    for (uint32_t slice = first; slice < first + kSlicesOfTeam; ++slice) {
      Sum sums[kReductionLanes];
      for (Sum& s : sums) s = R::none();
      take_slice<R>(sums, 0, true, r, elements, a, b, slice);
      Sum all = sums[0];
      for (uint32_t lane = 1; lane < kReductionLanes; ++lane) all = R::join(all, sums[lane]);
      partials[slice] = all;
    }
    return;
  }
  for (uint32_t i = team.lane(); i < kSlicesOfTeam * kReductionLanes; i += team.lanes()) {
    Sum sum = R::none();
    take_slice<R>(&sum, i % kReductionLanes, false, r, elements, a, b, first + i / kReductionLanes);
    sum = join_lanes<R>(sum);
    if (i % kReductionLanes == 0) partials[first + i / kReductionLanes] = sum;
  }
}

// Joins all sums into `out`, a number of so many bytes; the first row of the partials becomes scratch.
template <class Operation>
COPPICE_INLINE void finish(Team team, typename Operation::Sum* partials, unsigned char* out, uint32_t bytes) {
  using Sum = typename Operation::Sum;
  for (uint32_t i = 1; i < kReductionSlices / kJoined; ++i) {
    for (uint32_t j = team.lane(); j < kJoined; j += team.lanes())
      partials[j] = Operation::join(partials[j], partials[i * kJoined + j]);
  }
  team.barrier();
  if (team.lane() != 0) return;
  Sum all = Operation::none();
  for (uint32_t j = 0; j < kJoined; ++j) all = Operation::join(all, partials[j]);
  if (bytes == sizeof(Sum)) {
    *reinterpret_cast<Sum*>(out) = all;
  } else if constexpr (std::is_floating_point_v<Sum>) {
    *reinterpret_cast<float*>(out) = static_cast<float>(all);
  } else {
    // The result of no value is that of 64 bits.
    if constexpr (std::is_signed_v<Sum>)
      all = all > INT32_MAX ? INT32_MAX : all < INT32_MIN ? INT32_MIN : all;
    *reinterpret_cast<uint32_t*>(out) = static_cast<uint32_t>(all);
  }
}

template <class T>
using Add = Taking<Adds<typename SumOf<T>::Type>, T>;
template <class T>
using Dot = Taking<Adds<typename SumOf<T>::Type>, T, true>;

}  // namespace

COPPICE_KERNEL_OF(reduce_count, reduce<Counting>)
COPPICE_KERNEL_OF(reduce_sum_f32, reduce<Add<float>>)
COPPICE_KERNEL_OF(reduce_sum_f64, reduce<Add<double>>)
COPPICE_KERNEL_OF(reduce_sum_i32, reduce<Add<int32_t>>)
COPPICE_KERNEL_OF(reduce_sum_u32, reduce<Add<uint32_t>>)
COPPICE_KERNEL_OF(reduce_sum_u64, reduce<Add<uint64_t>>)
COPPICE_KERNEL_OF(reduce_dot_f32, reduce<Dot<float>>)
COPPICE_KERNEL_OF(reduce_dot_f64, reduce<Dot<double>>)
COPPICE_KERNEL_OF(reduce_dot_i32, reduce<Dot<int32_t>>)
COPPICE_KERNEL_OF(reduce_dot_u32, reduce<Dot<uint32_t>>)
COPPICE_KERNEL_OF(reduce_dot_u64, reduce<Dot<uint64_t>>)
COPPICE_KERNEL_OF(reduce_min_f32, reduce<Taking<TakesLeast<double>, float>>)
COPPICE_KERNEL_OF(reduce_min_f64, reduce<Taking<TakesLeast<double>, double>>)
COPPICE_KERNEL_OF(reduce_min_i32, reduce<Taking<TakesLeast<int64_t>, int32_t>>)
COPPICE_KERNEL_OF(reduce_min_u32, reduce<Taking<TakesLeast<uint64_t>, uint32_t>>)
COPPICE_KERNEL_OF(reduce_min_u64, reduce<Taking<TakesLeast<uint64_t>, uint64_t>>)
COPPICE_KERNEL_OF(reduce_min_i64, reduce<Taking<TakesLeast<int64_t>, int64_t>>)
COPPICE_KERNEL_OF(reduce_max_f32, reduce<Taking<TakesMost<double>, float>>)
COPPICE_KERNEL_OF(reduce_max_f64, reduce<Taking<TakesMost<double>, double>>)
COPPICE_KERNEL_OF(reduce_max_i32, reduce<Taking<TakesMost<int64_t>, int32_t>>)
COPPICE_KERNEL_OF(reduce_max_u32, reduce<Taking<TakesMost<uint64_t>, uint32_t>>)
COPPICE_KERNEL_OF(reduce_max_u64, reduce<Taking<TakesMost<uint64_t>, uint64_t>>)
COPPICE_KERNEL_OF(reduce_max_i64, reduce<Taking<TakesMost<int64_t>, int64_t>>)
COPPICE_KERNEL_OF(finish_sum_f64, finish<Adds<double>>)
COPPICE_KERNEL_OF(finish_sum_u64, finish<Adds<uint64_t>>)
COPPICE_KERNEL_OF(finish_min_f64, finish<TakesLeast<double>>)
COPPICE_KERNEL_OF(finish_min_i64, finish<TakesLeast<int64_t>>)
COPPICE_KERNEL_OF(finish_min_u64, finish<TakesLeast<uint64_t>>)
COPPICE_KERNEL_OF(finish_max_f64, finish<TakesMost<double>>)
COPPICE_KERNEL_OF(finish_max_i64, finish<TakesMost<int64_t>>)
COPPICE_KERNEL_OF(finish_max_u64, finish<TakesMost<uint64_t>>)
