// Ranks as threads: a place for each pair's bytes, and a barrier that can be broken.
#include "core/local_ranks.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace coppice {
namespace {

class Meeting {
 public:
  explicit Meeting(int n_ranks) : n_(static_cast<size_t>(n_ranks)), places_(n_ * n_) {}
  size_t size() const { return n_; }

  std::vector<RankLink::Bytes> wait_exchange(size_t rank, std::vector<RankLink::Bytes> parts) {
    COPPICE_CHECK(parts.size() == n_, "an exchange has a part for each rank");
    std::unique_lock lock(mutex_);
    for (size_t to = 0; to < n_; ++to) places_[to * n_ + rank] = std::move(parts[to]);
    wait_all(lock);
    std::vector<RankLink::Bytes> come(n_);
    for (size_t from = 0; from < n_; ++from) come[from] = std::move(places_[rank * n_ + from]);
    wait_all(lock);  // before anybody puts down what is for the next
    return come;
  }
  void give_up(size_t rank, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!first_error_) first_error_ = std::move(error), gone_ = rank;
    changed_.notify_all();
  }
  std::exception_ptr first_error() const { return first_error_; }

 private:
  void wait_all(std::unique_lock<std::mutex>& lock) {
    const uint64_t turn = turn_;
    if (++n_here_ == n_) {
      n_here_ = 0, ++turn_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return turn_ != turn || gone_; });
    if (turn_ == turn) throw Error(ErrorCode::kUnavailable, fmt::format("rank {} has given up", *gone_));
  }

  const size_t n_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<RankLink::Bytes> places_;  // [to][from]
  size_t n_here_ = 0;
  uint64_t turn_ = 0;
  std::optional<size_t> gone_;
  std::exception_ptr first_error_;
};

class LocalLink final : public RankLink {
 public:
  LocalLink(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int n_ranks() const override { return static_cast<int>(meeting_.size()); }
  std::vector<Bytes> wait_exchange(std::vector<Bytes> parts) override {
    return meeting_.wait_exchange(static_cast<size_t>(rank_), std::move(parts));
  }

 private:
  Meeting& meeting_;
  const int rank_;
};

}  // namespace

void run_on_ranks(int n_ranks, const std::function<void(std::shared_ptr<RankLink>)>& program) {
  if (n_ranks < 1)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} ranks: at least one is needed", n_ranks));
  Meeting meeting(n_ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        program(std::make_shared<LocalLink>(meeting, rank));
      } catch (...) {
        meeting.give_up(static_cast<size_t>(rank), std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (meeting.first_error()) std::rethrow_exception(meeting.first_error());
}

}  // namespace coppice
