// A host program includes this: devices, trees, programs, and values back on the host.
#pragma once
#include "core/error.h"
#include "core/half.h"
#include "core/log.h"
#include "gpu/device.h"
#include "gpu/host_access.h"
#include "sparse/bulk_append.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
