// Operations on buffers, given at once or traced (see buffer_operations.h).
#include "sparse/buffer_operations.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/error.h"
#include "sparse/device_operations.h"
#include "sparse/function.h"
#include "sparse/temporary_buffer.h"
#include "sparse/tracer.h"

namespace coppice {
namespace {

// Returns "primitives.sort_by_key" of "primitives.sort_by_key.u32".
std::string_view label_of(std::string_view operation) {
  const size_t type = operation.find('.', operation.find('.') + 1);
  return operation.substr(0, type);
}

template <class T>
constexpr std::string_view kSumTo;
template <>
constexpr std::string_view kSumTo<float> = "primitives.sum_to.f32";
template <>
constexpr std::string_view kSumTo<double> = "primitives.sum_to.f64";
template <>
constexpr std::string_view kSumTo<uint32_t> = "primitives.sum_to.u32";
template <>
constexpr std::string_view kSumTo<uint64_t> = "primitives.sum_to.u64";

// Gives it to the stream, or to what is traced on this thread.
template <class... P, class... Given>
AsyncValueRef<Chain> give(Device& device, std::string_view operation, DeviceWork (*make)(P...),
                          const Given&... operands) {
  if (Tracer* const tracer = Tracer::current())
    return tracer->add(operation, label_of(operation), {Tracer::Operand(operands)...});
  const auto check = [&](const auto& operand) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand)>, BufferRef>) {
      const auto refuse = [&](std::string_view why) {
        throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", label_of(operation), why));
      };
      if (!operand) refuse("there is no buffer");
      if (as_temporary(*operand) != nullptr) refuse("a temporary has memory in its function alone");
    }
  };
  (check(operands), ...);
  auto call = std::get<DeviceCall>(make(operands...).part);
  const std::string_view name = call.name;
  return device.default_stream().enqueue(name, [call = std::move(call)](InStream& s) { call.run(s); });
}

}  // namespace

BufferRef temporary(Device& device, size_t bytes) {
  if (Tracer* const tracer = Tracer::current()) return tracer->temporary(device, bytes);
  return temporary_outside_of_a_trace(share(&device), bytes);
}

AsyncValueRef<Chain> fill(Device& device, const BufferRef& buffer, int byte, int64_t offset, int64_t bytes) {
  return give(device, "buffer.fill", &fill_work, int64_t{byte}, buffer, offset, bytes);
}
AsyncValueRef<Chain> copy(Device& device, const BufferRef& to, int64_t to_offset, const BufferRef& from,
                          int64_t from_offset, int64_t bytes) {
  return give(device, "buffer.copy", &copy_work, to, to_offset, from, from_offset, bytes);
}
template <>
AsyncValueRef<Chain> sort_by_key<uint32_t>(Device& device, const BufferRef& keys, const BufferRef& values,
                                           int64_t n) {
  return give(device, "primitives.sort_by_key.u32", &sort_u32_work, keys, values, n);
}
template <>
AsyncValueRef<Chain> sort_by_key<uint64_t>(Device& device, const BufferRef& keys, const BufferRef& values,
                                           int64_t n) {
  return give(device, "primitives.sort_by_key.u64", &sort_u64_work, keys, values, n);
}
AsyncValueRef<Chain> exclusive_scan(Device& device, const BufferRef& in, const BufferRef& out, int64_t n) {
  return give(device, "primitives.exclusive_scan", &scan_work, in, out, n);
}
template <class T>
AsyncValueRef<Chain> sum_to(Device& device, const BufferRef& in, int64_t n, const BufferRef& out,
                            int64_t out_offset) {
  return give(device, kSumTo<T>, &sum_work<T>, in, n, out, out_offset);
}
template AsyncValueRef<Chain> sum_to<float>(Device&, const BufferRef&, int64_t, const BufferRef&, int64_t);
template AsyncValueRef<Chain> sum_to<double>(Device&, const BufferRef&, int64_t, const BufferRef&, int64_t);
template AsyncValueRef<Chain> sum_to<uint32_t>(Device&, const BufferRef&, int64_t, const BufferRef&, int64_t);
template AsyncValueRef<Chain> sum_to<uint64_t>(Device&, const BufferRef&, int64_t, const BufferRef&, int64_t);
AsyncValueRef<Chain> histogram(Device& device, const BufferRef& keys, int64_t n, const BufferRef& counts,
                               int64_t n_bins) {
  return give(device, "primitives.histogram", &histogram_work, keys, n, counts, n_bins);
}
AsyncValueRef<Chain> bin_starts(Device& device, const BufferRef& keys, int64_t n, const BufferRef& starts,
                                int64_t n_bins) {
  return give(device, "primitives.bin_starts", &bin_starts_work, keys, n, starts, n_bins);
}

}  // namespace coppice
