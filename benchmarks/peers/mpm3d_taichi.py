#!/usr/bin/env python3
"""The mpm3d workload in Taichi: a block of weakly compressible fluid falls in a box (MLS-MPM, dense grid).

Beside our solver in `coppice-bench mpm`: prints one JSON line with what was set up, then waits. Each line `steps N` on
standard input advances N time steps and prints {"seconds": ...}; `state` prints the fluid's mean position and speed.
With --frames N it runs N frames of 25 steps by itself and prints the median.

Particles start at random places in [0.15, 0.55]^3 at rest, J only, E = 400, density 1, gravity 9.8 on every node, walls
three cells thick, steps of 8e-5 s at every grid size. A particle's volume is (dx/2)^2 as in Taichi's own
example; it multiplies mass and stress alike and therefore cancels.
"""
import argparse
import json
import os
import statistics
import sys
import time

STEPS_PER_FRAME = 25
DT = 8e-5
BULK = 400.0
DENSITY = 1.0
GRAVITY = 9.8
BOUND = 3


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


def own_stdout():
    """Our lines go to the real standard output; whatever Taichi prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return lines


def initial_positions(n_particles, n_grid, order):
    import numpy

    positions = (numpy.random.default_rng(1).random((n_particles, 3)) * 0.4 + 0.15).astype(numpy.float32)
    if order == "sorted":
        cell = (positions * n_grid).astype(numpy.int64)
        positions = positions[numpy.lexsort((cell[:, 2], cell[:, 1], cell[:, 0]))]
    return positions


def build(ti, n_grid, n_particles):
    """The fields, and one kernel that takes a time step."""
    dx = 1.0 / n_grid
    inv_dx = float(n_grid)
    volume = (dx * 0.5) ** 2
    mass = volume * DENSITY

    x = ti.Vector.field(3, float, n_particles)
    v = ti.Vector.field(3, float, n_particles)
    affine = ti.Matrix.field(3, 3, float, n_particles)
    ratio = ti.field(float, n_particles)  # J
    grid_v = ti.Vector.field(3, float, (n_grid,) * 3)
    grid_m = ti.field(float, (n_grid,) * 3)

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
            stress = -DT * 4.0 * BULK * volume * (ratio[p] - 1.0) * inv_dx * inv_dx
            momentum = ti.Matrix.identity(float, 3) * stress + mass * affine[p]
            for offset in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                distance = (offset - fx) * dx
                weight = w[offset[0]][0] * w[offset[1]][1] * w[offset[2]][2]
                grid_v[base + offset] += weight * (mass * v[p] + momentum @ distance)
                grid_m[base + offset] += weight * mass
        for node in ti.grouped(grid_m):
            if grid_m[node] > 0:
                grid_v[node] /= grid_m[node]
            grid_v[node][1] -= DT * GRAVITY
            for axis in ti.static(range(3)):
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
            for offset in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                distance = (offset - fx) * dx
                weight = w[offset[0]][0] * w[offset[1]][1] * w[offset[2]][2]
                node_v = grid_v[base + offset]
                new_v += weight * node_v
                new_affine += 4.0 * weight * node_v.outer_product(distance) * inv_dx * inv_dx
            v[p] = new_v
            affine[p] = new_affine
            x[p] += DT * new_v
            ratio[p] *= 1.0 + DT * new_affine.trace()

    return x, v, ratio, step


def main():
    args = parse()
    lines = own_stdout()
    n_particles = args.particles or args.grid**3 // 4
    start = time.perf_counter()
    import taichi as ti

    cache = {"offline_cache": False}
    if args.cache:
        cache = {"offline_cache": True, "offline_cache_file_path": args.cache}
    ti.init(arch=getattr(ti, args.arch), cpu_max_num_threads=args.threads, log_level=ti.WARN, **cache)
    x, v, ratio, step = build(ti, args.grid, n_particles)
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
    for command in sys.stdin:
        words = command.split()
        if len(words) == 2 and words[0] == "steps" and words[1].isdigit():
            print(json.dumps({"seconds": steps(int(words[1]))}), file=lines)
        elif words == ["state"]:
            speed = (v.to_numpy().astype("f8") ** 2).sum(axis=1) ** 0.5
            mean = [float(c) for c in x.to_numpy().astype("f8").mean(axis=0)]
            print(json.dumps({"mean": mean, "speed": float(speed.mean())}), file=lines)
        else:
            sys.exit(f"mpm3d_taichi.py: unknown command {command.strip()!r}; there are `steps N` and `state`")


main()
