// MpiTransport: a ring of receives, sends whose bytes live until they are done, and a wait that polls.
#include "executor/remote/mpi/mpi_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "executor/remote/mpi/mpi_session.h"

namespace coppice::executor::remote {
namespace {

constexpr int kPollsPerLook = 8;
// Tags of the ring's messages.
constexpr int kWhole = 0, kAnnounced = 1;
// A large packet's bytes have its number, as a tag: MPI allows at least so many.
constexpr uint32_t kMostTags = 32768;
struct Announcement {
  uint64_t size;
  uint32_t tag, unused;
};
// While bytes are under way MPI wants to be asked often, and its answer may never come.
constexpr Time kTransferSleep = std::chrono::microseconds(20);

std::atomic<int> abandoned{0};

Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void check_initialised(bool drives_on_main_thread) {
  int is_initialised = 0, is_finalised = 0, level = 0;
  MPI_Initialized(&is_initialised);
  MPI_Finalized(&is_finalised);
  if (is_initialised == 0 || is_finalised != 0)
    throw Error(ErrorCode::kInvalidArgument, "MPI is not initialised: an MpiSession outlives its transports");
  MPI_Query_thread(&level);
  const int needed = drives_on_main_thread ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED;
  if (level < needed)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("MPI was initialised without {}, which a worker whose progress is {} needs",
                            drives_on_main_thread ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SERIALIZED",
                            drives_on_main_thread ? "the main thread's" : "a thread's of its own"));
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm user, const MpiTransportOptions& options) : options_(options) {
  check_initialised(options_.drives_on_main_thread);
  int connects_groups = 0, rank = 0, size = 0;
  check_mpi(MPI_Comm_test_inter(user, &connects_groups), "the communicator is not usable");
  if (connects_groups != 0)
    throw Error(ErrorCode::kInvalidArgument, "MPI: an intercommunicator has no ranks that all share");
  check_mpi(MPI_Comm_dup(user, &ring_comm_), "the communicator cannot be duplicated");
  MPI_Comm_set_errhandler(ring_comm_, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_dup(ring_comm_, &large_comm_), "the communicator cannot be duplicated");
  MPI_Comm_set_errhandler(large_comm_, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(ring_comm_, &rank), "the communicator has no ranks");
  check_mpi(MPI_Comm_size(ring_comm_, &size), "the communicator has no ranks");
  rank_ = static_cast<WorkerId>(rank);
  n_ranks_ = static_cast<WorkerId>(size);
  sends_.emplace(n_ranks_);
  large_receives_.emplace(n_ranks_);
  is_told_.resize(n_ranks_);
  n_large_to_.resize(n_ranks_);
  n_sent_to_.resize(n_ranks_);
  n_come_from_.resize(n_ranks_);
  agree();
  post_ring();
}

void MpiTransport::agree() {
  std::random_device random;
  Agreed agreed{uint64_t{random()} << 32 | random(), options_.eager_bytes, options_.part_bytes};
  check_mpi(MPI_Bcast(&agreed, sizeof agreed, MPI_BYTE, 0, ring_comm_), "the ranks cannot agree");
  session_ = agreed.session;
  // An announcement fits always, and no part is longer than MPI can count.
  options_.eager_bytes = std::max<size_t>(agreed.eager_bytes, sizeof(Announcement));
  options_.part_bytes = std::clamp<size_t>(agreed.part_bytes, 1, 1 << 30);
}

void MpiTransport::post_ring() {
  const auto n = static_cast<size_t>(std::max(1, options_.n_receives));
  ring_memory_ = std::make_shared<Bytes>(n * options_.eager_bytes);
  ring_.resize(n, MPI_REQUEST_NULL);
  ring_done_.resize(n);
  ring_statuses_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    check_mpi(
        MPI_Recv_init(ring_memory_->data() + i * options_.eager_bytes, static_cast<int>(options_.eager_bytes),
                      MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, ring_comm_, &ring_[i]),
        "a receive cannot be made");
    check_mpi(MPI_Start(&ring_[i]), "a receive cannot be posted");
  }
}

void MpiTransport::check_thread() const {
  if (!options_.drives_on_main_thread) return;
  int is_main = 0;
  MPI_Is_thread_main(&is_main);
  COPPICE_CHECK(is_main != 0, "an MpiTransport with drives_on_main_thread is another thread's");
}

int MpiTransport::n_abandoned() { return abandoned.load(); }

void MpiTransport::lose(int peer, const std::string& why) {
  ++counts_.lost;
  if (is_told_[static_cast<size_t>(peer)]) return;
  is_told_[static_cast<size_t>(peer)] = true;
  log_warning("worker {}: a packet for or of worker {} is lost, and more may be: {}", rank_, peer, why);
}

