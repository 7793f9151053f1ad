// Wind drags the grid's velocities along, where there is material.
#include "wind.h"

COPPICE_KERNEL(blow, Update<mpm::NodeValue> nodes, Cell3 cell, float dt, Wind wind)
{
  mpm::NodeValue& node = nodes[cell];
  if (node.v[3] <= 0) return;  // mass
  for (int axis = 0; axis < 3; ++axis)
    node.v[axis] += wind.drag * dt * (wind.velocity[axis] - node.v[axis]);
}
