// A program that shows its simulation in a viewer includes this: coppice::Viewer.
#pragma once
#include "apps/viewer/viewer.h"
