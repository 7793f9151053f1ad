// Channels: each message once, in any order, within bounded memory.
#include "executor/remote/channel.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "executor/remote/simulated_network.h"

namespace coppice::executor::remote {
namespace {

using namespace std::chrono_literals;
constexpr uint64_t kWindow = ReceiveWindow::kWindow;
using Outcome = ReceiveWindow::Outcome;

TEST(ReceiveWindow, TakesEachNumberOnceInAnyOrder) {
  ReceiveWindow window;
  for (const uint64_t n : {3u, 0u, 1u, 5u}) EXPECT_EQ(window.receive(n), Outcome::kNew) << n;
  for (const uint64_t n : {3u, 0u, 1u, 5u}) EXPECT_EQ(window.receive(n), Outcome::kRepeated) << n;
  EXPECT_EQ(window.next(), 2u);
  EXPECT_EQ(window.bits(), 0b101u);  // 3 and 5
  EXPECT_EQ(window.receive(2), Outcome::kNew);
  EXPECT_EQ(window.next(), 4u);
  EXPECT_FALSE(window.has(4));
  EXPECT_TRUE(window.has(5));
}

TEST(ReceiveWindow, TakesNothingBehindItsEnd) {
  ReceiveWindow window;
  EXPECT_EQ(window.receive(kWindow), Outcome::kBeyond);
  EXPECT_EQ(window.receive(~uint64_t{0}), Outcome::kBeyond);
  EXPECT_EQ(window.receive(kWindow - 1), Outcome::kNew);
  EXPECT_EQ(window.receive(0), Outcome::kNew);
  EXPECT_EQ(window.receive(kWindow), Outcome::kNew);
  EXPECT_EQ(window.receive(kWindow - 1), Outcome::kRepeated);
}

TEST(ReceiveWindow, AgreesWithSetOfAllNumbersThroughManyTurns) {
  SimulatedRandom random(1);
  ReceiveWindow window;
  std::set<uint64_t> all;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t next = window.next(), least = next < 50 ? 0 : next - 50;
    // Every third time it is the one that lets the window move.
    const uint64_t n = random.chance(0.3) ? next : least + random.below(kWindow + 100);
    const Outcome expected = all.count(n) != 0     ? Outcome::kRepeated
                             : n >= next + kWindow ? Outcome::kBeyond
                                                   : Outcome::kNew;
    ASSERT_EQ(window.receive(n), expected) << n;
    if (expected == Outcome::kNew) all.insert(n);
    ASSERT_EQ(all.count(window.next()), 0u);
  }
  EXPECT_GT(window.next(), 10 * kWindow);
}

// Two channels on a bad network: many more messages than the window has room for.
TEST(Channel, DeliversManyMoreMessagesThanItsWindowOnce) {
  const ChannelOptions options{.first_retry = 20ms, .backoff = 1.2, .most_sends = 50, .ack_delay = 1ms};
  std::array<Channel, 2> channels = {Channel(options), Channel(options)};
  SimulatedNetwork network(RandomFaults(3, {.lose = 0.3, .repeat = 0.3}));
  constexpr int kMessages = 5000;
  for (int i = 0; i < kMessages; ++i)
    channels[0].add(0ms, encode(Message{.kind = Message::Kind::kCall, .request = static_cast<uint64_t>(i)}),
                    i % 2 == 0, {static_cast<HandleId>(i)});
  std::map<uint64_t, int> came;
  std::multiset<HandleId> released;
  Time now = 0ms;
  while (true) {
    for (WorkerId w = 0; w < 2; ++w) {
      ASSERT_FALSE(channels[w].is_exhausted(now));
      while (channels[w].is_due(now)) network.send(now, w, 1 - w, channels[w].collect(now, Packet{}));
    }
    while (auto arrival = network.take(now)) {
      Channel& to = channels[arrival->to];
      const Packet packet = decode_packet(arrival->packet);
      for (const HandleId h : to.acknowledge(packet.ack_next, packet.ack_bits)) released.insert(h);
      for (const auto& m : packet.messages)
        if (to.receive(now, m.number)) ++came[m.message.request];
    }
    const Time next = std::min({network.next_time(), channels[0].next_time(), channels[1].next_time()});
    if (next == kNever) break;
    now = std::max(now, next);
  }
  ASSERT_EQ(came.size(), static_cast<size_t>(kMessages));
  for (const auto& [request, n] : came) ASSERT_EQ(n, 1) << request;
  EXPECT_EQ(released.size(), static_cast<size_t>(kMessages));
  EXPECT_EQ(std::set<HandleId>(released.begin(), released.end()).size(), released.size());
  EXPECT_EQ(channels[0].n_unacknowledged(), 0u);
}

TEST(Channel, SendsAgainWithGrowingPausesAndIsExhausted) {
  const ChannelOptions options{.first_retry = 100ms, .backoff = 2, .most_sends = 3};
  Channel channel(options);
  channel.add(0ms, encode(Message{}), /*lazy=*/false);
  std::vector<Time> sent;
  for (Time now = channel.next_time(); !channel.is_exhausted(now); now = channel.next_time()) {
    sent.push_back(now);
    channel.collect(now, Packet{});
  }
  EXPECT_EQ(sent, (std::vector<Time>{0ms, 100ms, 300ms}));
  EXPECT_EQ(channel.next_time(), Time(700ms));
}

TEST(Channel, LazyMessageRidesOnTheNext) {
  const ChannelOptions options{.linger = 4ms};
  Channel channel(options);
  channel.add(0ms, encode(Message{}), /*lazy=*/true);
  EXPECT_FALSE(channel.is_due(3ms));
  channel.add(3ms, encode(Message{}), /*lazy=*/false);
  ASSERT_TRUE(channel.is_due(3ms));
  EXPECT_EQ(decode_packet(channel.collect(3ms, Packet{})).messages.size(), 2u);
  EXPECT_FALSE(channel.is_due(100ms));
}

TEST(Channel, BelievesNoAcknowledgementOfWhatWasNotSent) {
  const ChannelOptions options{.linger = 4ms};
  Channel channel(options);
  channel.add(0ms, encode(Message{}), /*lazy=*/true, {5});
  EXPECT_TRUE(channel.acknowledge(1, ~uint64_t{0}).empty());
  EXPECT_TRUE(channel.acknowledge(~uint64_t{0}, ~uint64_t{0}).empty());
  channel.collect(4ms, Packet{});
  EXPECT_EQ(channel.acknowledge(1, 0), std::vector<HandleId>{5});
}

TEST(Channel, PacketsAreSplitAtTheirLargestSize) {
  const ChannelOptions options{.packet_bytes = 1000};
  Channel channel(options);
  for (int i = 0; i < 5; ++i)
    channel.add(0ms, encode(Message{.kind = Message::Kind::kCall, .payload = Bytes(400)}), /*lazy=*/false);
  std::vector<size_t> messages;
  while (channel.is_due(0ms))
    messages.push_back(decode_packet(channel.collect(0ms, Packet{})).messages.size());
  EXPECT_EQ(messages, (std::vector<size_t>{2, 2, 1}));
}

}  // namespace
}  // namespace coppice::executor::remote
