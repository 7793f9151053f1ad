// Three hot balls fly through a cold room. The tree grows where heat comes, and is cut back where it left.
#include <cmath>
#include <vector>

#include "coppice/coppice.h"
#include "coppice/viewer.h"
#include "room.kernels.h"  // generated from room.kernels.cc
using namespace coppice;

constexpr float kCell = 1.0f / 64, kStep = 0.002f, kCold = 2e-3f;  // m, s, temperature of what is given back
constexpr int kRadius = 5;                                         // of a ball, cells

struct Room {
  IntrusivePtr<Device> device = Device::best();
  Program program{device};
  Tree tree{device, {.name = "room", .origin = {-128, -128, -128}}};  // 256^3 cells around (0, 0, 0)
  Node blocks = tree.root().pointer({32, 32, 32});
  Node leaf = blocks.dense({8, 8, 8});
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
  float diffusivity = 0.004f, cooling = 1, speed = 1;  // m^2/s, 1/s, of the balls
  float turn = 0;                                      // s of the balls' time

  Vec3f ball(int i) const {  // m
    const float a = turn + 2.1f * i;
    return 0.7f * Vec3f(std::sin(a), 0.8f * std::sin(1.3f * a), std::cos(0.7f * a + i));
  }
  void heat(const Vec3f& at, int radius) {  // a ball around `at` (m) of `radius` cells
    const Vec3i center = (at / kCell).array().floor().cast<int>();
    const int side = 2 * radius + 1;
    program.launch(heat_ball, range(side * side * side), now, center, radius);
  }
  void step() {
    turn += speed * kStep;
    for (int i = 0; i < 3; ++i) heat(ball(i), kRadius);
    program.launch(trim, over(leaf), now, blocks.topology(), kCold);
    program.launch(grow, over(leaf), now, leaf.topology(), kCold);
    const float k = diffusivity * kStep / (kCell * kCell);  // stable up to 1/6
    program.launch(spread, over(leaf), now, next, k, 1 - cooling * kStep);
    std::swap(now, next);
  }
  void reset() {
    blocks.deactivate_all();
    turn = 0;
  }
};

int main(int argc, char** argv) {
  Room room;
  Viewer viewer(argc, argv, "room");  // --view window|file|null, --frames N, ...; see --help
  viewer.field("temperature", [&] { return room.now; }, {.placement = {.cell_m = kCell}});
  viewer.points(
      "balls",
      [&](auto& points) {
        points.clear();
        for (int i = 0; i < 3; ++i) points.push_back({room.ball(i), static_cast<float>(i)});
      },
      {.radius_m = kRadius * kCell, .is_categorical = true, .categories = {"first", "second", "third"}});
  viewer.slider("diffusivity", room.diffusivity, 0, 0.02f, "m^2/s");
  viewer.slider("cooling", room.cooling, 0, 5, "1/s");
  viewer.slider("speed", room.speed, 0, 5);
  viewer.reading(
      "leaves", [&] { return room.leaf.wait_num_active_blocks(); }, "of 32768");
  viewer.domain({Vec3f::Constant(-0.9f), Vec3f::Constant(0.9f)});
  viewer.time_step(kStep, 10);
  viewer.on_emit([&](const Vec3f& at, float radius_m, const Vec3f&) {
    room.heat(at, static_cast<int>(radius_m / kCell) + 1);  // what the mouse pours stays where it is
  });
  viewer.on_reset([&] { room.reset(); });
  return viewer.run([&] { room.step(); });
}
