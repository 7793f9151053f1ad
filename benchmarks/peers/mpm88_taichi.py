#!/usr/bin/env python3
"""The mpm88 workload in Taichi: a square of weakly compressible fluid falls in a box (MLS-MPM, 2-D, dense grid).

Beside a port of the same loop in `coppice-bench port`: prints one JSON line with what was set up, then waits. Each line
`steps N` on standard input advances N time steps and prints {"seconds": ..., "cpu_seconds": ...}; `state` prints the mean
height and speed of the fluid. With --frames N it runs N frames of 10 steps by itself and prints the median.

Particles start at random places in [0.2, 0.6]^2 with velocity (0, -1), J only, E = 400, density 1, gravity 9.8 on every
node, walls three cells thick. A particle's volume is (dx/2)^2; it multiplies mass and stress alike and cancels.
"""
import argparse
import json
import os
import statistics
import time

import taichi_mpm

STEPS_PER_FRAME = 10


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=int, default=1024, help="cells per axis")
    parser.add_argument("--particles", type=int, default=1 << 20)
    parser.add_argument("--dt", type=float, default=2e-5, help="seconds of a time step")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--frames", type=int, help="run these and stop")
    parser.add_argument("--cache", help="folder of compiled kernels; default: none is kept")
    return parser.parse_args()


def initial_positions(n_particles):
    import numpy

    return (numpy.random.default_rng(1).random((n_particles, 2)) * 0.4 + 0.2).astype(numpy.float32)


def main():
    args = parse()
    lines = taichi_mpm.own_stdout()
    start = time.perf_counter()
    import numpy
    import taichi as ti

    taichi_mpm.start(ti, ti.cpu, args)
    x, v, ratio, step = taichi_mpm.build(ti, 2, args.grid, args.particles, args.dt)
    x.from_numpy(initial_positions(args.particles))
    v.from_numpy(numpy.tile(numpy.array([0, -1], dtype=numpy.float32), (args.particles, 1)))
    ratio.fill(1.0)

    def steps(count):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            step()
        ti.sync()
        return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - begin_cpu}

    steps(1)  # compiles
    print(json.dumps({"taichi": ".".join(map(str, ti.__version__)), "grid": args.grid, "particles": args.particles,
                      "threads": args.threads, "dt": args.dt, "start_seconds": time.perf_counter() - start}), file=lines)
    if args.frames is not None:
        if args.frames > 0:
            frames = [steps(STEPS_PER_FRAME) for _ in range(args.frames)]
            print(json.dumps({"ms_per_step_" + clock: 1e3 / STEPS_PER_FRAME * statistics.median(f[clock] for f in frames)
                              for clock in frames[0]}), file=lines)
        return

    def state():
        speed = (v.to_numpy().astype("f8") ** 2).sum(axis=1) ** 0.5
        return {"height": float(x.to_numpy().astype("f8")[:, 1].mean()), "speed": float(speed.mean())}

    taichi_mpm.serve("mpm88_taichi.py", lines, steps, state)


main()
