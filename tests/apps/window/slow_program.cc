// A program whose steps take a second and keep all cores busy meanwhile, for slow_window_test.py.
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "coppice/viewer.h"

using namespace coppice;
using Clock = std::chrono::steady_clock;

namespace {

// Computes for so long, as a solver does between two looks at its commands.
void burn(Clock::duration length) {
  const Clock::time_point end = Clock::now() + length;
  std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread& thread : threads) {
    thread = std::jthread([end] {
      volatile float x = 1;
      while (Clock::now() < end) {
        for (int i = 0; i < 10'000; ++i) x = std::sqrt(x + 1);
      }
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Viewer viewer(argc, argv, "slow");
  viewer.points("dots", [](std::vector<render::PackedPoint>& points) {
    points.clear();
    for (int i = 0; i < 100'000; ++i) {
      const auto at = [t = static_cast<float>(i)](float f) { return 0.5f + 0.4f * std::sin(f * t); };
      points.push_back({{at(0.61f), at(0.37f), at(0.83f)}, at(0.61f)});
    }
  });
  return viewer.run([] { burn(std::chrono::seconds(1)); });
}
