// The kernels and the program share this. A struct defined here keeps its functions and defaults in both.
#pragma once
#include "core/math.h"

constexpr int kBlock = 16;  // cells per axis of a leaf block

struct Disc {  // the obstacle; lengths are in cells
  coppice::Vec2f center{0, 0};
  float radius = 0;
  bool covers(int x, int y) const { return (coppice::Vec2f(x, y) - center).norm() < radius; }
};
struct Medium {
  float k = 0.25f;  // (c dt / h)^2, stable up to 1/2; at 1/4 a wave crosses a cell in 2 steps
  int size = 0;     // cells per axis of the domain
  int sponge = 0;   // width of the absorbing layer along the walls; without it they reflect
};
