// Cluster.
#include "sparse/ranks/cluster.h"

#include <utility>

#include "core/error.h"

namespace coppice {

Cluster::Cluster(std::shared_ptr<RankLink> link) : link_(std::move(link)) {
  if (!link_) throw Error(ErrorCode::kInvalidArgument, "a cluster without a link between its ranks");
}

std::vector<RankLink::Bytes> Cluster::wait_gather_bytes(std::span<const std::byte> bytes) const {
  return wait_exchange(std::vector<RankLink::Bytes>(static_cast<size_t>(n_ranks()),
                                                    RankLink::Bytes(bytes.begin(), bytes.end())));
}

}  // namespace coppice
