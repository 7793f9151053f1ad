// Numbers, texts and bytes in the form in which they travel. Whatever comes in is hostile: nothing is read
// beyond the end, and no length is believed that the rest cannot hold.
//
// Numbers are LEB128 without needless zeros, so that a thing has one encoding.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "executor/remote/ids.h"

namespace coppice::executor::remote {

class Writer {
 public:
  void byte(uint8_t value) { out_.push_back(static_cast<std::byte>(value)); }
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    byte(static_cast<uint8_t>(value));
  }
  void fixed64(uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(value >> 8 * i));
  }
  void raw(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void bytes(std::span<const std::byte> bytes) {
    number(bytes.size());
    raw(bytes);
  }
  void text(std::string_view text) { bytes(std::as_bytes(std::span(text))); }

  size_t size() const { return out_.size(); }
  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

// Errors of all that read: kDataLoss, which says at which byte what was expected.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint8_t byte();
  uint64_t number();
  // Returns a number of at most `most`; `what` is for the message.
  uint64_t number_to(uint64_t most, const char* what);
  uint64_t fixed64();
  // Returns what the bytes themselves are in.
  std::span<const std::byte> bytes();
  std::string text();
  // Returns how many items follow, each of `least_bytes` or more.
  size_t length(size_t least_bytes);
  size_t left() const { return bytes_.size() - next_; }
  void expect_end() const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::span<const std::byte> bytes_;
  size_t next_ = 0;
};

}  // namespace coppice::executor::remote
