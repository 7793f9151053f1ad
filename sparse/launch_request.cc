// Launches without the types of their kernels (see launch_request.h).
#include "sparse/launch_request.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice {

using detail::LaunchRequest;

std::string kernel_id(const LaunchRequest& r) { return fmt::format("{}.{}", r.file->name, r.name); }

bool is_over_blocks(const LaunchRequest& r) {
  return r.item == LaunchRequest::LoopItem::kBlock || r.item == LaunchRequest::LoopItem::kBlockTeam;
}

void refuse_launch(const LaunchRequest& r, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("kernel {}: {}", kernel_id(r), why));
}

}  // namespace coppice
