// What a program includes that shows its simulation in a viewer: coppice::Viewer.
#pragma once
#include "apps/viewer/viewer.h"
