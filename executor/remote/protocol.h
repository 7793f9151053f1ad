// The protocol of remote references, one worker's part: a pure state machine. No thread, no clock and no
// socket is in it: packets and the time go in, effects come out.
//
//   Protocol protocol({.self = 0, .n_workers = 3, .session = job});
//   HandleId h = protocol.create(now, 1, call, {});          // worker 1 runs the call and keeps its result
//   WaiterId w = protocol.fetch(now, h, kNever);             // to_here
//   protocol.drop(now, h);                                   // worker 1 will free it
//   protocol.receive(now, packet);                           // whatever has come
//   protocol.advance(now);                                   // at protocol.next_time(), which may be now
//   for (Effect& e : protocol.take_effects()) ...
//
// Packets go out in advance() alone: what several calls want to send to a worker goes as one.
//
// G1: the owner learns of every reference that is dropped. G2: a reference is not deleted while a message
// that stands for it, or makes a child of it known to the owner, is not acknowledged. docs/remote.md has
// the states, the proof, and the outcome of everything that can go wrong.
//
// Whatever is wrong with a peer is never an exception here, but an error in Complete or Fail. Not thread-
// safe.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/remote/channel.h"
#include "executor/remote/effects.h"

namespace coppice::executor::remote {

struct ProtocolOptions {
  WorkerId self = 0;
  WorkerId n_workers = 1;
  uint64_t session = 0;  // the same for all workers of a cluster, another for the next
  uint32_t incarnation =
      1;  // of this process, not 0: one that is started again under an old name is a stranger
  // A worker is asked whether it lives when nothing was heard of it for so long, while it is of interest: a
  // result of it is awaited, or either refers to objects of the other. kNever: it is not asked.
  Time heartbeat = std::chrono::seconds(10);
  ChannelOptions channel;
};

class Protocol {
 public:
  explicit Protocol(const ProtocolOptions& options);
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  // Makes an object of this worker's own, with one handle.
  HandleId own(RRefId& rref);
  // Lets `owner`, another worker, run a call and keep the result. The handle may be used at once.
  HandleId create(Time now, WorkerId owner, Bytes call, std::span<const HandleId> arguments);
  // Lets another worker run a call; its result, or an error at `deadline`, comes as Complete.
  WaiterId call(Time now, WorkerId callee, Bytes call, std::span<const HandleId> arguments, Time deadline);
  // Asks the owner, another worker, for the object's value.
  WaiterId fetch(Time now, HandleId handle, Time deadline);
  // Ends a handle; whoever uses it afterwards gets an error.
  void drop(Time now, HandleId handle);
  // Ends a Run or Serve. The references in the outcome stay this worker's.
  void finish(Time now, ServiceId service, const Outcome& outcome);

  // Takes a packet. Errors: kDataLoss for bytes that are none; nothing has changed then.
  void receive(Time now, std::span<const std::byte> packet);
  // Sends what is to go now, and does what time has made due.
  void advance(Time now);
  // Returns when advance() has something to do; kNever: it waits for packets only.
  Time next_time() const;

  // Ends this worker's part: nothing new is begun, what is awaited becomes an error, handles are dropped,
  // objects are freed, and once all that is acknowledged, every worker that was spoken to is told so.
  void shutdown(Time now);
  // Takes a worker for lost, which something outside of the protocol has shown, and tells the others.
  void lose(Time now, WorkerId worker, const std::string& reason);
  enum class State { kOpen, kDraining, kClosing, kClosed, kExpelled };
  State state() const { return state_; }

  std::vector<Effect> take_effects() { return std::exchange(effects_, {}); }

  // Returns whether an object is held here or expected.
  bool has_object(const RRefId& rref) const { return objects_.count(rref) != 0; }
  // Returns whether it is an object of this worker's, and which one.
  std::optional<RRefId> object_of(HandleId handle) const;
  // Returns whose object a handle refers to; nothing for handles that are gone.
  std::optional<RRefId> rref_of(HandleId handle) const;
  // Returns why a handle is of no use; nothing for good ones.
  std::optional<Error> error_of(HandleId handle) const;

  struct Counts {
    size_t objects = 0, forks = 0;   // of this worker, and other workers' references to them
    size_t expected = 0, early = 0;  // objects, and deleted forks, that are not known yet
    size_t handles = 0, waiters = 0, services = 0, unacknowledged = 0;
    uint64_t malformed = 0;  // messages that no honest worker sends
    bool is_at_rest() const {
      return objects + forks + expected + early + handles + waiters + services + unacknowledged == 0;
    }
  };
  Counts counts() const;
  // Says, a line each, what is held here and by whom, what is awaited, and what is not acknowledged.
  std::string report() const;

