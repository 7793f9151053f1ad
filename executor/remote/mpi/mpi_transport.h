// Packets between the ranks of an MPI communicator: rank r is worker r.
//
//   const MpiSession session;                                                        // mpi_session.h
//   MpiTransport transport(session.world());
//   Worker worker({.protocol = {.self = transport.rank(), .n_workers = transport.n_ranks(),
//                               .session = transport.session()}}, transport, clock, host, codecs);
//
//   send()      a packet of at most eager_bytes is one message for the ring; a larger one is a message for
//               the ring that says how long it is, and its bytes
//   ring        n_receives preposted receives of eager_bytes each. MPI matches them in their order, and each
//               is posted again as soon as its bytes are copied
//   large       a receive of the length that was announced is posted straight into the packet's memory; a tag
//               that counts says which bytes belong to which announcement
//   wait()      polls: without a pause for `spin`, giving way to other threads for `yield` more, then with
//               sleeps that grow to `most_sleep`
//
// Ring and bytes have a communicator each, duplicates of the user's, so that no message of anybody else's is
// mistaken for one of theirs.
//
// Threads: send(), receive(), wait(), constructor and destructor call MPI. A ProgressThread is not the
// thread that initialised MPI: it needs MPI_THREAD_SERIALIZED where nobody else calls MPI meanwhile, and
// MPI_THREAD_MULTIPLE where somebody does. MPI_THREAD_FUNNELED is enough when the main thread calls
// Worker::progress() and wait() itself (drives_on_main_thread). wake() is any thread's, and calls no MPI.
//
// Nothing here waits for another rank but the constructor and the destructor, which all ranks call together.
// An error of MPI's loses the packet that it was about, with a line in the log: the channel above sends
// again, and takes the other worker for lost when that does not help.
#pragma once
#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "executor/remote/mpi/mpi_transfers.h"
#include "executor/remote/transport.h"

namespace coppice::executor::remote {

struct MpiTransportOptions {
  // Rank 0's counts for all: the largest packet that is one message, and the length of the parts of a larger
  // one. MPI counts a message's bytes by an int.
  size_t eager_bytes = 16 << 10, part_bytes = 1 << 30;
  int n_receives = 16;  // of eager_bytes each
  // A wait's phases. An idle worker takes about a hundredth of a core, and hears of a packet after at most
  // `most_sleep` and what the system adds to a sleep, some 60 us.
  Time spin = std::chrono::microseconds(5), yield = std::chrono::milliseconds(1);
  Time most_sleep = std::chrono::microseconds(500);
  // At most this many requests are under way to one rank. What is more is lost, which is how packets to a
  // rank end that takes nothing any more. A channel has no more than 1024 messages under way.
  int most_pending = 4096;
  Time end_timeout = std::chrono::seconds(60);  // of the destructor: longer than any rank lags behind
  bool drives_on_main_thread = false;
};

class MpiTransport final : public Transport {
 public:
  // All ranks of `user` call it together; `user` is duplicated, and not used otherwise. Errors:
  // kInvalidArgument, before anybody is waited for, where MPI is not initialised, gives threads too little,
  // or `user` connects two groups; kUnavailable with MPI's words.
  explicit MpiTransport(MPI_Comm user, const MpiTransportOptions& options = {});
  // All ranks call it together, their workers over: what was sent arrives (and is dropped), and nothing is
  // left under way. Where that takes longer than end_timeout, as when a rank is dead, the rest is given up: a
  // line in the log says so, and what MPI may still write to is never freed.
  ~MpiTransport() override;

  WorkerId rank() const { return rank_; }
  WorkerId n_ranks() const { return n_ranks_; }
  // Returns a number that rank 0 has drawn: the same for all ranks, another for the next transport.
  uint64_t session() const { return session_; }

  void send(WorkerId to, Bytes packet) override;
  std::optional<Bytes> receive() override;
  void wait(Time most) override;
  void wake() override;

  struct Counts {
    uint64_t sent = 0, received = 0;  // packets
    uint64_t sent_bytes = 0, received_bytes = 0;
    uint64_t large = 0;  // of those sent, the ones that were announced
    uint64_t lost = 0;   // by errors of MPI's, or beyond most_pending
  };
  // For the thread that drives the transport.
  const Counts& counts() const { return counts_; }
  // Returns how many transports of this process did not end with their peers. Any thread.
  static int n_abandoned();

 private:
  using Packet = MpiTransfers::Packet;
  struct Agreed {  // by all ranks
    uint64_t session, eager_bytes, part_bytes;
  };

  void check_thread() const;
  void agree();
  void post_ring();
  // Lets MPI go on, and puts what has come into the inbox.
  void poll();
  void take_message(const MPI_Status& status, const std::byte* data);
  void expect_large(int from, uint64_t size, int tag);
  void poll_sends();
  void send_large(WorkerId to, Bytes packet);
  bool start_send(const void* data, size_t size, int to, int tag, MPI_Comm comm,
                  std::shared_ptr<Packet> packet);
  void lose(int peer, const std::string& why);
  void sleep(Time most);
  bool wait_until(Time end, const std::function<bool()>& is_over);
  bool end_together();
  void close_ring();

  MpiTransportOptions options_;
  MPI_Comm ring_comm_ = MPI_COMM_NULL, large_comm_ = MPI_COMM_NULL;
  WorkerId rank_ = 0, n_ranks_ = 1;
  uint64_t session_ = 0;
  std::shared_ptr<Bytes> ring_memory_;  // n_receives times eager_bytes
  std::vector<MPI_Request> ring_;
  std::vector<int> ring_done_;  // scratch of poll()
  std::vector<MPI_Status> ring_statuses_;
  std::optional<MpiTransfers> sends_, large_receives_;
  std::vector<bool> is_told_;                      // by rank: its first lost packet has a line in the log
  std::vector<uint32_t> n_large_to_;               // by rank: packets that were announced
  std::vector<uint64_t> n_sent_to_, n_come_from_;  // by rank: messages for the ring, and packets' bytes
  std::deque<Bytes> inbox_;
  bool is_fresh_ = false;  // the inbox: MPI was asked since receive() found it empty
  Counts counts_;

  std::atomic<bool> is_woken_{false}, is_asleep_{false};
  std::mutex mutex_;  // for `woken_` alone
  std::condition_variable woken_;
};

}  // namespace coppice::executor::remote
