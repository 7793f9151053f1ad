// A program that runs the MPM solver, with stages of its own, includes this: coppice::mpm::Solver.
#pragma once
#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"
