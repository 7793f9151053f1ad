// Numbers for the ticks of a colour bar.
#pragma once

#include <vector>

namespace coppice::render {

// Multiples of 1, 2 or 5 times a power of ten within [min, max], ends included: as many as the smallest such
// step gives that makes at most `most` of them, ascending. A reversed range has the ticks of its reverse; an
// empty one has one tick, its value; one that is not finite has none, and so has a `most` below 1.
std::vector<double> legend_ticks(double min, double max, int most);

// The same for a logarithmic scale: powers of ten, every so many of them that at most `most` are left; within
// two decades those of 1, 2 and 5 times a power of ten that `most` allows, and else legend_ticks(). None
// unless 0 < min < max.
std::vector<double> logarithmic_ticks(double min, double max, int most);

}  // namespace coppice::render
