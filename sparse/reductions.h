// Sums, extremes and dot products over the active cells of a node, or over a buffer's values.
//
//     const double mass = wait_sum(density);                     // blocks the host until the stream is there
//     AsyncValueRef<float> fastest = max(speed);                 // does not
//     sum_to(density, total);                                    // an f64 at the buffer's begin, for kernels
//     wait_sum(BufferValues<float>{device, particles, n, offsetof(Particle, mass), sizeof(Particle)});
//
// They run in the order of the device's default stream and see what the launches before them did; what is not
// active plays no part. Cells are those of dense, bitmasked and pointer nodes, and the elements of dynamic
// nodes' lists.
//
//   sum    double of float and double, uint64_t or int64_t of integers, which wraps; 0 of none
//   dot    the sum of a[i] * b[i] of two fields of one node, or two buffers, in the same types; 0 of none
//   min    of the values' own type; of none +inf, or the type's largest
//   max    of the values' own type; of none -inf, or the type's smallest
//   count  uint64_t: active cells, or elements of lists
//
// Values are float, double, int32_t, uint32_t, int64_t or uint64_t. Of Eigen's vectors and matrices of these
// there are sums and extremes, component by component. A NaN among the values is the result.
//
// The order in which values are joined follows from their number and place alone
// (runtime/reduced_values.h), so that a result has the same bits with any number of threads, on the cpu and
// on the emulated GPU; on cuda it is the same from run to run, and as on the cpu (sums and products of
// doubles are not fused). Lists have the order that appends gave them.
//
// The forms that end in `_to` are traced inside of trace() (sparse/function.h), as two launches for each
// component, and nothing is read back. The others are an Error there that says so. Cost: two launches for
// each component, some 20 us on the cpu, and reading the values once.
//
// All ranks of a tree over ranks ask together, and each gets the result of its own cells
// (sparse/ranks/cluster.h joins them).
//
// Errors, thrown at once: kInvalidArgument for a field that is none, of two nodes or devices, a temporary
// field without values, the root; for a place in `out` that its alignment does not divide; kOutOfRange
// where a buffer is too small when the call is made. Those of launches before arrive with the value.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sparse/buffer_operations.h"
#include "sparse/tree.h"

namespace coppice {

// Names n values of type T in a buffer: value i begins at byte offset_bytes + i * stride_bytes. In a trace
// the buffer may be a temporary.
template <class T>
struct BufferValues {
  using Value = T;
  IntrusivePtr<Device> device;
  BufferRef buffer;
  int64_t n = 0;
  int64_t offset_bytes = 0, stride_bytes = sizeof(T);
};

namespace detail {

enum class Reduction : uint8_t { kSum, kDot, kMin, kMax, kCount };
enum class Number : uint8_t { kF32, kF64, kI32, kU32, kI64, kU64 };

template <class T>
constexpr int number_of() {
  if constexpr (std::is_same_v<T, float>) return static_cast<int>(Number::kF32);
  if constexpr (std::is_same_v<T, double>) return static_cast<int>(Number::kF64);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) == 4)
    return static_cast<int>(std::is_signed_v<T> ? Number::kI32 : Number::kU32);
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    return static_cast<int>(std::is_signed_v<T> ? Number::kI64 : Number::kU64);
  return -1;
}

template <class T>
using SumOfNumber = std::conditional_t<std::is_floating_point_v<T>, double,
                                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Tells of a type of values its numbers, how many it has, and what its sum is. Eigen's types have all they
// need.
template <class T>
struct Reducible {
  static_assert(
      number_of<T>() >= 0,
      "a reduction is of float, double, int32_t, uint32_t, int64_t, uint64_t or Eigen's types of these");
  using Component = T;
  static constexpr uint32_t kComponents = 1;
  using Sum = SumOfNumber<T>;
};
template <class T>
requires requires {
  typename T::Scalar;
  T::SizeAtCompileTime;
}
struct Reducible<T> {
  static_assert(T::SizeAtCompileTime > 0 && sizeof(T) == T::SizeAtCompileTime * sizeof(typename T::Scalar),
                "a reduction of Eigen's types is of those of fixed size");
  using Component = typename Reducible<typename T::Scalar>::Component;
  static constexpr uint32_t kComponents = T::SizeAtCompileTime;
  using Sum = std::remove_cvref_t<decltype(std::declval<T>().template cast<SumOfNumber<Component>>().eval())>;
};

// Describes what is reduced without its type.
struct ReducedValues {
  TreeRef tree;  // null: a buffer's
  FieldId field;
  IntrusivePtr<Device> device;
  BufferRef buffer;
  int64_t n = 0, offset_bytes = 0, stride_bytes = 0;
  Number number = Number::kF32;
  uint32_t components = 1;  // of each value
};

template <class T>
ReducedValues reduced_values(const Field<T>& field) {
  using R = Reducible<T>;
  ReducedValues values{.tree = field.tree, .field = field.id};
  values.number = static_cast<Number>(number_of<typename R::Component>()), values.components = R::kComponents;
  return values;
}
template <class T>
ReducedValues reduced_values(const BufferValues<T>& given) {
  using R = Reducible<T>;
  return {.device = given.device,
          .buffer = given.buffer,
          .n = given.n,
          .offset_bytes = given.offset_bytes,
          .stride_bytes = given.stride_bytes,
          .number = static_cast<Number>(number_of<typename R::Component>()),
          .components = R::kComponents};
}

