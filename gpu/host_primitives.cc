// Primitive calls that are given as data, on the host (see primitives.h).
#include "core/check.h"
#include "gpu/pair_sort.h"
#include "gpu/primitives.h"

namespace coppice::primitives {
namespace {

using Kind = PrimitiveCall::Kind;
using Type = PrimitiveCall::Type;

// Holds a call whose addresses are this process's.
template <class T>
void run_typed(const PrimitiveCall& call, void* scratch) {
  const auto* const in = static_cast<const T*>(call.in);
  using Sum = decltype(sum(in, call.n));
  switch (call.kind) {
    case Kind::kSum:
      *static_cast<Sum*>(call.result) = sum(in, call.n);
      return;
    case Kind::kMax:
      *static_cast<T*>(call.result) = max(in, call.n);
      return;
    case Kind::kSegmentedSum:
      return segmented_sum(in, call.starts, call.count, static_cast<Sum*>(call.first));
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (call.kind == Kind::kSortByKey)
      return sort_pairs(static_cast<T*>(call.first), static_cast<uint32_t*>(call.second), call.n, scratch);
  }
  COPPICE_CHECK(false, "a primitive that has no such type");
}

void run_of_words(const PrimitiveCall& call, void* scratch) {
  const auto* const in = static_cast<const uint32_t*>(call.in);
  auto* const first = static_cast<uint32_t*>(call.first);
  auto* const second = static_cast<uint32_t*>(call.second);
  uint64_t result = 0;
  switch (call.kind) {
    case Kind::kExclusiveScan:
      result = exclusive_scan(in, first, call.n);
      break;
    case Kind::kSelectIfFlag:
      result = select_if_flag(in, first, call.n);
      break;
    case Kind::kRunLengthEncode:
      result = run_length_encode(in, first, second, call.n);
      break;
    case Kind::kHistogram:
      return histogram(in, call.n, first, call.count);
    case Kind::kBinStarts:
      return bin_starts(in, call.n, first, call.count);
    default:
      return run_typed<uint32_t>(call, scratch);
  }
  if (call.result != nullptr) *static_cast<uint64_t*>(call.result) = result;
}

}  // namespace

size_t scratch_bytes(const PrimitiveCall& call) {
  if (call.kind != Kind::kSortByKey) return 0;
  return call.type == Type::kU64 ? pair_sort_scratch_bytes<uint64_t>(call.n)
                                 : pair_sort_scratch_bytes<uint32_t>(call.n);
}

void run_on_host(const PrimitiveCall& call, const std::function<void*(const void*)>& host_address,
                 void* scratch) {
  PrimitiveCall here = call;
  here.in = host_address(call.in);
  here.starts = static_cast<const uint32_t*>(host_address(call.starts));
  here.first = host_address(call.first);
  here.second = host_address(call.second);
  here.result = host_address(call.result);
  switch (call.type) {
    case Type::kU32:
      return run_of_words(here, scratch);
    case Type::kU64:
      return run_typed<uint64_t>(here, scratch);
    case Type::kF32:
      return run_typed<float>(here, scratch);
    case Type::kF64:
      return run_typed<double>(here, scratch);
  }
}

}  // namespace coppice::primitives
