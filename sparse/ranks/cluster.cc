// Cluster.
#include "sparse/ranks/cluster.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/error.h"
#include "sparse/ranks/agreed_error.h"

namespace coppice {

Cluster::Cluster(std::shared_ptr<RankLink> link) : link_(std::move(link)) {
  if (!link_) throw Error(ErrorCode::kInvalidArgument, "a cluster without a link between its ranks");
}

namespace {

// Counts an exchange, also one that fails.
class Counted {
 public:
  Counted(Cluster::Traffic& traffic, const std::vector<RankLink::Bytes>& parts, int self)
      : traffic_(traffic) {
    ++traffic_.rounds;
    for (size_t r = 0; r < parts.size(); ++r)
      if (static_cast<int>(r) != self) traffic_.bytes_sent += parts[r].size();
  }
  ~Counted() {
    traffic_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  Cluster::Traffic& traffic_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<RankLink::Bytes> Cluster::wait_exchange(std::vector<RankLink::Bytes> parts) const {
  const Counted counted(*traffic_, parts, rank());
  return link_->wait_exchange(std::move(parts));
}

std::vector<RankLink::Bytes> Cluster::wait_exchange_known(std::vector<RankLink::Bytes> parts,
                                                          std::span<const uint64_t> sizes,
                                                          std::span<uint32_t> most) const {
  const Counted counted(*traffic_, parts, rank());
  return link_->wait_exchange_known(std::move(parts), sizes, most);
}

void Cluster::wait_most(std::span<uint32_t> numbers) const {
  const auto n = static_cast<size_t>(n_ranks());
  wait_exchange_known(std::vector<RankLink::Bytes>(n), std::vector<uint64_t>(n), numbers);
}

void Cluster::throw_agreed(const Error& error) const {
  ++*num_agreed_errors_;
  throw AgreedError(error);
}

void Cluster::check_size(size_t bytes, size_t expected) {
  if (bytes != expected)
    throw Error(
        ErrorCode::kInternal,
        fmt::format("ranks are out of step: {} bytes came where {} were expected; all give the same calls in "
                    "the same order",
                    bytes, expected));
}

std::vector<RankLink::Bytes> Cluster::wait_gather_bytes(std::span<const std::byte> bytes) const {
  return wait_exchange(std::vector<RankLink::Bytes>(static_cast<size_t>(n_ranks()),
                                                    RankLink::Bytes(bytes.begin(), bytes.end())));
}

}  // namespace coppice
