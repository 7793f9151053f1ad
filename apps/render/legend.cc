// Steps of 1, 2 and 5.
#include "apps/render/legend.h"

#include <algorithm>
#include <cmath>

namespace coppice::render {
namespace {

struct Ticks {
  double first;  // in steps
  double last;
  double count() const { return last - first + 1.0; }
};

Ticks ticks_within(double min, double max, double step) {
  // A tick that misses an end by rounding belongs to it.
  const double slack = 1e-9;
  return {std::ceil(min / step - slack), std::floor(max / step + slack)};
}

}  // namespace

std::vector<double> legend_ticks(double min, double max, int most) {
  if (!std::isfinite(min) || !std::isfinite(max) || most < 1) return {};
  if (min > max) std::swap(min, max);
  // Halves avoid an overflow of the difference.
  const double half_size = max / 2.0 - min / 2.0;
  // Below this, neighbouring ticks would hardly differ as numbers.
  if (half_size <= std::max(1e-12 * std::max(std::abs(min), std::abs(max)), 1e-290)) return {min};
  const double wanted = half_size / most * 2.0;
  int decade = static_cast<int>(std::floor(std::log10(wanted))) - 1;
  for (;; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      // Dividing by a power of ten rounds once: 0.3 is 3 / 10, not 3 * 0.1.
      const double power = std::pow(10.0, std::abs(decade));
      const double step = decade < 0 ? digit / power : digit * power;
      const Ticks ticks = ticks_within(min, max, step);
      if (ticks.count() > most) continue;
      std::vector<double> values;
      for (double i = ticks.first; i <= ticks.last; i += 1.0) {
        values.push_back((decade < 0 ? i * digit / power : i * step) + 0.0);  // no -0
      }
      return values;
    }
  }
}

std::vector<double> logarithmic_ticks(double min, double max, int most) {
  if (!(min > 0 && min < max) || !std::isfinite(max) || most < 1) return {};
  const double slack = 1e-9;
  const int first = static_cast<int>(std::floor(std::log10(min) + slack)),
            last = static_cast<int>(std::ceil(std::log10(max) - slack));
  const auto ticks = [&](std::initializer_list<double> digits, int decades) {
    std::vector<double> values;
    for (int decade = first; decade <= last; ++decade) {
      if (decade % decades != 0) continue;
      for (const double digit : digits) {
        const double power = std::pow(10.0, std::abs(decade)), v = decade < 0 ? digit / power : digit * power;
        if (v >= min * (1 - slack) && v <= max * (1 + slack)) values.push_back(v);
      }
    }
    return values;
  };
  const auto fits = [&](const std::vector<double>& v) { return static_cast<int>(v.size()) <= most; };
  if (max / min <= 100) {
    const std::vector<double> fine = ticks({1, 2, 5}, 1);
    if (fits(fine)) return fine.size() < 2 ? legend_ticks(min, max, most) : fine;
  }
  for (int decades = 1;; ++decades) {
    std::vector<double> values = ticks({1}, decades);
    if (fits(values)) return values.size() < 2 ? legend_ticks(min, max, most) : values;
  }
}

}  // namespace coppice::render
