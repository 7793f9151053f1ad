// A plan as a picture: time to the right, offsets upwards.
#pragma once
#include <span>
#include <string>

#include "executor/plan/problem.h"

namespace coppice::plan {

// Returns an SVG document of about 1000 by 600 pixels. Each buffer has a rectangle for each stretch of time
// in which it needs memory, and its id, size and times as a tooltip; up to 60 buffers have their id in it,
// too. A line shows what is needed at each time: the plan's height is at least the highest of it.
std::string svg_of(const Problem& problem, const Plan& plan);

// A plan that is one part of a picture of several.
struct TitledPlan {
  std::string title;  // one line above it
  Problem problem;
  Plan plan;
};
// Returns one SVG document of all of them, one below the other; one of nothing says so.
std::string svg_of(std::span<const TitledPlan> plans);

}  // namespace coppice::plan
