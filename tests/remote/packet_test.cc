// Packets as bytes, and bytes that are none.
#include "executor/remote/packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/remote/packet_properties.h"
#include "tests/remote/sample_packets.h"

namespace coppice::executor::remote {
namespace {

using testing::HasSubstr;

TEST(Packet, ComesBackAsItWas) {
  const Packet packet = full_packet();
  const Packet decoded = decode_packet(encode(packet));
  EXPECT_EQ(decoded.session, packet.session);
  EXPECT_EQ(decoded.from, packet.from);
  EXPECT_EQ(decoded.to, packet.to);
  EXPECT_EQ(decoded.from_incarnation, packet.from_incarnation);
  EXPECT_EQ(decoded.to_incarnation, packet.to_incarnation);
  EXPECT_EQ(decoded.ack_next, packet.ack_next);
  EXPECT_EQ(decoded.ack_bits, packet.ack_bits);
  ASSERT_EQ(decoded.messages.size(), packet.messages.size());
  for (size_t i = 0; i < packet.messages.size(); ++i) {
    const Message &a = packet.messages[i].message, &b = decoded.messages[i].message;
    SCOPED_TRACE(name_of(a.kind));
    EXPECT_EQ(decoded.messages[i].number, packet.messages[i].number);
    EXPECT_EQ(b.kind, a.kind);
    EXPECT_EQ(b.request, a.request);
    EXPECT_EQ(b.rref, a.rref);
    EXPECT_EQ(b.fork, a.fork);
    EXPECT_EQ(b.worker, a.worker);
    EXPECT_EQ(b.payload, a.payload);
    EXPECT_EQ(b.references, a.references);
    EXPECT_EQ(b.text, a.text);
    ASSERT_EQ(b.error.has_value(), a.error.has_value());
    if (!a.error) continue;
    EXPECT_EQ(b.error->code(), a.error->code());
    EXPECT_STREQ(b.error->what(), a.error->what());
    EXPECT_EQ(b.error->path(), a.error->path());
  }
}

std::string error_of(std::span<const std::byte> bytes) {
  try {
    decode_packet(bytes);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDataLoss);
    return e.what();
  }
  return "";
}

TEST(Packet, EveryTruncationIsRefused) {
  const Bytes whole = encode(full_packet());
  for (size_t n = 0; n < whole.size(); ++n) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_NE(error_of(cut), "") << n;
    repair_checksum(cut);
    EXPECT_NE(error_of(cut), "") << n;
  }
}

TEST(Packet, EveryChangedByteIsRefusedOrAnotherPacket) {
  const Bytes whole = encode(full_packet());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int bits : {1, 0x80, 0xff}) {
      Bytes changed = whole;
      changed[i] ^= static_cast<std::byte>(bits);
      EXPECT_NE(error_of(changed), "") << i;
      repair_checksum(changed);
      EXPECT_EQ(broken_packet(changed), "") << i;
    }
  }
}

TEST(Packet, SaysWhatIsWrong) {
  Bytes bytes = encode(full_packet());
  EXPECT_THAT(error_of({}), HasSubstr("no packet: expected 'CPRR'"));
  bytes[20] ^= std::byte{1};
  EXPECT_THAT(error_of(bytes), HasSubstr("altered"));
  bytes = encode(full_packet());
  bytes.push_back(std::byte{0});
  repair_checksum(bytes);
  EXPECT_THAT(error_of(bytes), HasSubstr("1 bytes follow the end"));
  bytes = encode(full_packet());
  bytes[kPacketHeaderBytes] = std::byte{9};
  repair_checksum(bytes);
  EXPECT_THAT(error_of(bytes), HasSubstr("version 9 of packets, and this program reads version 1"));
  // A packet that says that 2^40 messages follow.
  Writer out;
  out.raw(Bytes(kPacketHeaderBytes));
  out.byte(kPacketVersion);
  out.fixed64(0);
  for (int i = 0; i < 6; ++i) out.byte(0);
  out.fixed64(0);
  out.number(uint64_t{1} << 40);
  bytes = out.take();
  repair_checksum(bytes);
  EXPECT_THAT(error_of(bytes), HasSubstr("1099511627776 items are said to follow in 0 bytes"));
}

}  // namespace
}  // namespace coppice::executor::remote
