// The columns of stats.csv: a name and a frame's value each.
#pragma once
#include <string>
#include <vector>

#include "apps/mpm/solver_output.h"
#include "apps/scene/scene.h"

namespace coppice {

struct StatsColumn {
  std::string name;
  double value;
};
// A frame as the program sees it.
struct WrittenFrame {
  int number = 0;
  double milliseconds = 0;  // that it took
};
// Returns the columns that such a scene has, in their order, with the values of a frame.
std::vector<StatsColumn> stats_columns(const scene::SceneConfig& scene, const mpm::FrameStats& stats,
                                       const WrittenFrame& frame);

}  // namespace coppice
