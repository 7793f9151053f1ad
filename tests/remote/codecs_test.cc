// Values as bytes: those of registered types come back, and hostile bytes are refused.
#include "executor/remote/codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "executor/host_bytes.h"
#include "executor/remote/simulated_network.h"

namespace coppice::executor::remote {
namespace {

using testing::HasSubstr;

struct Color {
  uint8_t r, g;
};

Codecs all_codecs() {
  Codecs codecs;
  codecs.add<Color>(
      "color", [](const Color& c, Writer& out) { out.byte(c.r), out.byte(c.g); },
      [](Reader& in) {
        const uint8_t r = in.byte();
        return Color{r, in.byte()};
      });
  return codecs;
}

template <class T>
Bytes encoded(const T& value) {
  Encoder encoder;
  encode_value(all_codecs(), make_available_async_value<T>(value).value(), encoder);
  return encoder.out.take();
}
RCReference<AsyncValue> decoded(std::span<const std::byte> bytes) {
  const Leases none;
  Decoder decoder{Reader(bytes), none};
  auto value = decode_value(all_codecs(), decoder);
  decoder.in.expect_end();
  return value;
}
template <class T>
T round_trip(const T& value) {
  return decoded(encoded(value))->template get<T>();
}

TEST(Codecs, ValuesComeBack) {
  for (const int32_t x :
       {0, 1, -1, 42, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()})
    EXPECT_EQ(round_trip(x), x);
  for (const int64_t x :
       {int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(round_trip(x), x);
  EXPECT_EQ(round_trip(true), true);
  EXPECT_EQ(round_trip(false), false);
  EXPECT_EQ(round_trip(-0.1f), -0.1f);
  EXPECT_EQ(round_trip(1e300), 1e300);
  EXPECT_TRUE(std::isnan(round_trip(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(round_trip(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(round_trip(Color{3, 4}).g, 4);
  round_trip(Chain());
  HostBytes bytes(1000, *std::pmr::new_delete_resource());
  for (size_t i = 0; i < 1000; ++i) bytes.data()[i] = static_cast<std::byte>(i * 7);
  const HostBytes back = round_trip(bytes);
  ASSERT_EQ(back.size_bytes(), 1000u);
  EXPECT_TRUE(std::equal(back.data(), back.data() + 1000, bytes.data()));
}

TEST(Codecs, SmallNumbersAreShort) {
  EXPECT_EQ(encoded(int32_t{-3}).size(), 1 + 3 + 1 + 1u);  // "i32" with its length, the size, the number
}

std::string error_of(std::span<const std::byte> bytes) {
  try {
    decoded(bytes);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
Bytes value_of(std::string_view type, std::span<const std::byte> body) {
  Writer out;
  out.text(type);
  out.bytes(body);
  return out.take();
}

TEST(Codecs, SaysWhatIsWrong) {
  const Bytes big = [] {
    Writer out;
    out.number(uint64_t{1} << 40);
    return out.take();
  }();
  const Bytes two = {std::byte{2}, std::byte{0}};
  EXPECT_THAT(error_of(value_of("mesh", {})),
              HasSubstr("a value of type 'mesh' has come, which has no codec here"));
  EXPECT_THAT(error_of(value_of("i32", {})), HasSubstr("it ends here"));
  EXPECT_THAT(error_of(value_of("i32", big)), HasSubstr("549755813888 is out of its type's range"));
  EXPECT_THAT(error_of(value_of("i32", two)), HasSubstr("1 bytes follow the end"));
  EXPECT_THAT(error_of(value_of("bool", std::span(two).first(1))), HasSubstr("a bool is 2, and at most 1"));
  EXPECT_THAT(error_of(value_of("string", big)),
              HasSubstr("1099511627776 items are said to follow in 0 bytes"));
  EXPECT_THAT(error_of(value_of("bytes", big)), HasSubstr("1099511627776 items"));
  EXPECT_THAT(error_of(value_of("f32", Bytes(8, std::byte{1}))), HasSubstr("a float of more than 32 bits"));
}

TEST(Codecs, MutatedValuesAreValuesOrRefused) {
  SimulatedRandom random(5);
  const Bytes wholes[] = {encoded(int32_t{-70000}),
                          encoded(int64_t{1} << 50),
                          encoded(2.5f),
                          encoded(std::string("abcdefgh")),
                          encoded(true),
                          encoded(Color{1, 2})};
  int n_values = 0;
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes = wholes[random.below(std::size(wholes))];
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      const size_t at = random.below(bytes.size());
      if (random.chance(0.5)) {
        bytes[at] = static_cast<std::byte>(random.next());
      } else {
        bytes.resize(at + 1);
      }
    }
    try {
      const auto value = decoded(bytes);
      Encoder again;
      encode_value(all_codecs(), *value, again);
      ASSERT_EQ(again.out.take(), bytes);
      ++n_values;
    } catch (const Error& e) {
      ASSERT_TRUE(e.code() == ErrorCode::kDataLoss || e.code() == ErrorCode::kNotFound) << e.what();
    }
  }
  EXPECT_GT(n_values, 1000);
}

}  // namespace
}  // namespace coppice::executor::remote
