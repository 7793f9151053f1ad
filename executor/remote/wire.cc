// Reader: what came in, without trust.
#include "executor/remote/wire.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice::executor::remote {

void Reader::fail(std::string_view what) const {
  throw Error(ErrorCode::kDataLoss, fmt::format("malformed at byte {}: {}", next_, what));
}

uint8_t Reader::byte() {
  if (left() == 0) fail("it ends here, and something must follow");
  return static_cast<uint8_t>(bytes_[next_++]);
}

uint64_t Reader::number() {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const uint8_t b = byte();
    if (shift == 63 && b > 1) fail("a number of more than 64 bits");
    value |= static_cast<uint64_t>(b & 0x7f) << shift;
    if (b >= 0x80) continue;
    if (b == 0 && shift > 0) fail("a number with needless zeros");
    return value;
  }
}

uint64_t Reader::number_to(uint64_t most, const char* what) {
  const uint64_t value = number();
  if (value > most) fail(fmt::format("{} is {}, and at most {}", what, value, most));
  return value;
}

uint64_t Reader::fixed64() {
  if (left() < 8) fail("it ends within a number of 8 bytes");
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(byte()) << 8 * i;
  return value;
}

size_t Reader::length(size_t least_bytes) {
  const uint64_t n = number();
  if (n > left() / least_bytes) fail(fmt::format("{} items are said to follow in {} bytes", n, left()));
  return n;
}

std::span<const std::byte> Reader::bytes() {
  const size_t n = length(1);
  const auto result = bytes_.subspan(next_, n);
  next_ += n;
  return result;
}

std::string Reader::text() {
  const auto all = bytes();
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

void Reader::expect_end() const {
  if (left() != 0) fail(fmt::format("{} bytes follow the end", left()));
}

}  // namespace coppice::executor::remote
