// An exchange of known sizes by one of any, for links that have no better way (see rank_link.h).
#include "core/rank_link.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace coppice {

std::vector<RankLink::Bytes> RankLink::wait_exchange_known(std::vector<Bytes> parts,
                                                           std::span<const uint64_t> sizes,
                                                           std::span<uint32_t> most) {
  // The numbers follow the bytes.
  const auto numbers = std::as_bytes(most);
  for (Bytes& part : parts) part.insert(part.end(), numbers.begin(), numbers.end());
  std::vector<Bytes> come = wait_exchange(std::move(parts));
  std::vector<uint32_t> theirs(most.size());
  for (size_t r = 0; r < come.size(); ++r) {
    if (come[r].size() != sizes[r] + numbers.size())
      throw Error(ErrorCode::kInternal, "ranks are out of step: all give the same calls in the same order");
    if (!theirs.empty()) std::memcpy(theirs.data(), come[r].data() + sizes[r], numbers.size());
    for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], theirs[i]);
    come[r].resize(sizes[r]);
  }
  return come;
}

}  // namespace coppice
