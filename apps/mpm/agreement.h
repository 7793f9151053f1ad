// An error that one rank alone has met becomes one of all, so that they go on together behind it.
#pragma once
#include <functional>

#include "sparse/ranks/cluster.h"

namespace coppice::mpm {

// Runs `act` on every rank, and returns when it has succeeded on all of them. Errors: AgreedError on all
// ranks, where an Error has left it on some: the rank's own, of the lowest one that failed, and elsewhere
// kUnavailable, "rank 3: " and its words.
void wait_agreed(const Cluster& cluster, const std::function<void()>& act);

}  // namespace coppice::mpm
