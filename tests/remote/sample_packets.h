// Packets with a message of each kind: what tests of bytes begin with.
#pragma once
#include <vector>

#include "executor/remote/packet.h"

namespace coppice::executor::remote {

// A message of each kind, with all that it may have.
inline std::vector<Message> all_messages() {
  using Kind = Message::Kind;
  const std::vector<Reference> references = {
      {Reference::Kind::kFork, {1, 2, 300}, {3, 70000}},
      {Reference::Kind::kToOwner, {0, 2, 1}, {}},
      {Reference::Kind::kBroken, {4, 4, 4}, {}},
  };
  const Error error = Error(ErrorCode::kNumeric, "7 divided by zero", {"step.graph", 12, 10})
                          .with_step("@inner div.i32")
                          .with_step("worker 1 @main");
  const Bytes payload = {std::byte{1}, std::byte{0}, std::byte{255}};
  return {{.kind = Kind::kCall, .request = 1, .payload = payload, .references = references},
          {.kind = Kind::kCreate, .payload = payload, .references = references},
          {.kind = Kind::kFetch, .request = 3, .rref = {1, 2, 3}},
          {.kind = Kind::kReply, .request = 4, .payload = payload, .references = references},
          {.kind = Kind::kReply, .request = 5, .error = error},
          {.kind = Kind::kAddFork, .rref = {1, 2, 3}, .worker = 6},
          {.kind = Kind::kDelete, .rref = {1, 2, 3}, .fork = {4, 5}},
          {.kind = Kind::kCheck, .rref = {1, 2, 3}, .fork = {4, 5}},
          {.kind = Kind::kPing},
          {.kind = Kind::kLost, .worker = 9, .text = "it does not answer"},
          {.kind = Kind::kGoodbye}};
}

inline Packet full_packet() {
  Packet packet{.kind = Packet::Kind::kData,
                .session = 0x0123456789abcdef,
                .from = 1,
                .to = 2,
                .from_incarnation = 3,
                .to_incarnation = 4,
                .ack_next = 500,
                .ack_bits = 0xf0};
  for (const Message& m : all_messages()) packet.messages.push_back({packet.messages.size() * 1000, m});
  return packet;
}

}  // namespace coppice::executor::remote