// ---- sending ----

bool MpiTransport::start_send(const void* data, size_t size, int to, int tag, MPI_Comm comm,
                              std::shared_ptr<Packet> packet) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Isend(data, static_cast<int>(size), MPI_BYTE, to, tag, comm, &request);
  if (error != MPI_SUCCESS) {
    lose(to, mpi_error_text(error));
    return false;
  }
  sends_->add(request, std::move(packet));
  return true;
}

void MpiTransport::send(WorkerId to, Bytes packet) {
  check_thread();
  COPPICE_CHECK(to < n_ranks_, "a packet for a worker that is none");
  const int peer = static_cast<int>(to);
  if (sends_->n_of(peer) >= options_.most_pending) return lose(peer, "it takes no packets any more");
  ++counts_.sent;
  counts_.sent_bytes += packet.size();
  if (packet.size() > options_.eager_bytes) return send_large(to, std::move(packet));
  MPI_Request request = MPI_REQUEST_NULL;
  int error =
      MPI_Isend(packet.data(), static_cast<int>(packet.size()), MPI_BYTE, peer, kWhole, ring_comm_, &request);
  int is_done = 0;
  // Most are done already, and need no place among those under way.
  if (error == MPI_SUCCESS) {
    ++n_sent_to_[to];
    error = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
  }
  if (error != MPI_SUCCESS) return lose(peer, mpi_error_text(error));
  if (is_done != 0) return;
  sends_->add(request, std::make_shared<Packet>(Packet{peer, std::move(packet)}));
}

void MpiTransport::send_large(WorkerId to, Bytes bytes) {
  const int peer = static_cast<int>(to);
  ++counts_.large;
  const uint64_t size = bytes.size();
  const Announcement words{size, n_large_to_[to]++ % kMostTags, 0};
  const auto announcement = std::make_shared<Packet>(Packet{peer, Bytes(sizeof words)});
  std::memcpy(announcement->bytes.data(), &words, sizeof words);
  if (!start_send(announcement->bytes.data(), sizeof words, peer, kAnnounced, ring_comm_, announcement))
    return;
  ++n_sent_to_[to];
  const auto packet = std::make_shared<Packet>(Packet{peer, std::move(bytes)});
  for (size_t at = 0; at < size; at += options_.part_bytes)
    start_send(packet->bytes.data() + at, std::min<size_t>(options_.part_bytes, size - at), peer,
               static_cast<int>(words.tag), large_comm_, packet);
  ++n_sent_to_[to];
}

void MpiTransport::poll_sends() {
  if (sends_->is_empty()) return;
  int error = MPI_SUCCESS;
  for (const auto& packet : sends_->poll(error))
    if (packet->has_failed) lose(packet->peer, mpi_error_text(error));
}

// ---- receiving ----

void MpiTransport::expect_large(int from, uint64_t size, int tag) {
  const auto packet = std::make_shared<Packet>(Packet{from, Bytes(size)});
  for (size_t at = 0; at < size; at += options_.part_bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Irecv(packet->bytes.data() + at,
                                static_cast<int>(std::min<size_t>(options_.part_bytes, size - at)), MPI_BYTE,
                                from, tag, large_comm_, &request);
    if (error != MPI_SUCCESS) return lose(from, mpi_error_text(error));
    large_receives_->add(request, packet);
  }
}

void MpiTransport::take_message(const MPI_Status& status, const std::byte* data) {
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  ++n_come_from_[static_cast<size_t>(status.MPI_SOURCE)];
  if (status.MPI_TAG == kAnnounced) {
    Announcement announced;
    std::memcpy(&announced, data, sizeof announced);
    return expect_large(status.MPI_SOURCE, announced.size, static_cast<int>(announced.tag));
  }
  ++counts_.received;
  counts_.received_bytes += static_cast<uint64_t>(size);
  inbox_.emplace_back(data, data + size);
}

void MpiTransport::poll() {
  int n_done = 0;
  const int error = MPI_Testsome(static_cast<int>(ring_.size()), ring_.data(), &n_done, ring_done_.data(),
                                 ring_statuses_.data());
  for (int i = 0; i < n_done; ++i) {
    const auto at = static_cast<size_t>(ring_done_[i]);
    const MPI_Status& status = ring_statuses_[i];
    if (error == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) {
      lose(std::max(0, status.MPI_SOURCE), mpi_error_text(status.MPI_ERROR));
    } else {
      take_message(status, ring_memory_->data() + at * options_.eager_bytes);
    }
    if (const int posted = MPI_Start(&ring_[at]); posted != MPI_SUCCESS)
      lose(static_cast<int>(rank_), mpi_error_text(posted));
  }
  poll_sends();
  if (large_receives_->is_empty()) return;
  int large_error = MPI_SUCCESS;
  for (const auto& packet : large_receives_->poll(large_error)) {
    ++n_come_from_[static_cast<size_t>(packet->peer)];
    if (packet->has_failed) {
      lose(packet->peer, mpi_error_text(large_error));
      continue;
    }
    ++counts_.received;
    counts_.received_bytes += packet->bytes.size();
    inbox_.push_back(std::move(packet->bytes));
  }
}

