// Ranks tell each other of their errors, in words.
#include "apps/mpm/agreement.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

namespace coppice::mpm {

void wait_agreed(const Cluster& cluster, const std::function<void()>& act) {
  std::optional<Error> failed;
  try {
    act();
  } catch (const Error& error) {
    failed = error;
  }
  const std::string text = failed ? failed->what() : "";
  RankLink::Bytes own(text.size());
  if (!text.empty()) std::memcpy(own.data(), text.data(), text.size());
  const std::vector<RankLink::Bytes> all =
      cluster.wait_exchange({static_cast<size_t>(cluster.n_ranks()), own});
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    if (static_cast<int>(r) == cluster.rank()) cluster.throw_agreed(*failed);
    std::string theirs(all[r].size(), ' ');
    std::memcpy(theirs.data(), all[r].data(), all[r].size());
    cluster.throw_agreed(Error(ErrorCode::kUnavailable, fmt::format("rank {}: {}", r, theirs)));
  }
}

}  // namespace coppice::mpm
