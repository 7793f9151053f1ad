// The benchmarks by name; each adds its rows to the report. docs/benchmarks.md says what a row is.
#pragma once
#include "benchmarks/report.h"

namespace coppice::bench {

void run_mpm(Report& report);     // the solver, beside Taichi's mpm3d and over the shipped scenes
void run_port(Report& report);    // Taichi's mpm88 ported loop by loop, beside the original
void run_lookup(Report& report);  // a stencil over a tree, beside a plain array and OpenVDB
void run_sparse(Report& report);  // activation, collection, lists and loops, beside Taichi and OpenVDB
void run_memory(Report& report);  // bytes per active block
void run_start(Report& report);   // `coppice run --frames 0`
void run_gpu(
    Report& report);  // copies, stencils, activation and particles on a GPU; not unless it is asked for
void run_plan(Report& report);         // memory plans, beside the bound and MiniMalloc
void run_poisson(Report& report);      // the Poisson solver, beside Eigen's and OpenVDB's
void run_executor(Report& report);     // async values and reference counts
void run_remote(Report& report);       // remote references over MPI; not unless it is asked for
void run_viewer_rows(Report& report);  // pictures and packing of the viewer; not unless it is asked for

}  // namespace coppice::bench
