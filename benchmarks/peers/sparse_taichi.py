#!/usr/bin/env python3
"""A small benchmark of sparse grids, in Taichi: activation, collection, element lists, struct-for, a stencil, memory.

    python3 sparse_taichi.py [--quick] [--threads N]        needs `pip install taichi`

prints one row per workload; docs/benchmarks.md defines them. With --serve it is the peer in `coppice-bench sparse`:
one JSON line when it is ready, then one for each command on standard input,

    time WORKLOAD       {"seconds": wall clock, "cpu_seconds": of all threads} for one run; its preparation is not timed
    check WORKLOAD      {"active": cells or blocks, "sum": of what it computed}
    bytes WORKLOAD      {"bytes": growth of resident memory when its tree was filled and used}
"""
import argparse
import json
import os
import statistics
import sys
import time

LEAF = 8
ONE_IN = 10
TREE_SIDE = 512  # of the shell's tree, in cells
DIFFUSION = 0.1


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--blocks", type=int, default=512, help="per axis of the tree that is filled")
    parser.add_argument("--side", type=int, default=3200, help="cells per axis of the grid of which a tenth is active")
    parser.add_argument("--items", type=int, default=1 << 20, help="integers to append to many lists; an eighth of them to one")
    parser.add_argument("--shell", default="120,12588,13972",
                        help="half the side of its box, and the squares between which squared radii lie")
    parser.add_argument("--quick", action="store_true", help="three runs of each instead of fifteen")
    parser.add_argument("--serve", action="store_true", help="take commands from standard input")
    parser.add_argument("--cache", help="folder of compiled kernels; default: none is kept")
    return parser.parse_args()


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Workload:
    """One row: `prepare` is not timed, `run` is; `unit` is how many of what one run does."""

    def __init__(self, run, prepare=None, count=1, unit="ms", scale=1e3, one_thread=False):
        self.run, self.prepare, self.one_thread = run, prepare, one_thread
        self.count, self.unit, self.scale = count, unit, scale


class Fill:
    """(8 * blocks)^2 floats as pointer(blocks, blocks).dense(8, 8)."""

    def __init__(self, ti, blocks):
        self.ti = ti
        self.side = side = blocks * LEAF
        a = self.a = ti.field(ti.f32)
        self.block = block = ti.root.pointer(ti.ij, (blocks, blocks))
        block.dense(ti.ij, (LEAF, LEAF)).place(a)

        @ti.kernel
        def fill(n: ti.i32):
            for i, j in ti.ndrange(n, side):
                a[i, j] = 2.0

        @ti.kernel
        def activate():
            for i, j in ti.ndrange(blocks, blocks):
                ti.activate(block, [i, j])

        @ti.kernel
        def add():
            for i, j in a:
                a[i, j] += 1.0

        @ti.kernel
        def total() -> ti.f64:
            s = ti.f64(0.0)
            for i, j in a:
                s += ti.cast(a[i, j], ti.f64)
            return s

        self.fill_rows, self.activate, self.add, self.total = fill, activate, add, total
        fill(1), add(), block.deactivate_all(), fill(1), add(), total(), ti.sync()
        before = resident_bytes()
        fill(side), add(), ti.sync()
        self.bytes, self.voxels = resident_bytes() - before, side * side
        block.deactivate_all(), activate(), ti.sync()  # compiles what is left

    def fill(self):
        self.fill_rows(self.side)

    def clear(self):
        self.block.deactivate_all()  # collects, too

    def fill_clear(self):
        self.fill()
        self.clear()

    def activate_clear(self):
        self.activate()
        self.clear()

    def check(self):
        self.clear()
        self.fill()
        return {"active": self.voxels, "sum": self.total()}


def listgen_seconds(ti, kernel):
    """The time that one launch of a struct-for spends on its element lists, by Taichi's own profiler."""
    from taichi.profiler.kernel_profiler import get_default_kernel_profiler

    profiler = get_default_kernel_profiler()
    ti.profiler.clear_kernel_profiler_info()
    kernel()
    ti.sync()
    profiler._update_records()
    records = list(profiler._traced_records)
    ti.profiler.clear_kernel_profiler_info()
    loop = [r.kernel_time for r in records if r.name.endswith("_struct_for")]
    if len(loop) != 1:
        sys.exit(f"sparse_taichi.py: one struct-for was expected among {[r.name for r in records]}")
    return sum(r.kernel_time for r in records if not r.name.endswith("_struct_for")) * 1e-3


