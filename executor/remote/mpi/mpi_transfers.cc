// MpiTransfers.
#include "executor/remote/mpi/mpi_transfers.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

namespace coppice::executor::remote {

std::vector<std::shared_ptr<MpiTransfers::Packet>> MpiTransfers::poll(int& error) {
  error = MPI_SUCCESS;
  std::vector<std::shared_ptr<Packet>> complete;
  if (requests_.empty()) return complete;
  const int n = static_cast<int>(requests_.size());
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int n_done = 0;
  const int result = MPI_Testsome(n, requests_.data(), &n_done, done_.data(), statuses_.data());
  if (result != MPI_SUCCESS) error = result;
  if (n_done <= 0) return complete;  // MPI_UNDEFINED is below 0
  for (int i = 0; i < n_done; ++i) {
    Packet& packet = *packets_[static_cast<size_t>(done_[i])];
    if (result == MPI_ERR_IN_STATUS && statuses_[i].MPI_ERROR != MPI_SUCCESS) {
      error = statuses_[i].MPI_ERROR;
      packet.has_failed = true;
    }
    --n_of_[static_cast<size_t>(packet.peer)];
    if (--packet.n_parts == 0) complete.push_back(packets_[static_cast<size_t>(done_[i])]);
  }
  // From the last one on, so that an index still means what it meant.
  std::sort(done_.begin(), done_.begin() + n_done, std::greater<>());
  for (int i = 0; i < n_done; ++i) {
    const auto at = static_cast<size_t>(done_[i]);
    requests_[at] = requests_.back();
    packets_[at] = std::move(packets_.back());
    requests_.pop_back();
    packets_.pop_back();
  }
  return complete;
}

size_t MpiTransfers::abandon() {
  size_t n_kept = 0;
  for (size_t i = 0; i < requests_.size(); ++i) {
    MPI_Cancel(&requests_[i]);
    int is_done = 0;
    if (MPI_Test(&requests_[i], &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done != 0) continue;
    MPI_Request_free(&requests_[i]);
    keep_for_ever(packets_[i]);
    ++n_kept;
  }
  requests_.clear();
  packets_.clear();
  return n_kept;
}

void keep_for_ever(std::shared_ptr<void> value) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(value));
}

}  // namespace coppice::executor::remote
