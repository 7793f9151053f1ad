// print() and COPPICE_ASSERT for kernels: records for the host, which formats them when the launch is done.
//
//     print(cell, "density {:.3f} at level {}", rho, level);
//     COPPICE_ASSERT(item, i < n);
//     COPPICE_ASSERT(item, i < n, "i is {}", i);
//
// Device-clean. `cell` and `item` are the kernel's own Cell, Block or Item. Arguments are integers, floats,
// bools, chars, string literals, and Eigen's vectors and matrices of a fixed size, each of whose numbers gets
// what stands in the {}: [1.00, 2.50]; {} and what may stand in it are fmt's, and the number of arguments is
// checked when the kernel is compiled. What a kernel prints is read when its launch has ended, in the order
// of its items and, of one item, in the order in which it printed (Device::set_message_handler; stdout unless
// told). The buffer of a device has room for 1 MiB a launch; what does not fit is dropped and counted. Cost:
// one atomic add and a copy of text and arguments.
//
// COPPICE_ASSERT is compiled in with COPPICE_DEBUG=checks only, and its condition evaluated only then. The
// first failed one of a launch is the launch's error; the kernel goes on.
#pragma once
#include <type_traits>

#include "sparse/device/arguments.h"
#include "sparse/device/message_text.h"

namespace coppice::device {

// Writes a record's words one behind the other.
struct MessageWriter {
  unsigned char* to;

  COPPICE_INLINE void word(uint64_t value) {
    *reinterpret_cast<uint64_t*>(to) = value;
    to += 8;
  }
  COPPICE_INLINE void characters(const char* text, size_t n) {
    __builtin_memcpy(to, text, n);
    to += padded_to_8(n);
  }
  COPPICE_INLINE void tag(MessageValue kind, uint64_t bytes = 0) {
    word(static_cast<uint64_t>(kind) | bytes << 8);
  }
  template <class T>
  COPPICE_INLINE void value(const T& v) {
    if constexpr (FixedEigenMatrix<T>) {
      constexpr int kRows = T::RowsAtCompileTime, kCols = T::ColsAtCompileTime;
      tag(MessageValue::kMatrix, kRows | static_cast<uint64_t>(kCols) << 16);
      COPPICE_UNROLL
      for (int i = 0; i < kRows * kCols; ++i) value(v.coeff(i / kCols, i % kCols));
    } else if constexpr (literal_bytes < T >> 0) {
      tag(MessageValue::kString, literal_bytes<T> - 1);
      characters(v, literal_bytes<T> - 1);
    } else if constexpr (std::is_same_v<T, float>) {
      tag(MessageValue::kFloat), word(__builtin_bit_cast(uint32_t, v));
    } else if constexpr (std::is_same_v<T, double>) {
      tag(MessageValue::kDouble), word(__builtin_bit_cast(uint64_t, v));
    } else {
      static_assert(
          std::is_integral_v<T>,
          "print() takes integers, floats, bools, chars, string literals, and Eigen's vectors and matrices");
      tag(std::is_same_v<T, bool>   ? MessageValue::kBool
          : std::is_same_v<T, char> ? MessageValue::kChar
          : std::is_signed_v<T>     ? MessageValue::kInt
                                    : MessageValue::kUnsigned);
      word(static_cast<uint64_t>(v));
    }
  }
};

template <class From>
COPPICE_INLINE void set_place(MessageHeader& header, const From& from) {
  header.place[1] = header.place[2] = 0;
  if constexpr (std::is_same_v<From, Item>) {
    header.dims = 0, header.place[0] = from.index;
  } else {
    header.dims = From::kDims;
    COPPICE_UNROLL
    for (int axis = 0; axis < From::kDims; ++axis) header.place[axis] = from.coord(axis);
  }
}

// Writes the record at `to`, where there is room for it.
template <class From, class... Args>
COPPICE_INLINE void write_record(unsigned char* to, uint32_t bytes, const From& from, const char* text,
                                 size_t text_bytes, const Args&... args) {
  auto* header = reinterpret_cast<MessageHeader*>(to);
  set_place(*header, from);
  header->text_bytes = static_cast<uint32_t>(text_bytes);
  header->num_arguments = sizeof...(Args);
  header->launch = launch_id(*launch_of(from));
  MessageWriter writer{to + sizeof(MessageHeader)};
  writer.characters(text, text_bytes);
  (writer.value(args), ...);
  coppice_store_release_u32(&header->bytes, bytes);  // publishes it
}

// Returns where a record of so many bytes goes; null when there is no room, which is counted.
inline unsigned char* reserve_record(DeviceContext* context, uint32_t bytes) {
  MessageArea* const area = context->messages;
  const uint64_t at = coppice_fetch_add_u64(&area->used, bytes);
  // This acquires: the host zeroed the room before it gave it back, maybe while this launch runs.
  coppice_load_acquire_u32(reinterpret_cast<const uint32_t*>(&area->used));
  if (at + bytes <= MessageArea::kCapacity) return area->records + at;
  if (at <= MessageArea::kCapacity) relaxed_store(&area->end, at);
  coppice_fetch_add_u64(&area->dropped, 1);
  return nullptr;
}

template <class From, size_t C, size_t F, class... Args>
COPPICE_ACCESS COPPICE_INLINE void fail_assertion(const From& from, const char (&condition)[C],
                                                  const char (&file)[F], int32_t line,
                                                  FormatText<std::type_identity_t<Args>...> format,
                                                  const Args&... args) {
  static_assert(message_value_bytes<char[C]>() + message_value_bytes<char[F]>() + 16 <=
                    kMaxAssertionBytes - kMaxMessageBytes,
                "COPPICE_ASSERT: condition and file name take more than 496 bytes");
  DeviceContext* context = launch_of(from)->context;
  const uint32_t status = status_word(DeviceStatus::kAssertion, launch_number(*launch_of(from)));
  if (coppice_compare_exchange_u32(&context->status, 0, status) != 0) return;
  write_record(context->assertion, record_bytes<char[C], char[F], int32_t, Args...>(format.size), from,
               format.text, format.size, condition, file, line, args...);
}
template <class From, size_t C, size_t F>
COPPICE_ACCESS COPPICE_INLINE void fail_assertion(const From& from, const char (&condition)[C],
                                                  const char (&file)[F], int32_t line) {
  fail_assertion(from, condition, file, line, "");
}

}  // namespace coppice::device

namespace coppice {

template <class From, class... Args>
COPPICE_ACCESS COPPICE_INLINE void print(const From& from,
                                         device::FormatText<std::type_identity_t<Args>...> format,
                                         const Args&... args) {
  static_assert(device::is_place_argument<From>, "print() takes the kernel's Cell, Block or Item first");
  if (device::makes_room()) return;
  const uint32_t bytes = device::record_bytes<Args...>(format.size);
  unsigned char* to = device::reserve_record(device::launch_of(from)->context, bytes);
  if (to != nullptr) device::write_record(to, bytes, from, format.text, format.size, args...);
}

}  // namespace coppice

#define COPPICE_ASSERT(from, condition, ...)                                                                 \
  do {                                                                                                       \
    if (coppice::device::debug_checks() && !coppice::device::makes_room() && !(condition))                   \
      coppice::device::fail_assertion(from, #condition, __FILE_NAME__, __LINE__ __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