class Occupied:
    """side^2 cells of two floats of which a tenth is active: single cells of bitmasked leaves, or whole dense leaves."""

    def __init__(self, ti, side, whole_leaves):
        self.ti = ti
        unit = LEAF if whole_leaves else 1
        a, b = ti.field(ti.f32), ti.field(ti.f32)
        block = ti.root.pointer(ti.ij, (side // LEAF, side // LEAF))
        leaf = (block.dense if whole_leaves else block.bitmasked)(ti.ij, (LEAF, LEAF))
        leaf.place(a)
        leaf.place(b)

        @ti.func
        def is_occupied(x, y):
            h = ti.cast(x, ti.u32) * ti.u32(0x9E3779B1) + ti.cast(y, ti.u32) * ti.u32(0x85EBCA77)
            h ^= h >> 15
            h *= ti.u32(0x2C1B3C6D)
            h ^= h >> 12
            return h % ti.u32(ONE_IN) == 0

        @ti.kernel
        def fill(n: ti.i32):
            for i, j in ti.ndrange(n, side):
                if is_occupied(i // unit, j // unit):
                    a[i, j] = ti.cast((i * 131 + j * 17) % 1000, ti.f32)

        @ti.kernel
        def scale():
            for i, j in a:
                b[i, j] = 2.0 * a[i, j] + 1.0

        @ti.kernel
        def total() -> ti.f64:
            s = ti.f64(0.0)
            for i, j in b:
                s += ti.cast(b[i, j], ti.f64)
            return s

        @ti.kernel
        def count() -> ti.i32:
            n = 0
            for i, j in b:
                n += 1
            return n

        self.scale, self.total, self.count = scale, total, count
        fill(1), scale(), total(), count(), ti.sync()
        before = resident_bytes()
        fill(side), scale(), ti.sync()
        self.bytes, self.voxels = resident_bytes() - before, count()

    def check(self):
        return {"active": self.count(), "sum": self.total()}


class Append:
    """`items` integers, appended in parallel to one list or to lists that hold 128 each."""

    def __init__(self, ti, items, many):
        x = ti.field(ti.i32)
        lists = items // 128 if many else 1
        self.list = ti.root.dense(ti.i, lists).dynamic(ti.j, items // lists, chunk_size=32 if many else 1024)
        self.list.place(x)
        self.items = items

        @ti.kernel
        def append():
            for i in range(items):
                x[i & (lists - 1)].append(i)

        @ti.kernel
        def total() -> ti.f64:
            s = ti.f64(0.0)
            for i, j in x:
                s += ti.cast(x[i, j], ti.f64)
            return s

        self.append, self.total = append, total

    def clear(self):
        self.list.deactivate_all()

    def check(self):
        self.clear()
        self.append()
        return {"active": self.items, "sum": self.total()}


class Shell:
    """Two floats per voxel of a sphere's shell, pointer(64^3).bitmasked(8^3), and a 7-point Laplacian over them."""

    def __init__(self, ti, half, inner2, outer2):
        self.ti = ti
        now, after = ti.field(ti.f32), ti.field(ti.f32)
        center, n = TREE_SIDE // 2, 2 * half
        leaf = ti.root.pointer(ti.ijk, (TREE_SIDE // LEAF,) * 3).bitmasked(ti.ijk, (LEAF,) * 3)
        leaf.place(now)
        leaf.place(after)

        @ti.kernel
        def fill(planes: ti.i32):
            for i, j, k in ti.ndrange(planes, n, n):
                x, y, z = i + center - half, j + center - half, k + center - half
                dx, dy, dz = x - center, y - center, z - center
                distance2 = dx * dx + dy * dy + dz * dz
                if inner2 < distance2 < outer2:
                    now[x, y, z] = ti.cast((x * 131 + y * 17 + z * 7) % 1000, ti.f32)

        def make_step(in_tiles):
            @ti.kernel
            def step():
                if ti.static(in_tiles):
                    ti.block_local(now)
                for i, j, k in after:
                    m = now[i, j, k]
                    after[i, j, k] = m + DIFFUSION * (
                        now[i - 1, j, k] + now[i + 1, j, k] + now[i, j - 1, k] + now[i, j + 1, k]
                        + now[i, j, k - 1] + now[i, j, k + 1] - 6.0 * m)
            return step

        @ti.kernel
        def total() -> ti.f64:
            s = ti.f64(0.0)
            for i, j, k in after:
                s += ti.cast(after[i, j, k], ti.f64)
            return s

        @ti.kernel
        def count() -> ti.i32:
            c = 0
            for i, j, k in after:
                c += 1
            return c

        self.step, self.step_in_tiles, self.total, self.count = make_step(False), make_step(True), total, count
        fill(half // 2), self.step(), self.step_in_tiles(), total(), count(), ti.sync()
        before = resident_bytes()
        fill(n), self.step(), ti.sync()
        self.bytes, self.voxels = resident_bytes() - before, count()

    def check(self):
        return {"active": self.count(), "sum": self.total()}


class Rows:
    """The workloads by name; a tree is made when the first of its workloads is asked for."""

    def __init__(self, ti, args):
        self.ti, self.args, self.trees = ti, args, {}

    NAMES = ["fill_active", "fill_empty", "fill_clear_gc", "activate_clear_gc", "list", "struct_for",
             "struct_for_leaves", "append_one", "append_many", "laplacian", "laplacian_in_tiles"]

    def tree(self, name):
        if name.startswith("laplacian"):
            return self._tree("shell", lambda: Shell(self.ti, *map(int, self.args.shell.split(","))))
        if name.startswith("struct_for"):
            return self._tree(name, lambda: Occupied(self.ti, self.args.side, name == "struct_for_leaves"))
        if name.startswith("append"):
            return self._tree(name, lambda: Append(
                self.ti, self.args.items // (1 if name == "append_many" else 8), name == "append_many"))
        return self._tree("fill", lambda: Fill(self.ti, self.args.blocks))

    def _tree(self, key, make):
        if key not in self.trees:
            self.trees[key] = make()
        return self.trees[key]

    def workload(self, name):
        t = self.tree(name)
        if name == "fill_active":
            return Workload(t.fill, t.fill)
        if name == "fill_empty":
            return Workload(t.fill, t.clear)
        if name == "fill_clear_gc":
            return Workload(t.fill_clear, t.clear)
        if name == "activate_clear_gc":
            return Workload(t.activate_clear, t.clear)
        if name == "list":
            return Workload(t.add, t.fill)
        if name.startswith("struct_for"):
            return Workload(t.scale, None, t.voxels, "ns/cell", 1e9)
        if name.startswith("append"):
            return Workload(t.append, t.clear, t.items, "ns/append", 1e9)
        step = t.step_in_tiles if name == "laplacian_in_tiles" else t.step
        return Workload(step, None, t.voxels, "ns/voxel", 1e9, one_thread=True)

    def time(self, name):
        w = self.workload(name)
        if w.prepare:
            w.prepare()
        self.ti.sync()
        start, cpu_start = time.perf_counter(), time.process_time()
        if name == "list":
            seconds = listgen_seconds(self.ti, w.run)
            return {"seconds": seconds, "cpu_seconds": seconds}
        w.run()
        self.ti.sync()
        return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}


def serve(rows, lines):
    import taichi

    print(json.dumps({"taichi": ".".join(map(str, taichi.__version__)), "threads": rows.args.threads}), file=lines)
    for command in sys.stdin:
        words = command.split()
        if len(words) != 2 or words[0] not in ("time", "check", "bytes") or words[1] not in rows.NAMES:
            sys.exit(f"sparse_taichi.py: unknown command {command.strip()!r}; there are time, check and bytes, "
                     f"each with one of {', '.join(rows.NAMES)}")
        if words[0] == "time":
            answer = rows.time(words[1])
        elif words[0] == "check":
            answer = rows.tree(words[1]).check()
        else:
            answer = {"bytes": rows.tree(words[1]).bytes}
        print(json.dumps(answer), file=lines)


def print_rows(rows, repetitions, lines):
    print(f"{'workload':<22} {'value':>10}  unit", file=lines)
    for name in rows.NAMES:
        w = rows.workload(name)
        if w.one_thread and rows.args.threads != 1:
            print(f"{name:<22} {'-':>10}  with --threads 1", file=lines)
            continue
        rows.time(name)
        seconds = statistics.median(rows.time(name)["seconds"] for _ in range(repetitions))
        print(f"{name:<22} {seconds * w.scale / w.count:>10.3f}  {w.unit}", file=lines)
        if name.endswith("_gc"):
            per_block = seconds * rows.args.threads / rows.args.blocks**2 * 1e9
            print(f"{name + '_block':<22} {per_block:>10.1f}  ns/(block core)", file=lines)
    for name in ("fill_active", "struct_for", "struct_for_leaves", "laplacian"):
        t = rows.tree(name)
        print(f"{'bytes_' + name.split('_active')[0]:<22} {t.bytes / t.voxels:>10.2f}  B/voxel", file=lines)


def main():
    args = parse()
    # Our lines go to the real standard output; whatever Taichi prints goes to standard error.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import taichi as ti

    cache = {"offline_cache": False}
    if args.cache:
        cache = {"offline_cache": True, "offline_cache_file_path": args.cache}
    ti.init(arch=getattr(ti, args.arch), cpu_max_num_threads=args.threads, kernel_profiler=True, log_level=ti.ERROR, **cache)
    rows = Rows(ti, args)
    if args.serve:
        serve(rows, lines)
    else:
        print_rows(rows, 3 if args.quick else 15, lines)


main()
