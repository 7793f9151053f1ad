#!/usr/bin/env python3
"""The mpm3d workload in Taichi: a block of weakly compressible fluid falls in a box (MLS-MPM, dense grid).

Beside our solver in `coppice-bench mpm`: prints one JSON line with what was set up, then waits. Each line `steps N` on
standard input advances N time steps and prints {"seconds": ...}; `state` prints the fluid's mean position and downward speed.
With --frames N it runs N frames of 25 steps by itself and prints the median.

Particles start at random places in [0.15, 0.55]^3 at rest, J only, E = 400, density 1, gravity 9.8 on every node, walls
three cells thick, steps of 8e-5 s at every grid size. A particle's volume is (dx/2)^2 as in Taichi's own
example; it multiplies mass and stress alike and therefore cancels.
"""
import argparse
import json
import os
import statistics
import time

import taichi_mpm

STEPS_PER_FRAME = 25
DT = 8e-5


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=int, default=64, help="cells per axis")
    parser.add_argument("--particles", type=int, help="default: grid^3 / 4")
    parser.add_argument("--arch", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--order", choices=["random", "sorted"], default="random",
                        help="sorted: by cell at the start, which the workload does not ask for")
    parser.add_argument("--frames", type=int, help="run these and stop")
    parser.add_argument("--cache", help="folder of compiled kernels; default: none is kept")
    return parser.parse_args()


def initial_positions(n_particles, n_grid, order):
    import numpy

    positions = (numpy.random.default_rng(1).random((n_particles, 3)) * 0.4 + 0.15).astype(numpy.float32)
    if order == "sorted":
        cell = (positions * n_grid).astype(numpy.int64)
        positions = positions[numpy.lexsort((cell[:, 2], cell[:, 1], cell[:, 0]))]
    return positions


def main():
    args = parse()
    lines = taichi_mpm.own_stdout()
    n_particles = args.particles or args.grid**3 // 4
    start = time.perf_counter()
    import taichi as ti

    taichi_mpm.start(ti, getattr(ti, args.arch), args)
    x, v, ratio, step = taichi_mpm.build(ti, 3, args.grid, n_particles, DT)
    x.from_numpy(initial_positions(n_particles, args.grid, args.order))
    ratio.fill(1.0)

    def steps(count):
        begin = time.perf_counter()
        for _ in range(count):
            step()
        ti.sync()
        return time.perf_counter() - begin

    steps(1)  # compiles
    print(json.dumps({"taichi": ".".join(map(str, ti.__version__)), "grid": args.grid, "particles": n_particles,
                      "threads": args.threads, "order": args.order, "dt": DT, "start_seconds": time.perf_counter() - start}), file=lines)
    if args.frames is not None:
        if args.frames > 0:
            seconds = statistics.median(steps(STEPS_PER_FRAME) for _ in range(args.frames))
            rate = n_particles * STEPS_PER_FRAME / seconds
            print(json.dumps({"seconds": seconds, "particle_steps_per_s": rate}), file=lines)
        return

    def state():
        mean = [float(c) for c in x.to_numpy().astype("f8").mean(axis=0)]
        return {"mean": mean, "fall": float(-v.to_numpy().astype("f8")[:, 1].mean())}

    taichi_mpm.serve("mpm3d_taichi.py", lines, lambda count: {"seconds": steps(count)}, state)


main()
