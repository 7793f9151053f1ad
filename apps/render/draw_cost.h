// Learns from measured times what drawing costs per item, and so how many items fit into a time.
#pragma once

#include <algorithm>
#include <cstddef>

namespace coppice::render {

class DrawCost {
 public:
  explicit DrawCost(double first_guess_ms) : ms_per_item_(first_guess_ms) {}

  // Half of the old estimate stays, so that one disturbed measurement is soon forgotten.
  void learn(size_t n_items, double ms) {
    if (n_items == 0 || !(ms >= 0.0)) return;
    const double measured = std::max(ms / static_cast<double>(n_items), kLeast);
    ms_per_item_ = has_learned_ ? 0.5 * (ms_per_item_ + measured) : measured;
    has_learned_ = true;
  }

  double ms(size_t n_items) const { return ms_per_item_ * static_cast<double>(n_items); }
  // Returns how many items fit into the time, at most `limit`; 0 for no time.
  size_t affordable(double ms, size_t limit) const {
    if (!(ms > 0.0)) return 0;
    return static_cast<size_t>(std::min(ms / ms_per_item_, static_cast<double>(limit)));
  }

 private:
  static constexpr double kLeast = 1e-9;
  double ms_per_item_;
  bool has_learned_ = false;
};

}  // namespace coppice::render
