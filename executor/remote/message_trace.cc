// MessageTrace: what a packet is called, and the number of its arrow.
#include "executor/remote/message_trace.h"

#include <fmt/format.h>

#include "core/hash.h"

namespace coppice::executor::remote {
namespace {

// "to worker 2: create, delete"
std::string name_of_packet(const Packet& packet, TraceArrow::End end) {
  const bool is_sent = end == TraceArrow::End::kTail;
  std::string name = fmt::format("{} worker {}:", is_sent ? "to" : "from", is_sent ? packet.to : packet.from);
  const char* separator = " ";
  for (const Packet::Numbered& numbered : packet.messages) {
    name += separator;
    name += remote::name_of(numbered.message.kind);
    separator = ", ";
  }
  if (packet.kind != Packet::Kind::kData) return name + " farewell";
  return packet.messages.empty() ? name + " acknowledgement" : name;
}

}  // namespace

void MessageTrace::note(const Bytes& bytes, Point begin, TraceArrow::End end) const {
  if (!Trace::is_on()) return;
  try {
    const std::string name = name_of_packet(decode_packet(bytes), end);
    // Both ends know a packet by what is in it; its repetitions have arrows of the same number.
    trace_event(row_, name, begin, Trace::Clock::now(), {end, hash64(bytes)});
  } catch (const Error&) {
    // It is no packet, which the log says.
  }
}

}  // namespace coppice::executor::remote
