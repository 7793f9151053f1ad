// A host program includes this: devices, trees, programs, values back on the host, and where memory goes.
//
// Headers with names that a program's own kernels often have are left to those who use them: functions
// (sparse/function.h), operations on buffers (sparse/buffer_operations.h: fill, copy), reductions
// (sparse/reductions.h: sum, max) and tools that change which cells are active (sparse/topology_tools.h:
// dilate, prune). So is core/math.h, which has vectors.
#pragma once
#include "core/error.h"
#include "core/half.h"
#include "core/log.h"
#include "gpu/device.h"
#include "gpu/host_access.h"
#include "sparse/active_cells.h"
#include "sparse/bulk_append.h"
#include "sparse/cell_memory.h"
#include "sparse/memory_report.h"
#include "sparse/program.h"
#include "sparse/ranks/balance.h"
#include "sparse/ranks/cell_owners.h"
#include "sparse/ranks/cluster.h"
#include "sparse/read_back.h"
#include "sparse/slot.h"
#include "sparse/tree.h"
