// core/hash.h: known answers, chunks, and what must differ.
#include "core/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace coppice {
namespace {

std::vector<std::byte> some_bytes(size_t n) {
  std::vector<std::byte> bytes(n);
  uint32_t x = 12345;
  for (auto& b : bytes) b = static_cast<std::byte>((x = x * 1664525u + 1013904223u) >> 24);
  return bytes;
}

TEST(Hash, OfNothingIsThePublishedValue) {
  // XXH3 with seed 0 of the empty input, from the xxHash specification's test vectors.
  EXPECT_EQ(hash128({}).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2ull);
}

TEST(Hash, ChunksDoNotMatter) {
  const auto bytes = some_bytes(5000);
  const Hash128 whole = hash128(bytes);
  for (size_t chunk : {1u, 7u, 64u, 255u, 1024u, 5000u}) {
    Hasher hasher;
    for (size_t at = 0; at < bytes.size(); at += chunk)
      hasher.update(std::span(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
    EXPECT_EQ(hasher.digest(), whole) << chunk;
  }
}

TEST(Hash, EveryByteCounts) {
  std::set<Hash128> seen;
  auto bytes = some_bytes(300);
  seen.insert(hash128(bytes));
  for (auto& b : bytes) {
    b ^= std::byte{1};
    seen.insert(hash128(bytes));
    b ^= std::byte{1};
  }
  EXPECT_EQ(seen.size(), 301u);
}

TEST(Hash, TextsCountWithTheirLengths) {
  EXPECT_NE(Hasher().update("ab").update("c").hex(), Hasher().update("a").update("bc").hex());
  EXPECT_NE(Hasher().update("").update("a").hex(), Hasher().update("a").update("").hex());
  EXPECT_EQ(Hasher().update("snow").hex(), Hasher().update(std::string("snow")).hex());
}

TEST(Hash, ValuesCountAsTheirBytes) {
  const uint32_t value = 0x01020304;
  EXPECT_EQ(Hasher().update(value).digest(), hash128(std::as_bytes(std::span(&value, 1))));
  EXPECT_NE(Hasher().update(1).hex(), Hasher().update(int64_t{1}).hex());
}

TEST(Hash, DigestMayBeAskedForInBetween) {
  Hasher hasher;
  hasher.update("a");
  const std::string early = hasher.hex();
  EXPECT_EQ(early, Hasher().update("a").hex());
  EXPECT_EQ(early.size(), 32u);
  EXPECT_EQ(hasher.update("b").hex(), Hasher().update("a").update("b").hex());
}

}  // namespace
}  // namespace coppice
