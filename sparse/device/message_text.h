// The text of a print() as the compiler checks it: its braces, the number of its
// arguments, and the record's size.
//
// Device-clean.
#pragma once
#include "gpu/launch_block.h"
#include "gpu/message_record.h"
#include "sparse/device/handle_base.h"

namespace coppice::device {

// These are not constexpr: their names are what the compiler says of a wrong format.
inline void format_has_fewer_arguments_than_it_names() {}
inline void format_names_fewer_arguments_than_are_given() {}
inline void format_has_an_unmatched_brace() {}
inline void message_has_more_than_1024_bytes() {}

// Returns how many arguments a text takes: the number of its {}, or one more than the highest {n}.
consteval size_t count_format_arguments(const char* text, size_t n) {
  size_t automatic = 0, manual = 0;
  for (size_t i = 0; i < n; ++i) {
    if (text[i] != '{' && text[i] != '}') continue;
    if (i + 1 < n && text[i + 1] == text[i]) {
      ++i;
      continue;
    }
    if (text[i] == '}') format_has_an_unmatched_brace();
    size_t number = 0, digits = 0;
    for (++i; i < n && text[i] >= '0' && text[i] <= '9'; ++i, ++digits)
      number = number * 10 + (text[i] - '0');
    if (digits == 0) ++automatic;
    if (digits != 0 && number >= manual) manual = number + 1;
    while (i < n && text[i] != '}' && text[i] != '{') ++i;
    if (i == n || text[i] == '{') format_has_an_unmatched_brace();
  }
  return automatic > manual ? automatic : manual;
}

template <class T>
inline constexpr size_t literal_bytes = 0;
template <size_t N>
inline constexpr size_t literal_bytes<char[N]> = N;  // its end included, which is not copied

template <class T>
constexpr uint32_t message_value_bytes() {
  if constexpr (FixedEigenMatrix<T>) return 8 + 16 * T::RowsAtCompileTime * T::ColsAtCompileTime;
  return static_cast<uint32_t>(8 + (literal_bytes<T> > 0 ? padded_to_8(literal_bytes<T> - 1) : 8));
}
template <class... Args>
constexpr uint32_t record_bytes(size_t text_bytes) {
  return static_cast<uint32_t>(sizeof(MessageHeader) + padded_to_8(text_bytes)) +
         (0u + ... + message_value_bytes<Args>());
}

template <class... Args>
struct FormatText {
  const char* text;
  size_t size;

  template <size_t N>
  consteval FormatText(const char (&literal)[N]) : text(literal), size(N - 1) {
    const size_t named = count_format_arguments(literal, N - 1);
    if (named > sizeof...(Args)) format_has_fewer_arguments_than_it_names();
    if (named < sizeof...(Args)) format_names_fewer_arguments_than_are_given();
    if (record_bytes<Args...>(N - 1) > kMaxMessageBytes) message_has_more_than_1024_bytes();
  }
};

}  // namespace coppice::device
