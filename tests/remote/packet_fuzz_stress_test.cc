// Mutated packets, read and taken by a worker, without libFuzzer: seeded, so that a failure repeats.
#include <gtest/gtest.h>

#include "executor/remote/simulated_network.h"
#include "tests/remote/packet_properties.h"
#include "tests/remote/sample_packets.h"

namespace coppice::executor::remote {
namespace {

#ifdef COPPICE_DEBUG
constexpr int kRounds = 20'000;
#else
constexpr int kRounds = 200'000;
#endif

// Packets that mean something to HostileTarget, with small numbers everywhere.
Packet random_packet(SimulatedRandom& random) {
  const auto small = [&] { return static_cast<uint32_t>(random.below(4)); };
  Packet packet{.kind = static_cast<Packet::Kind>(random.chance(0.9) ? 0 : small()), .from = small()};
  packet.ack_next = random.below(8);
  packet.ack_bits = random.chance(0.1) ? random.next() : 0;
  for (uint64_t n = random.below(4); n > 0; --n) {
    Message m{.kind = static_cast<Message::Kind>(random.below(Message::kKinds)), .request = random.below(4)};
    // Expelling ends all others' chances.
    if (m.kind >= Message::Kind::kLost && random.chance(0.8)) m.kind = Message::Kind::kDelete;
    m.rref = {random.chance(0.7) ? 1 : small(), small(), random.below(6)};
    m.fork = {small(), random.below(6)};
    m.worker = small();
    for (uint32_t i = small(); i > 1; --i)
      m.references.push_back(
          {static_cast<Reference::Kind>(random.below(3)), m.rref, {small(), random.below(6)}});
    if (m.kind == Message::Kind::kReply && random.chance(0.3))
      m.error = Error(ErrorCode::kIo, "x").with_step("y");
    packet.messages.push_back({random.below(12), std::move(m)});
  }
  return packet;
}

void mutate(SimulatedRandom& random, Bytes& bytes) {
  const size_t at = random.below(bytes.size() + 1),
               size = std::min<size_t>(random.below(8), bytes.size() - at);
  const auto here = bytes.begin() + static_cast<ptrdiff_t>(at);
  static constexpr uint64_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
  switch (random.below(4)) {
    case 0:
      bytes.erase(here, here + static_cast<ptrdiff_t>(size));
      break;
    case 1:
      bytes.insert(here, static_cast<std::byte>(kEdges[random.below(5)]));
      break;
    case 2:
      if (at < bytes.size()) bytes[at] = static_cast<std::byte>(random.next());
      break;
    default:
      if (at < bytes.size()) bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
  }
}

TEST(PacketFuzz, MutatedBytesAreAPacketOrRefused) {
  SimulatedRandom random(20);
  const Bytes whole = encode(full_packet());
  int n_packets = 0;
  for (int round = 0; round < kRounds; ++round) {
    Bytes bytes = random.chance(0.5) ? whole : encode(random_packet(random));
    for (uint64_t n = 1 + random.below(4); n > 0; --n) mutate(random, bytes);
    repair_checksum(bytes);
    ASSERT_EQ(broken_packet(bytes), "") << "round " << round;
    try {
      decode_packet(bytes);
      ++n_packets;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(n_packets, kRounds / 20);
}

TEST(PacketFuzz, WorkerGoesOnWhateverItIsSent) {
  SimulatedRandom random(21);
  for (int round = 0; round < kRounds / 10; ++round) {
    HostileTarget target;
    for (uint64_t n = random.below(12); n > 0; --n) {
      Bytes bytes = encode(random_packet(random));
      if (random.chance(0.3)) mutate(random, bytes);
      repair_checksum(bytes);
      ASSERT_EQ(target.take(bytes), "") << "round " << round;
    }
    ASSERT_EQ(target.end(), "") << "round " << round;
  }
}

}  // namespace
}  // namespace coppice::executor::remote
