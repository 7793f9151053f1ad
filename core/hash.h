// Content hashes of 128 bits (XXH3) for cache keys and change detection; not cryptographic.
//
// The same bytes give the same hash on every machine of one byte order, in this and later versions: it names
// files.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace coppice {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;

  std::string hex() const;  // 32 lower-case digits, high half first
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

Hash128 hash128(std::span<const std::byte> bytes);
uint64_t hash64(std::span<const std::byte> bytes);

// Hashes a sequence of pieces. Numbers and bytes count as their bytes, so that a file may come in any chunks;
// a text counts with its length, so that "ab", "c" differs from "a", "bc".
class Hasher {
 public:
  Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  Hasher& update(std::span<const std::byte> bytes);
  Hasher& update(std::string_view text);
  Hasher& update(const char* text) { return update(std::string_view(text)); }
  Hasher& update(const std::string& text) { return update(std::string_view(text)); }
  // This is not for structs, whose padding has no defined value: give their members, or as_bytes of dense
  // arrays.
  template <class T>
  requires((std::is_arithmetic_v<T> && !std::same_as<T, long double>) ||
           std::is_enum_v<T>) Hasher& update(T value) {
    return update(std::as_bytes(std::span(&value, 1)));
  }

  // Returns the hash of all so far; more may follow.
  Hash128 digest() const;
  std::string hex() const { return digest().hex(); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice

template <>
struct std::hash<coppice::Hash128> {
  size_t operator()(const coppice::Hash128& h) const noexcept { return h.low; }
};
