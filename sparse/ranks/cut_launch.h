// Launches over trees that are cut over ranks (sparse/ranks/tree_cut.h): what comes before them, and which
// are refused.
//
// A loop over a node visits this rank's own cells. It may read around them as far as a block reaches, store
// to its own cell, and activate cells anywhere. A loop over a range is each rank's in full: what it stores
// by coordinate, the owner stores too.
#pragma once
#include "core/async_value.h"
#include "gpu/stream.h"
#include "sparse/launch_request.h"

namespace coppice {

// Returns whether a launch loops over, or has a handle on, a tree that is cut.
bool is_over_ranks(const detail::LaunchRequest& request);

// Errors: kInvalidArgument, on all ranks alike, for what trees over ranks do not do.
void check_over_ranks(const detail::LaunchRequest& request, const LaunchUses& uses);
// Gives a launch, which was checked, to the stream, with all that it takes to bring topologies and mirrors
// up to date before it, and sums home behind it. Blocks the host while anything is brought; all ranks call
// it together.
//
// A launch is given in two parts, where that lets messages travel while it runs: what reads mirrors that
// are out of date begins with the interior blocks, which have no mirror beside them; what stores to blocks
// that are mirrored, and read by a later launch, begins with those, whose values are packed before the
// interior is computed. Errors: kUnavailable, when a rank has given up; AgreedError, when a launch has
// failed on some rank.
AsyncValueRef<Chain> give_over_ranks(const detail::LaunchRequest& request, Launch launch, Stream& stream);
// Throws that functions and bound launches are not for trees over ranks.
[[noreturn]] void refuse_to_keep(const detail::LaunchRequest& request);

}  // namespace coppice
