// Snow falls in the wind: the shipped solver with a stage of one's own behind its update of the grid.
#include <cstdio>

#include "coppice/coppice.h"
#include "coppice/solver.h"
#include "wind.h"
#include "wind.kernels.h"  // generated from wind.kernels.cc

constexpr const char* kScene = R"(
[grid]
resolution = 32
[time]
frames = 4
[[emitter]]
shape = "sphere"
center = [0.5, 0.6, 0.5]
radius = 0.15
material = "snow"
)";

// Returns the snow's mean velocity along x (m/s) when the scene is over.
double drift(const IntrusivePtr<Device>& device, bool is_windy) {
  const auto solver = mpm::Solver::create(device, scene::parse_scene(kScene, "snow"));
  Program program(device);
  Slot<Wind> wind(device, {{2, 0, 0}, 5});
  if (is_windy) {
    Function step = solver->step();
    const Loop nodes = over(solver->grid_leaf());
    step.insert_after("mpm.update_grid",
                      program.bind(blow, nodes, solver->grid_nodes(), solver->step_length(), wind));
    solver->set_step(step);
  }
  for (int frame = 0; frame < 4; ++frame) {
    if (frame == 2) wind.set({{4, 0, 0}, 5});  // it freshens
    solver->wait_advance_frame();
  }
  const mpm::FrameStats stats = solver->wait_stats();
  std::printf("%s: %llu steps, %.3f m/s along x\n", is_windy ? "wind" : "calm",
              static_cast<unsigned long long>(solver->steps()), stats.momentum[0] / stats.mass_kg);
  return stats.momentum[0] / stats.mass_kg;
}

int main() try {
  const IntrusivePtr<Device> device = Device::best();
  const double calm = drift(device, false), windy = drift(device, true);
  return windy > calm + 0.5 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "stage: %s\n", error.what());
  return 1;
}
