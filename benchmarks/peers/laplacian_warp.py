#!/usr/bin/env python3
"""The stencil of `coppice-bench gpu` in NVIDIA Warp: next = now + k * laplacian(now), 7 points.

    python3 laplacian_warp.py --device cuda [--side 512] [--leaves-side 1024]        needs `pip install warp-lang`

prints a row for each workload. With --serve it is the peer: one JSON line when it is ready, then one for each command on
standard input: `time WORKLOAD` gives {"seconds": of one launch, the mean of eight given without waiting}, `check WORKLOAD`
{"sum": of what the last one wrote in the box of 20^3 around the middle}.

    full            a dense array of side^3 floats, a thread per element
    tenth_leaves    a NanoVDB volume of leaves_side^3 voxels, tiles of 8^3, one in ten there: seven lookups and a store
"""
import argparse
import json
import os
import statistics
import sys
import time

LEAF = 8
ONE_IN = 10
DIFFUSION = 0.1
BOX = 20
REPETITIONS = 8


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--leaves-side", type=int, default=1024)
    parser.add_argument("--serve", action="store_true", help="take commands from standard input")
    parser.add_argument("--cache", help="folder of compiled kernels")
    return parser.parse_args()


def occupied_leaves(numpy, side):
    """The same leaves as ours: a hash of their coordinates, all of 32 bits without a sign."""
    n = side // LEAF
    x, y, z = numpy.meshgrid(*[numpy.arange(n, dtype=numpy.uint32)] * 3, indexing="ij")
    h = (x + z * numpy.uint32(1031)) * numpy.uint32(0x9E3779B1) + y * numpy.uint32(0x85EBCA77)
    h ^= h >> numpy.uint32(15)
    h *= numpy.uint32(0x2C1B3C6D)
    h ^= h >> numpy.uint32(12)
    return numpy.argwhere(h % numpy.uint32(ONE_IN) == 0).astype(numpy.int32)


def box(side):
    first = (side - BOX) // 2
    return slice(first, first + BOX)


def build(wp, numpy, args):
    """Workload -> (launch, sum)."""
    device, side = args.device, args.side

    @wp.func
    def initial_value(x: int, y: int, z: int):
        return float((x * 131 + y * 17 + z * 7) % 1000)

    @wp.kernel
    def fill_array(now: wp.array3d(dtype=float)):
        x, y, z = wp.tid()
        now[x, y, z] = initial_value(x, y, z)

    @wp.func
    def read(now: wp.array3d(dtype=float), x: int, y: int, z: int):
        value = float(0.0)
        if x >= 0 and y >= 0 and z >= 0 and x < now.shape[0] and y < now.shape[1] and z < now.shape[2]:
            value = now[x, y, z]
        return value

    @wp.kernel
    def step_array(now: wp.array3d(dtype=float), after: wp.array3d(dtype=float), k: float):
        x, y, z = wp.tid()
        m = now[x, y, z]
        after[x, y, z] = m + k * (read(now, x - 1, y, z) + read(now, x + 1, y, z) + read(now, x, y - 1, z)
                                  + read(now, x, y + 1, z) + read(now, x, y, z - 1) + read(now, x, y, z + 1) - 6.0 * m)

    @wp.kernel
    def fill_tiles(volume: wp.uint64, tiles: wp.array2d(dtype=int)):
        t, i, j, k = wp.tid()
        x, y, z = tiles[t, 0] * LEAF + i, tiles[t, 1] * LEAF + j, tiles[t, 2] * LEAF + k
        wp.volume_store_f(volume, x, y, z, initial_value(x, y, z))

    @wp.kernel
    def step_tiles(now: wp.uint64, after: wp.uint64, tiles: wp.array2d(dtype=int), k: float):
        t, i, j, l = wp.tid()
        x, y, z = tiles[t, 0] * LEAF + i, tiles[t, 1] * LEAF + j, tiles[t, 2] * LEAF + l
        m = wp.volume_lookup_f(now, x, y, z)
        around = (wp.volume_lookup_f(now, x - 1, y, z) + wp.volume_lookup_f(now, x + 1, y, z)
                  + wp.volume_lookup_f(now, x, y - 1, z) + wp.volume_lookup_f(now, x, y + 1, z)
                  + wp.volume_lookup_f(now, x, y, z - 1) + wp.volume_lookup_f(now, x, y, z + 1))
        wp.volume_store_f(after, x, y, z, m + k * (around - 6.0 * m))

    @wp.kernel
    def add_box(volume: wp.uint64, first: int, out: wp.array(dtype=wp.float64)):
        x, y, z = wp.tid()
        wp.atomic_add(out, 0, wp.float64(wp.volume_lookup_f(volume, first + x, first + y, first + z)))

    def full():
        now, after = (wp.empty((side, side, side), dtype=float, device=device) for _ in range(2))
        wp.launch(fill_array, dim=(side, side, side), inputs=[now], device=device)
        return (lambda: wp.launch(step_array, dim=(side, side, side), inputs=[now, after, DIFFUSION], device=device),
                lambda: float(after.numpy()[box(side), box(side), box(side)].sum(dtype="f8")))

    def tenth_leaves():
        leaves = occupied_leaves(numpy, args.leaves_side)
        points = wp.array(leaves * LEAF, dtype=wp.vec3i, device=device)
        tiles = wp.array(leaves, dtype=int, device=device)
        now, after = (wp.Volume.allocate_by_tiles(points, voxel_size=1.0, bg_value=0.0, device=device) for _ in range(2))
        dim = (len(leaves), LEAF, LEAF, LEAF)
        wp.launch(fill_tiles, dim=dim, inputs=[now.id, tiles], device=device)

        def total():
            out = wp.zeros(1, dtype=wp.float64, device=device)
            wp.launch(add_box, dim=(BOX,) * 3, inputs=[after.id, box(args.leaves_side).start, out], device=device)
            return float(out.numpy()[0])

        return (lambda: wp.launch(step_tiles, dim=dim, inputs=[now.id, after.id, tiles, DIFFUSION], device=device), total)

    return {"full": full, "tenth_leaves": tenth_leaves}


def main():
    args = parse()
    # Our lines go to the real standard output; whatever Warp prints goes to standard error.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import numpy
    import warp as wp

    if args.cache:
        wp.config.kernel_cache_dir = args.cache
    wp.init()
    make = build(wp, numpy, args)
    made = {}

    def seconds(name):
        if name not in made:
            made[name] = make[name]()
            made[name][0]()  # compiles
        wp.synchronize()
        start = time.perf_counter()
        for _ in range(REPETITIONS):
            made[name][0]()
        wp.synchronize()
        return (time.perf_counter() - start) / REPETITIONS

    if not args.serve:
        for name in make:
            seconds(name)
            print(f"{name:<14} {1e3 * statistics.median(seconds(name) for _ in range(7)):>10.3f}  ms", file=lines)
        return
    print(json.dumps({"warp": wp.config.version, "device": args.device}), file=lines)
    for command in sys.stdin:
        words = command.split()
        if len(words) != 2 or words[0] not in ("time", "check") or words[1] not in make:
            sys.exit(f"laplacian_warp.py: unknown command {command.strip()!r}; there are time and check, each with one of "
                     f"{', '.join(make)}")
        answer = {"seconds": seconds(words[1])} if words[0] == "time" else {"sum": made[words[1]][1]()}
        print(json.dumps(answer), file=lines)


main()
