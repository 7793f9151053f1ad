// A worker's packets in a trace (core/trace.h): an event for each that it sends and each that it receives,
// with the messages in it, and an arrow from the one to the other.
#pragma once
#include <string>

#include "core/trace.h"
#include "executor/remote/packet.h"

namespace coppice::executor::remote {

class MessageTrace {
 public:
  using Point = Trace::Clock::time_point;
  explicit MessageTrace(WorkerId self) : row_("messages of worker " + std::to_string(self)) {}

  // While no trace is recorded these cost a load. With one, the packet is decoded once more.
  void note_sent(const Bytes& packet, Point begin) const { note(packet, begin, TraceArrow::End::kTail); }
  void note_received(const Bytes& packet, Point begin) const { note(packet, begin, TraceArrow::End::kHead); }

 private:
  void note(const Bytes& packet, Point begin, TraceArrow::End end) const;
  TraceRow row_;
};

}  // namespace coppice::executor::remote
