// A program that writes pictures, particles and volumes includes this: coppice::output.
#pragma once
#include "apps/output/write_ply.h"
#include "apps/output/write_png.h"
#include "apps/output/write_vdb.h"
#include "apps/output/write_vti.h"
#include "apps/output/write_vtu.h"