std::optional<Bytes> MpiTransport::receive() {
  check_thread();
  // A wait() has asked MPI just now.
  if (inbox_.empty() && !std::exchange(is_fresh_, false)) poll();
  if (inbox_.empty()) return std::nullopt;
  Bytes packet = std::move(inbox_.front());
  inbox_.pop_front();
  return packet;
}

// ---- waiting ----

void MpiTransport::sleep(Time most) {
  std::unique_lock lock(mutex_);
  // wake() writes is_woken_ and then reads this; here it is the other way round, so that one sees the other.
  is_asleep_.store(true);
  woken_.wait_for(lock, most, [&] { return is_woken_.load(); });
  is_asleep_.store(false);
}

void MpiTransport::wake() {
  is_woken_.store(true);
  if (!is_asleep_.load()) return;
  const std::lock_guard lock(mutex_);
  woken_.notify_one();
}

void MpiTransport::wait(Time most) {
  check_thread();
  const Time begin = now();
  Time passed{0}, pause = kTransferSleep;
  is_fresh_ = true;
  for (int n_polls = 1;; ++n_polls) {
    poll();
    if (is_woken_.load(std::memory_order_relaxed) && is_woken_.exchange(false)) return;
    if (!inbox_.empty()) return;
    // Reading the clock and giving way take about as long as asking MPI does, or longer.
    if (n_polls % kPollsPerLook != 0 && passed < options_.spin + options_.yield) continue;
    passed = now() - begin;
    if (passed >= most) return;
    if (passed < options_.spin) continue;
    if (passed - options_.spin < options_.yield) {
      std::this_thread::yield();
      continue;
    }
    const bool is_busy = !sends_->is_empty() || !large_receives_->is_empty();
    sleep(std::min(is_busy ? kTransferSleep : pause, most - passed));
    pause = std::min(2 * pause, options_.most_sleep);
  }
}

// ---- the end ----

bool MpiTransport::wait_until(Time end, const std::function<bool()>& is_over) {
  while (!is_over()) {
    if (now() >= end) return false;
    poll();
    inbox_.clear();
    std::this_thread::yield();
  }
  return true;
}

// Everybody's sends are done, then all tell each other how many messages they have sent, and take those that
// have not come yet: then none is on its way when the communicators go.
bool MpiTransport::end_together() {
  const Time end = now() + options_.end_timeout;
  if (!wait_until(end, [&] { return sends_->is_empty(); })) return false;
  struct Exchange {
    std::vector<uint64_t> sent, coming;
  };
  const auto exchange = std::make_shared<Exchange>(Exchange{n_sent_to_, std::vector<uint64_t>(n_ranks_)});
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ialltoall(exchange->sent.data(), 1, MPI_UINT64_T, exchange->coming.data(), 1, MPI_UINT64_T,
                    ring_comm_, &request) != MPI_SUCCESS)
    return false;
  const auto is_exchanged = [&] {
    int is_done = 0;
    return MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_done != 0;
  };
  if (!wait_until(end, is_exchanged)) {
    keep_for_ever(exchange);
    return false;
  }
  return wait_until(end, [&] { return n_come_from_ == exchange->coming; });
}

void MpiTransport::close_ring() {
  for (MPI_Request& request : ring_) {
    MPI_Cancel(&request);
    int is_done = 0;
    for (int i = 0; i < 1000 && is_done == 0; ++i)
      if (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (is_done == 0) keep_for_ever(ring_memory_);
    MPI_Request_free(&request);
  }
}

MpiTransport::~MpiTransport() {
  check_thread();
  if (end_together()) {
    close_ring();
    MPI_Comm_free(&large_comm_);
    MPI_Comm_free(&ring_comm_);
    return;
  }
  ++abandoned;
  close_ring();
  const size_t n_left = sends_->abandon() + large_receives_->abandon();
  log_warning(
      "worker {}: the other ranks did not end their transports within {:g} s; {} transfers are given up",
      rank_, std::chrono::duration<double>(options_.end_timeout).count(), n_left);
}

}  // namespace coppice::executor::remote