 private:
  struct Handle {
    RRefId rref;
    ForkId fork;               // of a user's
    bool is_owner = false;     // it pins the object, which is this worker's
    bool is_released = false;  // and waits for `n_holds`
    uint32_t n_holds = 0;      // messages that must be acknowledged before the fork is deleted
    std::optional<Error> error;
  };
  struct Waiter {
    WorkerId peer;
    Time deadline;
    bool is_fetch;
  };
  struct Service {
    WorkerId caller;
    uint64_t request;
    std::optional<RRefId> pinned;
    bool is_create;
  };
  struct Asked {
    WorkerId caller;
    uint64_t request;
  };
  struct Object {
    bool is_created = false;  // else it is expected: others speak of it, and the message is on its way
    uint32_t n_pins = 0;      // handles and services of this worker
    std::map<ForkId, WorkerId> forks;  // known, and who holds them
    std::map<ForkId, WorkerId> early;  // deleted before they were known, and by whom
    std::vector<Asked> fetches;        // that wait for it to be created
  };
  struct Peer {
    explicit Peer(const ChannelOptions& options) : channel(options) {}
    Channel channel;
    std::optional<Error> gone;                    // why nothing is sent to it any more
    Packet::Kind farewell = Packet::Kind::kGone;  // what it is told if it speaks again
    uint32_t incarnation = 0;                     // 0: not heard of yet
    uint32_t n_interests = 0;                     // waiters, handles and forks
    Time heard = Time(0);
    bool is_goodbye_sent = false;
  };

  // protocol.cc: what this worker wants.
  Reference reference_to(HandleId handle, WorkerId receiver, std::vector<HandleId>& holds);
  std::vector<Reference> references_to(std::span<const HandleId> handles, WorkerId receiver,
                                       std::vector<HandleId>& holds);
  HandleId add_handle(Handle handle);
  WaiterId add_waiter(WorkerId peer, Time deadline, bool is_fetch);
  void complete(WaiterId waiter, Outcome outcome);
  void end_handle(HandleId id);
  void release_hold(HandleId id);
  void reply(const Asked& asked, const Outcome& outcome);
  std::optional<Error> refusal(WorkerId worker) const;

  // protocol_receive.cc: what others want.
  void receive_message(WorkerId from, uint64_t number, Message& m);
  void receive_create(WorkerId from, uint64_t number, Message& m);
  void receive_fetch(WorkerId from, const Message& m);
  void receive_reply(WorkerId from, Message& m);
  void receive_add_fork(WorkerId from, uint64_t number, const Message& m);
  void receive_delete(WorkerId from, const Message& m);
  void receive_check(WorkerId from, const Message& m);
  bool receive_farewell(const Packet& packet);
  std::vector<HandleId> accept(const std::vector<Reference>& references);
  HandleId accept(const Reference& reference);
  void serve(const RRefId& rref, const Asked& asked);

  // protocol_objects.cc: the owner's view.
  enum class View { kUnknown, kKnown, kDeleted };
  View view_of(const RRefId& rref) const;
  // Returns whether the message that makes a fork known has come.
  bool has_come(const ForkId& fork) const;
  Object* find_or_expect(const RRefId& rref);
  void unpin(const RRefId& rref);
  void free_if_unused(const RRefId& rref);
  void erase_fork(Object& object, const ForkId& fork);

  // protocol_peers.cc: channels and their ends.
  Peer& peer(WorkerId worker);
  const Peer* find_peer(WorkerId worker) const { return peers_[worker].get(); }
  bool is_other(WorkerId worker) const { return worker < options_.n_workers && worker != options_.self; }
  uint64_t send(WorkerId to, const Message& message, bool lazy, std::vector<HandleId> holds = {});
  void send_farewell(WorkerId to, Packet::Kind kind);
  Packet packet_to(WorkerId to) const;
  void send_packet(WorkerId to, Peer& p);
  void end_peer(WorkerId worker, const Error& error, Packet::Kind farewell);
  void end_objects_of(WorkerId worker, const Error& error);
  void check_children_of(WorkerId lost);
  void lose_peer(WorkerId worker, const std::string& reason);
  void expel(const std::string& reason);
  void advance_peer(WorkerId worker, Peer& p);
  void advance_shutdown();
  void end_own(const Error& error);
  void count_interest(WorkerId worker, int delta);
  Time heartbeat_time(const Peer& p) const;

  const ProtocolOptions options_;
  State state_ = State::kOpen;
  std::vector<std::unique_ptr<Peer>> peers_;  // by worker; null: never spoken to
  std::set<WorkerId> spoken_to_;
  std::map<HandleId, Handle> handles_;
  std::map<WaiterId, Waiter> waiters_;
  std::set<std::pair<Time, WaiterId>> deadlines_;
  std::map<ServiceId, Service> services_;
  std::map<RRefId, Object> objects_;
  uint64_t next_handle_ = 1, next_waiter_ = 1, next_service_ = 1, next_object_ = 0, next_fork_ = 0;
  uint64_t n_malformed_ = 0;
  Time now_{0};  // of the call under way
  std::vector<Effect> effects_;
};

}  // namespace coppice::executor::remote
