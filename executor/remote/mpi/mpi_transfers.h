// MPI's requests that are under way, each with the bytes that it reads or writes and that live until
// MPI is done with them. Internal to mpi_transport.h.
#pragma once
#include <mpi.h>

#include <memory>
#include <vector>

#include "executor/remote/ids.h"

namespace coppice::executor::remote {

class MpiTransfers {
 public:
  explicit MpiTransfers(size_t n_peers) : n_of_(n_peers) {}

  // A packet, which several requests may carry in parts.
  struct Packet {
    int peer = 0;
    Bytes bytes;
    int n_parts = 0;          // under way
    bool has_failed = false;  // at least one part of it
  };

  void add(MPI_Request request, std::shared_ptr<Packet> packet) {
    ++packet->n_parts;
    ++n_of_[static_cast<size_t>(packet->peer)];
    requests_.push_back(request);
    packets_.push_back(std::move(packet));
  }
  bool is_empty() const { return requests_.empty(); }
  size_t size() const { return requests_.size(); }

  // Lets MPI go on; returns the packets whose last part is done, failed ones included, with MPI's error in
  // `error` if there was one.
  std::vector<std::shared_ptr<Packet>> poll(int& error);
  // Returns how many requests of a peer's are under way.
  int n_of(int peer) const { return n_of_[static_cast<size_t>(peer)]; }
  // Asks MPI to cancel whatever is not done, and gives up on it. Bytes that MPI may still read or write live
  // for ever. Returns how many requests that are.
  size_t abandon();

 private:
  std::vector<MPI_Request> requests_;
  std::vector<std::shared_ptr<Packet>> packets_;  // the request's of the same index
  std::vector<int> n_of_;                         // requests, by peer
  std::vector<int> done_;                         // scratch of poll()
  std::vector<MPI_Status> statuses_;
};

// Keeps something alive for ever, and reachable.
void keep_for_ever(std::shared_ptr<void> value);

}  // namespace coppice::executor::remote
