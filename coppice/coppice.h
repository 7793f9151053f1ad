// What a host program includes: devices, trees, programs.
#pragma once
#include "core/error.h"
#include "core/log.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "sparse/tree.h"
