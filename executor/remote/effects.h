// These are the things that a worker's protocol asks of whoever drives it (protocol.h), in their order.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "executor/remote/ids.h"

namespace coppice::executor::remote {

// A value as it travels: bytes that the protocol does not look into, and references, which are the receiver's
// handles by the time that it sees them, and each to be dropped.
struct Value {
  Bytes payload;
  std::vector<HandleId> references;
};
using Outcome = std::variant<Value, Error>;

namespace effect {

// Give the packet to the transport. It may be lost.
struct Send {
  WorkerId to;
  Bytes packet;
};
// Run the function that the payload names, once, and call finish(). With `result` its result becomes that
// object, which lives at least until finish().
struct Run {
  ServiceId service;
  WorkerId caller;
  std::optional<RRefId> result;
  Value call;
};
// When the object has its value, call finish() with that. The object lives at least until then.
struct Serve {
  ServiceId service;
  RRefId rref;
};
// A result has come, or never will.
struct Complete {
  WaiterId waiter;
  Outcome outcome;
};
// Nobody refers to the object any more.
struct Free {
  RRefId rref;
};
// An object that handles here refer to will never be created.
struct Fail {
  RRefId rref;
  Error error;
};
// A worker is out of the cluster, for ever.
struct Gone {
  WorkerId worker;
  Error error;
  bool is_lost;  // else it has shut down, or this worker is out itself
};

}  // namespace effect

using Effect = std::variant<effect::Send, effect::Run, effect::Serve, effect::Complete, effect::Free,
                            effect::Fail, effect::Gone>;

}  // namespace coppice::executor::remote
