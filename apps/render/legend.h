// Computes the numbers for the ticks of a colour bar.
#pragma once

#include <vector>

namespace coppice::render {

// Returns multiples of 1, 2 or 5 times a power of ten within [min, max], ends included, ascending: the
// step is the smallest such one that gives at most `most` of them. A reversed range has the ticks of its
// reverse; an empty one has one tick, its value; one that is not finite has none, and so has a `most`
// below 1.
std::vector<double> legend_ticks(double min, double max, int most);

// Does the same for a logarithmic scale. The ticks are powers of ten, every so many of them that at most
// `most` are left; within two decades they are 1, 2 and 5 times a power of ten where `most` allows these,
// and else legend_ticks(). There are none unless 0 < min < max.
std::vector<double> logarithmic_ticks(double min, double max, int most);

}  // namespace coppice::render
