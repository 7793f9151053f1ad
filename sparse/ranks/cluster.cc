// Cluster.
#include "sparse/ranks/cluster.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace coppice {

Cluster::Cluster(std::shared_ptr<RankLink> link) : link_(std::move(link)) {
  if (!link_) throw Error(ErrorCode::kInvalidArgument, "a cluster without a link between its ranks");
}

void Cluster::wait_most(std::span<uint32_t> numbers) const {
  const auto n = static_cast<size_t>(n_ranks());
  wait_exchange_known(std::vector<RankLink::Bytes>(n), std::vector<uint64_t>(n), numbers);
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
