// Launches over trees that are cut over ranks (sparse/ranks/tree_cut.h): what comes before them, and which
// are refused.
//
// A loop over a node visits this rank's own cells. It may read around them as far as a block reaches, store
// to its own cell, and activate cells anywhere. A loop over a range is each rank's in full: what it stores
// by coordinate, the owner stores too.
#pragma once
#include "sparse/launch_request.h"

namespace coppice {

class LaunchUses;

// Returns whether a launch loops over, or has a handle on, a tree that is cut.
bool is_over_ranks(const detail::LaunchRequest& request);

// Brings topologies and mirrors up to date for the launch. Blocks the host; all ranks call it together.
// Errors: kInvalidArgument, on all ranks alike, for what trees over ranks do not do; kUnavailable, when a
// rank has given up.
void wait_before_launch(const detail::LaunchRequest& request, const LaunchUses& uses);
// Brings sums that the launch has added to mirrors to their owners, when it was given and noted.
void wait_after_launch(const detail::LaunchRequest& request, const LaunchUses& uses);
// Notes what the launch, which was given, leaves to be brought up to date.
void note_launch(const LaunchUses& uses);
// Throws that functions and bound launches are not for trees over ranks.
[[noreturn]] void refuse_to_keep(const detail::LaunchRequest& request);

}  // namespace coppice
