// Ranks that are threads of one process: for tests of programs that run on ranks, where there is no MPI.
//
//   run_on_ranks(4, [](std::shared_ptr<RankLink> link) {
//     const Cluster cluster(std::move(link));
//     ...                                          // what the program does on each rank
//   });
#pragma once
#include <functional>
#include <memory>

#include "core/rank_link.h"

namespace coppice {

// Calls `program` on that many threads at once, each with its own rank's link, and waits for all of them.
// When one throws, waits of the others are errors, and the first exception is thrown here when all have
// ended. Errors: kInvalidArgument for fewer ranks than one.
void run_on_ranks(int n_ranks, const std::function<void(std::shared_ptr<RankLink>)>& program);

}  // namespace coppice
