// Packets travel between workers, each with messages from one worker to another.
//
//   offset  0   magic "CPRR", u64 XXH3 of all behind it; little-endian
//          12   version, u64 session, from, to, their incarnations, kind
//               next, u64 bits    received of the other direction: all numbers below `next`, and next + 1 + i
//                                 for each bit i that is set
//               messages, each    number, kind, and what the kind has (packet.cc)
//
// All numbers not said to be otherwise are LEB128. A packet has exactly one encoding, and decode() takes no
// other. Message numbers count per direction of a pair of workers, from 0.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "executor/remote/ids.h"

namespace coppice::executor::remote {

inline constexpr size_t kPacketHeaderBytes = 12;
inline constexpr uint8_t kPacketVersion = 1;

// A reference, as a call or a reply brings it.
struct Reference {
  enum class Kind : uint8_t {
    kFork,     // `fork` is the receiver's from now on
    kToOwner,  // the receiver owns the object
    kBroken,   // the sender's own was an error already: its owner was lost
  };
  Kind kind = Kind::kFork;
  RRefId id;
  ForkId fork;  // of kFork alone
  bool operator==(const Reference&) const = default;
};

struct Message {
  enum class Kind : uint8_t {
    kCall,     // run a function and reply
    kCreate,   // run a function and keep its result as an object; the sender holds its first fork
    kFetch,    // reply with the object's value
    kReply,    // to a call or a fetch
    kAddFork,  // the sender's reference has a child, which `worker` holds
    kDelete,   // the sender's fork is no more
    kCheck,    // the fork's parent is lost: the receiver deletes the fork unless it has it
    kPing,     // is anybody there?
    kLost,     // `worker` does not answer: it is out of the cluster
    kGoodbye,  // the sender shuts down
  };
  static constexpr int kKinds = 10;

  Kind kind = Kind::kPing;
  uint64_t request = 0;  // the sender's number of a call or fetch; a reply has the same
  RRefId rref;           // of kFetch, kAddFork, kDelete, kCheck
  ForkId fork;           // of kDelete, kCheck
  WorkerId worker = 0;   // of kAddFork, kLost
  Bytes payload;         // of kCall, kCreate, kReply without an error
  std::vector<Reference> references;
  std::optional<Error> error;  // of kReply
  std::string text;            // of kLost: why
};

const char* name_of(Message::Kind kind);  // "create"

struct Packet {
  enum class Kind : uint8_t {
    kData,
    kExpelled,  // the receiver was declared lost by the sender
    kGone,      // the sender has shut down, or holds that the receiver has
    kStranger,  // the sender is another process than the one that was spoken to
  };
  struct Numbered {
    uint64_t number = 0;
    Message message;
  };

  Kind kind = Kind::kData;
  uint64_t session = 0;  // of the cluster: its workers ignore others' packets
  WorkerId from = 0, to = 0;
  uint32_t from_incarnation = 0, to_incarnation = 0;  // of the process; 0: not known yet
  uint64_t ack_next = 0, ack_bits = 0;
  std::vector<Numbered> messages;
};

// Returns a message's own bytes, which several packets may carry.
Bytes encode(const Message& message);
// Returns a packet with messages that are encoded already. `packet.messages` is not looked at.
Bytes encode(const Packet& packet, std::span<const std::pair<uint64_t, const Bytes*>> messages);
Bytes encode(const Packet& packet);

// Errors: kDataLoss for whatever is not the encoding of a packet. It takes linear time, never reads beyond
// `bytes`, and never allocates more than a small multiple of their number (at most about 100).
Packet decode_packet(std::span<const std::byte> bytes);

// Gives bytes the checksum that they should have: for tests, whose hostile bytes are to get past it.
void repair_checksum(std::span<std::byte> packet);

}  // namespace coppice::executor::remote
