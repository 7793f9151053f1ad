// Packets and messages as bytes.
#include "executor/remote/packet.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/hash.h"
#include "executor/remote/wire.h"

namespace coppice::executor::remote {

std::string describe(const RRefId& id) {
  return fmt::format("object {}:{}:{}", id.owner, id.creator, id.number);
}
std::string describe(const ForkId& id) { return fmt::format("fork {}:{}", id.parent, id.number); }

const char* name_of(Message::Kind kind) {
  static constexpr const char* kNames[] = {"call",   "create", "fetch", "reply", "add_fork",
                                           "delete", "check",  "ping",  "lost",  "goodbye"};
  static_assert(std::size(kNames) == Message::kKinds);
  return kNames[static_cast<int>(kind)];
}

namespace {

using Kind = Message::Kind;

constexpr std::string_view kMagic = "CPRR";
// These are the least sizes in bytes of an encoded message, reference, step of a path: they bound what a
// length may claim.
constexpr size_t kMessageBytes = 2, kReferenceBytes = 4, kStepBytes = 1;
// Error keeps as many steps at most (core/error.cc).
constexpr size_t kMostSteps = 16;

void write(Writer& out, const RRefId& id) {
  out.number(id.owner);
  out.number(id.creator);
  out.number(id.number);
}
void write(Writer& out, const ForkId& id) {
  out.number(id.parent);
  out.number(id.number);
}

WorkerId read_worker(Reader& in) {
  return static_cast<WorkerId>(in.number_to(std::numeric_limits<WorkerId>::max(), "a worker"));
}
RRefId read_rref(Reader& in) {
  RRefId id;
  id.owner = read_worker(in);
  id.creator = read_worker(in);
  id.number = in.number();
  return id;
}
ForkId read_fork(Reader& in) {
  ForkId id;
  id.parent = read_worker(in);
  id.number = in.number();
  return id;
}

void write(Writer& out, const std::vector<Reference>& references) {
  out.number(references.size());
  for (const Reference& r : references) {
    out.byte(static_cast<uint8_t>(r.kind));
    write(out, r.id);
    if (r.kind == Reference::Kind::kFork) write(out, r.fork);
  }
}
std::vector<Reference> read_references(Reader& in) {
  std::vector<Reference> references(in.length(kReferenceBytes));
  for (Reference& r : references) {
    r.kind = static_cast<Reference::Kind>(in.number_to(2, "the kind of a reference"));
    r.id = read_rref(in);
    if (r.kind == Reference::Kind::kFork) r.fork = read_fork(in);
  }
  return references;
}

void write(Writer& out, const Error& error) {
  out.number(static_cast<uint64_t>(error.code()));
  out.text(error.message());
  out.text(error.location().file);
  out.number(static_cast<uint64_t>(std::max(0, error.location().line)));
  out.number(static_cast<uint64_t>(std::max(0, error.location().column)));
  out.number(error.path().size());
  for (const std::string& step : error.path()) out.text(step);
}
Error read_error(Reader& in) {
  constexpr uint64_t kMostInt = std::numeric_limits<int>::max();
  const auto code = static_cast<ErrorCode>(in.number_to(static_cast<uint64_t>(ErrorCode::kUsage), "a code"));
  std::string message = in.text();
  InputLocation location{in.text()};
  location.line = static_cast<int>(in.number_to(kMostInt, "a line"));
  location.column = static_cast<int>(in.number_to(kMostInt, "a column"));
  Error error(code, std::move(message), std::move(location));
  const size_t n_steps = in.length(kStepBytes);
  if (n_steps > kMostSteps) in.fail(fmt::format("a path of {} steps, and {} at most", n_steps, kMostSteps));
  for (size_t i = 0; i < n_steps; ++i) error = error.with_step(in.text());
  return error;
}

void write_body(Writer& out, const Message& m) {
  switch (m.kind) {
    case Kind::kCall:
      out.number(m.request);
      [[fallthrough]];
    case Kind::kCreate:
      out.bytes(m.payload);
      return write(out, m.references);
    case Kind::kFetch:
      out.number(m.request);
      return write(out, m.rref);
    case Kind::kReply:
      out.number(m.request);
      out.byte(m.error.has_value());
      if (m.error) return write(out, *m.error);
      out.bytes(m.payload);
      return write(out, m.references);
    case Kind::kAddFork:
      write(out, m.rref);
      return out.number(m.worker);
    case Kind::kDelete:
    case Kind::kCheck:
      write(out, m.rref);
      return write(out, m.fork);
    case Kind::kLost:
      out.number(m.worker);
      return out.text(m.text);
    case Kind::kPing:
    case Kind::kGoodbye:
      return;
  }
}

void read_value(Reader& in, Message& m) {
  const auto payload = in.bytes();
  m.payload.assign(payload.begin(), payload.end());
  m.references = read_references(in);
}

Message read_message(Reader& in) {
  Message m;
  m.kind = static_cast<Kind>(in.number_to(Message::kKinds - 1, "the kind of a message"));
  switch (m.kind) {
    case Kind::kCall:
      m.request = in.number();
      [[fallthrough]];
    case Kind::kCreate:
      read_value(in, m);
      break;
    case Kind::kFetch:
      m.request = in.number();
      m.rref = read_rref(in);
      break;
    case Kind::kReply:
      m.request = in.number();
      if (in.number_to(1, "whether a reply is an error") == 1) {
        m.error = read_error(in);
      } else {
        read_value(in, m);
      }
      break;
    case Kind::kAddFork:
      m.rref = read_rref(in);
      m.worker = read_worker(in);
      break;
    case Kind::kDelete:
    case Kind::kCheck:
      m.rref = read_rref(in);
      m.fork = read_fork(in);
      break;
    case Kind::kLost:
      m.worker = read_worker(in);
      m.text = in.text();
      break;
    case Kind::kPing:
    case Kind::kGoodbye:
      break;
  }
  return m;
}

uint64_t checksum(std::span<const std::byte> packet) { return hash64(packet.subspan(kPacketHeaderBytes)); }

}  // namespace

Bytes encode(const Message& message) {
  Writer out;
  out.byte(static_cast<uint8_t>(message.kind));
  write_body(out, message);
  return out.take();
}

Bytes encode(const Packet& packet, std::span<const std::pair<uint64_t, const Bytes*>> messages) {
  Writer out;
  out.raw(std::as_bytes(std::span(kMagic)));
  out.fixed64(0);  // the checksum's place
  out.byte(kPacketVersion);
  out.fixed64(packet.session);
  out.number(packet.from);
  out.number(packet.to);
  out.number(packet.from_incarnation);
  out.number(packet.to_incarnation);
  out.byte(static_cast<uint8_t>(packet.kind));
  out.number(packet.ack_next);
  out.fixed64(packet.ack_bits);
  out.number(messages.size());
  for (const auto& [number, body] : messages) {
    out.number(number);
    out.raw(*body);
  }
  Bytes bytes = out.take();
  repair_checksum(bytes);
  return bytes;
}

Bytes encode(const Packet& packet) {
  std::vector<Bytes> bodies;
  for (const auto& m : packet.messages) bodies.push_back(encode(m.message));
  std::vector<std::pair<uint64_t, const Bytes*>> messages;
  for (size_t i = 0; i < bodies.size(); ++i) messages.emplace_back(packet.messages[i].number, &bodies[i]);
  return encode(packet, messages);
}

void repair_checksum(std::span<std::byte> packet) {
  if (packet.size() < kPacketHeaderBytes) return;
  const uint64_t hash = checksum(packet);
  std::memcpy(packet.data(), kMagic.data(), kMagic.size());
  for (int i = 0; i < 8; ++i) packet[4 + i] = static_cast<std::byte>(hash >> 8 * i);
}

Packet decode_packet(std::span<const std::byte> bytes) {
  Reader header(bytes);
  if (bytes.size() < kPacketHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    header.fail(fmt::format("no packet: expected '{}' at its start", kMagic));
  Reader sum(bytes.subspan(kMagic.size()));
  if (sum.fixed64() != checksum(bytes)) header.fail("altered: its bytes do not have its checksum");
  Reader in(bytes.subspan(kPacketHeaderBytes));
  const uint8_t version = in.byte();
  if (version != kPacketVersion)
    in.fail(fmt::format("version {} of packets, and this program reads version {}", version, kPacketVersion));
  Packet packet;
  packet.session = in.fixed64();
  packet.from = read_worker(in);
  packet.to = read_worker(in);
  packet.from_incarnation = read_worker(in);
  packet.to_incarnation = read_worker(in);
  packet.kind = static_cast<Packet::Kind>(in.number_to(3, "the kind of a packet"));
  packet.ack_next = in.number();
  packet.ack_bits = in.fixed64();
  packet.messages.resize(in.length(kMessageBytes));
  for (Packet::Numbered& m : packet.messages) {
    m.number = in.number();
    m.message = read_message(in);
  }
  in.expect_end();
  return packet;
}

}  // namespace coppice::executor::remote
