// Any bytes at all must keep to this, read as a packet and taken by a worker: for the fuzz target (fuzz/)
// and the tests.
#pragma once
#include <algorithm>
#include <string>

#include "executor/remote/protocol.h"
#include "executor/remote/wire.h"

namespace coppice::executor::remote {

// Bytes are the one encoding of a packet, or are refused with kDataLoss. Returns what does not hold.
inline std::string broken_packet(std::span<const std::byte> bytes) {
  try {
    const Bytes again = encode(decode_packet(bytes));
    if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()))
      return "encode(decode_packet(bytes)) differs from the bytes";
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kDataLoss) return e.what();
  } catch (const std::exception& e) {
    return std::string("no coppice::Error: ") + e.what();
  }
  return {};
}

// A worker among three that has an object, another's handle, and waiters takes any packets: it goes on, and
// what it sends are packets.
class HostileTarget {
 public:
  HostileTarget() : protocol_({.self = 1, .n_workers = 3, .session = 7}) {
    RRefId rref;
    const HandleId own = protocol_.own(rref);
    const HandleId other = protocol_.create(now_, 2, {}, std::span(&own, 1));
    const HandleId all[] = {own, other};
    protocol_.call(now_, 0, {}, all, kNever);
    protocol_.fetch(now_, other, kNever);
    step();
  }
  // Takes a packet as one of this cluster from worker 0 or 2, whatever it says of that.
  std::string take(std::span<const std::byte> bytes) {
    Packet packet;
    try {
      packet = decode_packet(bytes);
    } catch (const Error&) {
      return {};
    }
    packet.session = 7, packet.to = 1, packet.from = packet.from % 2 * 2;
    packet.from_incarnation = 1, packet.to_incarnation = packet.to_incarnation % 2;
    try {
      protocol_.receive(now_, encode(packet));
      return step();
    } catch (const std::exception& e) {
      return std::string("a packet that was decoded is an exception: ") + e.what();
    }
  }
  // Everything that came is finished, dropped and shut down.
  std::string end() {
    for (const ServiceId s : services_) protocol_.finish(now_, s, Value{});
    for (const HandleId h : handles_) protocol_.drop(now_, h);
    if (std::string broken = step(); !broken.empty()) return broken;
    protocol_.shutdown(now_);
    protocol_.report();
    for (int i = 0; i < 40; ++i) {
      now_ += std::chrono::seconds(10);
      if (std::string broken = step(); !broken.empty()) return broken;
    }
    // Nobody answers: all is over.
    const bool is_over =
        protocol_.state() == Protocol::State::kClosed || protocol_.state() == Protocol::State::kExpelled;
    return is_over ? "" : "a shutdown does not end:\n" + protocol_.report();
  }

 private:
  std::string step() {
    now_ += std::chrono::milliseconds(1);
    protocol_.advance(now_);
    for (const Effect& e : protocol_.take_effects()) {
      if (const auto* send = std::get_if<effect::Send>(&e)) {
        if (std::string broken = broken_packet(send->packet); !broken.empty()) return broken;
      } else if (const auto* run = std::get_if<effect::Run>(&e)) {
        services_.push_back(run->service);
        handles_.insert(handles_.end(), run->call.references.begin(), run->call.references.end());
      } else if (const auto* serve = std::get_if<effect::Serve>(&e)) {
        services_.push_back(serve->service);
      }
    }
    return {};
  }
  Time now_{0};
  Protocol protocol_;
  std::vector<ServiceId> services_;
  std::vector<HandleId> handles_;
};

}  // namespace coppice::executor::remote
