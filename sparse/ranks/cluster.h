// The ranks of a job, as a program sees them: the same program runs on each, and trees are cut over them.
//
//     const Cluster cluster(std::make_shared<MpiRankLink>(session.world()));
//     Tree tree(cluster, device, {.name = "grid"});            // each rank has a part of it (docs/ranks.md)
//     const double mass = cluster.wait_sum(wait_sum(density));
//
// Copies are the same ranks. All ranks call what begins with wait_ together, and in the same order; one
// thread of each at a time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/rank_link.h"

namespace coppice {

class Cluster {
 public:
  // Errors: kInvalidArgument without a link.
  explicit Cluster(std::shared_ptr<RankLink> link);

  // Says what this rank's exchanges have cost.
  struct Traffic {
    uint64_t rounds = 0, bytes_sent = 0;
    double seconds = 0;  // spent in them, waiting for slower ranks included
  };
  const Traffic& traffic() const { return *traffic_; }

  bool operator==(const Cluster&) const = default;  // the same link
  int rank() const { return link_->rank(); }
  int n_ranks() const { return link_->n_ranks(); }

  // Returns every rank's value, by rank. Errors of these: kUnavailable, when a rank has given up.
  template <class T>
  std::vector<T> wait_gather(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
    std::vector<T> all;
    for (const RankLink::Bytes& bytes : wait_gather_bytes(std::as_bytes(std::span(&value, 1)))) {
      check_size(bytes.size(), sizeof(T));
      all.emplace_back();
      std::memcpy(static_cast<void*>(&all.back()), bytes.data(), sizeof(T));
    }
    return all;
  }
  // Returns the sum, in the order of the ranks: it has the same bits on all of them.
  template <class T>
  T wait_sum(const T& value) const {
    T sum{};
    for (const T& each : wait_gather(value)) sum += each;
    return sum;
  }
  // Replaces each value by its sum over the ranks; all give as many.
  template <class T>
  void wait_sum_each(std::span<T> values) const {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    std::vector<T> sums(values.size()), theirs(values.size());
    for (const RankLink::Bytes& bytes : wait_gather_bytes(std::as_bytes(values))) {
      check_size(bytes.size(), values.size_bytes());
      if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
    }
    std::copy(sums.begin(), sums.end(), values.begin());
  }
  template <class T>
  T wait_max(const T& value) const {
    T most = value;
    for (const T& each : wait_gather(value)) most = most < each ? each : most;
    return most;
  }
  void wait_all() const { wait_gather(char{}); }

  // Sends parts[r] to rank r, and returns what came, by rank.
  std::vector<RankLink::Bytes> wait_exchange(std::vector<RankLink::Bytes> parts) const;

  // The same where sizes are known, and each of `most` becomes the largest of all ranks'
  // (RankLink::wait_exchange_known()).
  std::vector<RankLink::Bytes> wait_exchange_known(std::vector<RankLink::Bytes> parts,
                                                   std::span<const uint64_t> sizes,
                                                   std::span<uint32_t> most) const;
  // Each number becomes the largest that any rank gives.
  void wait_most(std::span<uint32_t> numbers) const;

  // Throws an error of some rank that all ranks have been told of, as an AgreedError; all call it together.
  // They go on together behind it: what they have of each other, as trees' mirrors, they bring up to date
  // anew.
  [[noreturn]] void throw_agreed(const Error& error) const;
  uint64_t num_agreed_errors() const { return *num_agreed_errors_; }

 private:
  // Errors: kInternal, when ranks do not give the same calls in the same order.
  static void check_size(size_t bytes, size_t expected);
  std::vector<RankLink::Bytes> wait_gather_bytes(std::span<const std::byte> bytes) const;
  std::shared_ptr<RankLink> link_;
  std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
  std::shared_ptr<uint64_t> num_agreed_errors_ = std::make_shared<uint64_t>(0);
};

}  // namespace coppice
