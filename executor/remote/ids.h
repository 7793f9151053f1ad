// Names of workers, of objects that others refer to, and of references to them.
//
// A number is not drawn from a counter of its own: it is the number of the message that makes the thing known
// to the owner, on the channel from its maker to the owner (channel.h). So the owner's window of received
// numbers, which it has anyway, tells the three states of its view apart without another record:
//
//   unknown    the number has not been received
//   known      it has, and the thing is in the owner's table
//   deleted    it has, and the thing is not in the table
//
// Whatever the owner makes itself is numbered by a counter of the owner's.
#pragma once
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::executor::remote {

// A worker of a cluster counts from 0.
using WorkerId = uint32_t;
// Time since any origin, the same for all that one worker is told.
using Time = std::chrono::nanoseconds;
inline constexpr Time kNever = Time::max();
using Bytes = std::vector<std::byte>;

// Names an object: it lives on `owner`, and `creator` asked for it.
struct RRefId {
  WorkerId owner = 0, creator = 0;
  uint64_t number = 0;
  auto operator<=>(const RRefId&) const = default;
};
// Names one reference to an object (whose owner must be known); `parent` made it out of one of its own.
struct ForkId {
  WorkerId parent = 0;
  uint64_t number = 0;
  auto operator<=>(const ForkId&) const = default;
};

std::string describe(const RRefId& id);  // "object 1:0:5": on worker 1, by worker 0, number 5
std::string describe(const ForkId& id);  // "fork 0:5"

// These name things of one worker, and never travel.
using HandleId = uint64_t;   // a reference that this worker holds
using WaiterId = uint64_t;   // a result that is awaited
using ServiceId = uint64_t;  // something asked of this worker

}  // namespace coppice::executor::remote