template <class V>
inline constexpr bool is_reduced = false;
template <class T>
inline constexpr bool is_reduced<Field<T>> = true;
template <class T>
inline constexpr bool is_reduced<BufferValues<T>> = true;

// `b` is a dot product's other side. The results are one behind the other in `out`.
AsyncValueRef<Chain> reduce_to(Reduction what, const ReducedValues& a, const ReducedValues* b,
                               const BufferRef& out, int64_t out_offset);
using ReducedBytes = std::array<std::byte, 256>;  // holds a matrix of 4 x 4 doubles, and more
AsyncValueRef<ReducedBytes> reduce(Reduction what, const ReducedValues& a, const ReducedValues* b);

template <class R>
AsyncValueRef<R> reduced(Reduction what, const ReducedValues& a, const ReducedValues* b = nullptr) {
  static_assert(sizeof(R) <= sizeof(ReducedBytes), "a reduction of values with too many components");
  return reduce(what, a, b).map([](ReducedBytes& bytes) {
    R result;
    std::memcpy(static_cast<void*>(&result), bytes.data(), sizeof result);
    return result;
  });
}
ReducedValues cells_of(const Node& node);

template <class T>
T wait_value(AsyncValueRef<T> value) {
  wait(value);
  if (value.is_error()) throw value.error();
  return value.get();
}

}  // namespace detail

template <class V>
using SumOf = typename detail::Reducible<typename V::Value>::Sum;

// Put the result into memory of the device: a SumOf<V>, a value, or a uint64_t, at that byte of `out`.
template <class V>
requires detail::is_reduced<V> AsyncValueRef<Chain> sum_to(const V& values, const BufferRef& out,
                                                           int64_t out_offset = 0) {
  return detail::reduce_to(detail::Reduction::kSum, detail::reduced_values(values), nullptr, out, out_offset);
}
template <class V>
requires detail::is_reduced<V> AsyncValueRef<Chain> min_to(const V& values, const BufferRef& out,
                                                           int64_t out_offset = 0) {
  return detail::reduce_to(detail::Reduction::kMin, detail::reduced_values(values), nullptr, out, out_offset);
}
template <class V>
requires detail::is_reduced<V> AsyncValueRef<Chain> max_to(const V& values, const BufferRef& out,
                                                           int64_t out_offset = 0) {
  return detail::reduce_to(detail::Reduction::kMax, detail::reduced_values(values), nullptr, out, out_offset);
}
template <class V>
requires detail::is_reduced<V> AsyncValueRef<Chain> dot_to(const V& a, const V& b, const BufferRef& out,
                                                           int64_t out_offset = 0) {
  const detail::ReducedValues other = detail::reduced_values(b);
  return detail::reduce_to(detail::Reduction::kDot, detail::reduced_values(a), &other, out, out_offset);
}
inline AsyncValueRef<Chain> count_to(const Node& node, const BufferRef& out, int64_t out_offset = 0) {
  return detail::reduce_to(detail::Reduction::kCount, detail::cells_of(node), nullptr, out, out_offset);
}

// Give the host the result when the stream has come there.
template <class V>
requires detail::is_reduced<V> AsyncValueRef<SumOf<V>> sum(const V& values) {
  return detail::reduced<SumOf<V>>(detail::Reduction::kSum, detail::reduced_values(values));
}
template <class V>
requires detail::is_reduced<V> AsyncValueRef<typename V::Value> min(const V& values) {
  return detail::reduced<typename V::Value>(detail::Reduction::kMin, detail::reduced_values(values));
}
template <class V>
requires detail::is_reduced<V> AsyncValueRef<typename V::Value> max(const V& values) {
  return detail::reduced<typename V::Value>(detail::Reduction::kMax, detail::reduced_values(values));
}
template <class V>
requires detail::is_reduced<V> AsyncValueRef<SumOf<V>> dot(const V& a, const V& b) {
  const detail::ReducedValues other = detail::reduced_values(b);
  return detail::reduced<SumOf<V>>(detail::Reduction::kDot, detail::reduced_values(a), &other);
}
inline AsyncValueRef<uint64_t> count_cells(const Node& node) {
  return detail::reduced<uint64_t>(detail::Reduction::kCount, detail::cells_of(node));
}

// Block the host until then. Throw the error of an earlier launch, if one failed.
template <class V>
requires detail::is_reduced<V> SumOf<V> wait_sum(const V& values) { return detail::wait_value(sum(values)); }
template <class V>
requires detail::is_reduced<V>
typename V::Value wait_min(const V& values) { return detail::wait_value(min(values)); }
template <class V>
requires detail::is_reduced<V>
typename V::Value wait_max(const V& values) { return detail::wait_value(max(values)); }
template <class V>
requires detail::is_reduced<V> SumOf<V> wait_dot(const V& a, const V& b) {
  return detail::wait_value(dot(a, b));
}
inline uint64_t wait_count_cells(const Node& node) { return detail::wait_value(count_cells(node)); }

}  // namespace coppice
