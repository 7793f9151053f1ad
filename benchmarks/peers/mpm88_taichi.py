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
import sys
import time

STEPS_PER_FRAME = 10
BULK = 400.0
DENSITY = 1.0
GRAVITY = 9.8
BOUND = 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=int, default=1024, help="cells per axis")
    parser.add_argument("--particles", type=int, default=1 << 20)
    parser.add_argument("--dt", type=float, default=2e-5, help="seconds of a time step")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--frames", type=int, help="run these and stop")
    parser.add_argument("--cache", help="folder of compiled kernels; default: none is kept")
    return parser.parse_args()


def own_stdout():
    """Our lines go to the real standard output; whatever Taichi prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return lines


def initial_positions(n_particles):
    import numpy

    return (numpy.random.default_rng(1).random((n_particles, 2)) * 0.4 + 0.2).astype(numpy.float32)


def build(ti, n_grid, n_particles, dt):
    """The fields, and one kernel that takes a time step."""
    dx = 1.0 / n_grid
    inv_dx = float(n_grid)
    volume = (dx * 0.5) ** 2
    mass = volume * DENSITY

    x = ti.Vector.field(2, float, n_particles)
    v = ti.Vector.field(2, float, n_particles)
    affine = ti.Matrix.field(2, 2, float, n_particles)
    ratio = ti.field(float, n_particles)  # J
    grid_v = ti.Vector.field(2, float, (n_grid, n_grid))
    grid_m = ti.field(float, (n_grid, n_grid))

    @ti.func
    def weights(fx):
        return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]

    @ti.kernel
    def step():
        for node in ti.grouped(grid_m):
            grid_v[node] = ti.zero(grid_v[node])
            grid_m[node] = 0.0
        for p in x:
            at = x[p] * inv_dx
            base = int(at - 0.5)
            fx = at - base
            w = weights(fx)
            stress = -dt * 4.0 * BULK * volume * (ratio[p] - 1.0) * inv_dx * inv_dx
            momentum = ti.Matrix.identity(float, 2) * stress + mass * affine[p]
            for offset in ti.static(ti.grouped(ti.ndrange(3, 3))):
                distance = (offset - fx) * dx
                weight = w[offset[0]][0] * w[offset[1]][1]
                grid_v[base + offset] += weight * (mass * v[p] + momentum @ distance)
                grid_m[base + offset] += weight * mass
        for node in ti.grouped(grid_m):
            if grid_m[node] > 0:
                grid_v[node] /= grid_m[node]
            grid_v[node][1] -= dt * GRAVITY
            for axis in ti.static(range(2)):
                if node[axis] < BOUND and grid_v[node][axis] < 0:
                    grid_v[node][axis] = 0.0
                if node[axis] > n_grid - BOUND and grid_v[node][axis] > 0:
                    grid_v[node][axis] = 0.0
        for p in x:
            at = x[p] * inv_dx
            base = int(at - 0.5)
            fx = at - base
            w = weights(fx)
            new_v = ti.zero(v[p])
            new_affine = ti.zero(affine[p])
            for offset in ti.static(ti.grouped(ti.ndrange(3, 3))):
                distance = (offset - fx) * dx
                weight = w[offset[0]][0] * w[offset[1]][1]
                node_v = grid_v[base + offset]
                new_v += weight * node_v
                new_affine += 4.0 * weight * node_v.outer_product(distance) * inv_dx * inv_dx
            v[p] = new_v
            affine[p] = new_affine
            x[p] += dt * new_v
            ratio[p] *= 1.0 + dt * new_affine.trace()

    return x, v, ratio, step


def main():
    args = parse()
    lines = own_stdout()
    start = time.perf_counter()
    import numpy
    import taichi as ti

    cache = {"offline_cache": False}
    if args.cache:
        cache = {"offline_cache": True, "offline_cache_file_path": args.cache}
    ti.init(arch=ti.cpu, cpu_max_num_threads=args.threads, log_level=ti.WARN, **cache)
    x, v, ratio, step = build(ti, args.grid, args.particles, args.dt)
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
    for command in sys.stdin:
        words = command.split()
        if len(words) == 2 and words[0] == "steps" and words[1].isdigit():
            print(json.dumps(steps(int(words[1]))), file=lines)
        elif words == ["state"]:
            speed = (v.to_numpy().astype("f8") ** 2).sum(axis=1) ** 0.5
            print(json.dumps({"height": float(x.to_numpy().astype("f8")[:, 1].mean()), "speed": float(speed.mean())}), file=lines)
        else:
            sys.exit(f"mpm88_taichi.py: unknown command {command.strip()!r}; there are `steps N` and `state`")


main()
