// Values as the bytes that ranks send each other.
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/rank_link.h"

namespace coppice {

[[noreturn]] inline void throw_out_of_step() {
  throw Error(ErrorCode::kInternal, "ranks are out of step: all give the same calls in the same order");
}

template <class T>
RankLink::Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}
// Errors: kInternal, where it is no whole number of values.
template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (values.size() * sizeof(T) != bytes.size()) throw_out_of_step();
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace coppice
