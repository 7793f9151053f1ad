// Content hashes by xxHash's header, compiled in: no library to link.
#define XXH_INLINE_ALL
#ifdef COPPICE_DEBUG
#define XXH_NO_INLINE_HINTS 1  // its forced inlining is an error at -Og
#endif
#include "core/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace coppice {

struct Hasher::State {
  XXH3_state_t xxh;  // 64-byte aligned, which aligned new respects
};

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

Hasher& Hasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::update(std::string_view text) {
  update(static_cast<uint64_t>(text.size()));
  return update(std::as_bytes(std::span(text)));
}

Hash128 Hasher::digest() const {
  const XXH128_hash_t h = XXH3_128bits_digest(&state_->xxh);
  return {h.low64, h.high64};
}

}  // namespace coppice
