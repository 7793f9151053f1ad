"""What the MPM workloads in Taichi have in common: the fluid and its time step, in two or three dimensions, and the way in
which a program of them is asked for steps by lines on standard input.
"""
import json
import os
import sys

BULK = 400.0
DENSITY = 1.0
GRAVITY = 9.8
BOUND = 3


def own_stdout():
    """Our lines go to the real standard output; whatever Taichi prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return lines


def start(ti, arch, args):
    """Starts Taichi with the threads and the folder of compiled kernels that the command line names."""
    cache = {"offline_cache": False}
    if args.cache:
        cache = {"offline_cache": True, "offline_cache_file_path": args.cache}
    ti.init(arch=arch, cpu_max_num_threads=args.threads, log_level=ti.WARN, **cache)


def build(ti, dims, n_grid, n_particles, dt):
    """The fields, and one kernel that takes a time step of `dt` seconds."""
    dx = 1.0 / n_grid
    inv_dx = float(n_grid)
    volume = (dx * 0.5) ** 2
    mass = volume * DENSITY

    x = ti.Vector.field(dims, float, n_particles)
    v = ti.Vector.field(dims, float, n_particles)
    affine = ti.Matrix.field(dims, dims, float, n_particles)
    ratio = ti.field(float, n_particles)  # J
    grid_v = ti.Vector.field(dims, float, (n_grid,) * dims)
    grid_m = ti.field(float, (n_grid,) * dims)

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
            momentum = ti.Matrix.identity(float, dims) * stress + mass * affine[p]
            for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * dims)))):
                distance = (offset - fx) * dx
                weight = w[offset[0]][0]
                for axis in ti.static(range(1, dims)):
                    weight *= w[offset[axis]][axis]
                grid_v[base + offset] += weight * (mass * v[p] + momentum @ distance)
                grid_m[base + offset] += weight * mass
        for node in ti.grouped(grid_m):
            if grid_m[node] > 0:
                grid_v[node] /= grid_m[node]
            grid_v[node][1] -= dt * GRAVITY
            for axis in ti.static(range(dims)):
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
            for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * dims)))):
                distance = (offset - fx) * dx
                weight = w[offset[0]][0]
                for axis in ti.static(range(1, dims)):
                    weight *= w[offset[axis]][axis]
                node_v = grid_v[base + offset]
                new_v += weight * node_v
                new_affine += 4.0 * weight * node_v.outer_product(distance) * inv_dx * inv_dx
            v[p] = new_v
            affine[p] = new_affine
            x[p] += dt * new_v
            ratio[p] *= 1.0 + dt * new_affine.trace()

    return x, v, ratio, step


def serve(program, lines, steps, state):
    """Answers commands from standard input: `steps N` by steps(N), `state` by state()."""
    for command in sys.stdin:
        words = command.split()
        if len(words) == 2 and words[0] == "steps" and words[1].isdigit():
            print(json.dumps(steps(int(words[1]))), file=lines)
        elif words == ["state"]:
            print(json.dumps(state()), file=lines)
        else:
            sys.exit(f"{program}: unknown command {command.strip()!r}; there are `steps N` and `state`")
