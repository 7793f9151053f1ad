"""What the GPU benchmark gives its kernels to do: the model's descriptions (cost_model.py).

A kernel's unit is what a warp or a thread block takes at a time: 32 items of a range, or a leaf. Its description names the loop
whose turn is a unit, and says for each loop inside of that how often it turns for one turn of the loop around it. Loops are
found by the source text of the line that closes them, and, where several have the same, by a text that a line of them has.
A loop without a description, and a description without its loop, are errors.

Sizes are those of benchmarks/gpu.cc, gpu_mpm.cc and poisson.cc.
"""
import collections
import math

# A loop: text of the line that closes it, how often it turns, text of a line in it. With `of`, so many instructions of that kind
# are run in all, however far ptxas has unrolled the loop. A tuple of turns is for loops of the same text, the longest first.
Turns = collections.namedtuple("Turns", "text times holds of", defaults=("", ""))
# A case: its name, units, numbers that turns and bytes depend on, and its share of the benchmark's launches.
Case = collections.namedtuple("Case", "name units numbers launches", defaults=({}, 0))
# A unit is a turn of the loop `loop`, or of the turn's part with one instruction of the kind `of`; `warps` of a thread block have a
# part of it. `dram_bytes` of it must come from memory or go there. `scattered`: {text: (lines, sectors)} of accesses of neighbours
# that do not lie side by side. Instructions of the kinds `rarely` are run by nearly no unit. `counters`: how often a unit raises a
# counter that all units raise.
Kernel = collections.namedtuple("Kernel", "name unit loop of warps dram_bytes turns cases scattered rarely counters",
                                defaults=({}, (), 0))

ITEMS = "i += coppice_lane_count()) one(i);"  # sparse/device/range_loops.h: a range
LEAVES = "for (uint64_t i = begin; i < end; ++i) {"  # sparse/device/loops.h: leaves, each a thread block's
WHOLE = "COPPICE_KERNEL"  # a launch's turns: one thread has all
WAITS = [Turns("coppice_pause(turn);", 0), Turns("compare_exchange(&tree->fresh_bytes", 0)]
COLLIDERS = Turns("c < a.control->n_colliders", 0)

# ---- MPM. A body's particles begin at a quarter and three quarters of each cell, so that the lowest nodes of their stencils have
# one value more per axis than the body has cells. A home block has 4 of them per axis; a block and those behind it are active.


def mpm_case(name, cells, first, launches, per_cell=8):
    homes, active = 1, 1
    for n, begin in zip(cells, first):
        low, high = begin + 4 - 2, int(begin + 4 + n - 2)  # the nodes before the first and the last particle's stencil
        blocks = high // 4 - low // 4 + 1
        homes, active = homes * blocks, active * (blocks + 1)
    particles = per_cell * math.prod(cells)
    return Case(name, homes, {"particles": particles, "homes": homes, "active": active, "each": particles / homes}, launches)


CUBE = mpm_case("mpm_7M", (96, 96, 96), (16, 16, 16), 576)
FLUID = mpm_case("mpm_1M", (72, 24, 72), (92, 16, 92), 576)
TAICHI = mpm_case("taichi_256", (101.6, 101.6, 101.6), (36, 36, 36), 256, 4)
MPM = [CUBE, FLUID, TAICHI]
# A material's numbers that a step reads and writes beside positions: jelly has F and writes it and tau, v and C; water has a scalar.
JELLY_FLOATS, WATER_FLOATS = 3 + 9 + 3 + 3 + 9 + 9 + 6, 3 + 1 + 1 + 3 + 3 + 9 + 6 + 1
# Particles fall, and are sorted once one has moved by a cell: half of the time some of a block's cells hold them in 5 layers and not
# in 4, which is more than the 64 cells that a thread block's 128 threads sum up at a time.
PASSES = 1.5


def of_active(case):
    return Case(case.name, case.numbers["active"], case.numbers, case.launches)


def of_particles(case):
    return Case(case.name, case.numbers["particles"] / 32, case.numbers, 0)


def once(launches=0):
    return [Case("one thread", 1, {}, launches)]


PARTICLES = "for (int p = lane; p < n; p += lanes)"
BATCHES = "i < end; i += alone ? kBatch : block.lanes()"
TILE_FLOATS = 4 * 512


def of_material(holds):
    return Turns(BATCHES, lambda n: n["each"] / 128, holds)


KERNELS = [
    Kernel("mpm.begin_step_3d", "step", ITEMS, "", 1, lambda n: 0,
           [Turns("c < control.n_colliders", 0), Turns("__builtin_cosf", 0), Turns("__builtin_sinf", 0)], once(1408)),
    Kernel("mpm.particles_to_grid_3d", "home block", LEAVES, "", 4, lambda n: n["each"] * 4 * 21 + 4 * TILE_FLOATS,
           [Turns("store(memory.tile + n, Float4{0", 4, of="STS"),
            Turns("for (std::uint32_t g = 0; g < a.n_groups", 1),
            Turns("begin < end; begin += most", 1),
            Turns("memory.counts[cell] = 0;", 216 / 128, of="STS"),
            Turns(PARTICLES, lambda n: n["each"] / 128, "coppice_fetch_add_u32(memory.counts"),
            Turns("for (int cell = lane; cell < kAllTileCells<D>; cell += lanes) {", 216 / 128),
            Turns(PARTICLES, lambda n: n["each"] / 128, "memory.order[memory.starts"),
            Turns("first < shares; first += block.lanes()", PASSES),
            Turns("at < end; at += 2", lambda n: n["each"] / 128 / PASSES),
            Turns("for (int n = lane; n < nodes; n += lanes)", 4, of="LDS")],
           MPM),
    Kernel("mpm.update_grid_3d", "block", LEAVES, "", 2,
           lambda n: 4 * TILE_FLOATS * n["homes"] / n["active"] + 1024, [COLLIDERS], [of_active(case) for case in MPM]),
    Kernel("mpm.grid_to_particles_3d", "home block", LEAVES, "", 4,
           lambda n: 4 * n["floats"] * n["each"] + 1024 * n["active"] / n["homes"],
           [Turns("n < kTileNodes<D>; n += static_cast<int>(block.lanes())", 4), COLLIDERS,
            Turns("for (std::uint32_t g = 0; g < a.n_groups", (1, 1)),
            lambda case: of_material("jelly_model.h" if case == "mpm_7M" else "water_model.h"),
            Turns(BATCHES, 0), Turns("i < end; i += lanes)", 0), Turns("colliders >> c != 0", 0), Turns("round < kMostRounds", 0),
            Turns("s.distance > 0.0f && at < length", 0), Turns("for (int i = 0; i < 8; ++i)", 0)],
           [Case(c.name, c.units, {**c.numbers, "floats": JELLY_FLOATS if c is CUBE else WATER_FLOATS}, c.launches) for c in MPM]),
    Kernel("mpm.finish_step_3d", "step", ITEMS, "", 1, lambda n: 0,
           [Turns("c < control.n_colliders", 0), Turns("__builtin_cosf", 0), Turns("__builtin_sinf", 0)], once(1408)),
    Kernel("mpm.reorder_particles", "32 particles", ITEMS, "STG", 1, lambda n: 32 * 12, [], [of_particles(c) for c in MPM[:2]]),
    Kernel("mpm.activate_home_3d", "32 particles", ITEMS, "", 1, lambda n: 32 * 12, WAITS, [of_particles(c) for c in MPM[:2]],
           {}, ("ATOMG",)),
    Kernel("mpm.activate_reach_3d", "32 home blocks", "i < end; i += coppice_lane_count())", "", 1, lambda n: 32 * (24 + 7 * 4),
           [Turns("for (int o = 1; o < 1 << D; ++o)", 7), *WAITS],
           [Case(c.name, c.units / 32, c.numbers) for c in MPM[:2]], {}, ("ATOMG",)),
    # ---- stencils: a leaf of 8^3 floats is read and written, its element and its row of the neighbours' table are read
    Kernel("gpu.apply_laplacian", "leaf", LEAVES, "", 4, lambda n: 2 * 2048 + 24 + 108, [],
           [Case("laplacian_full", 262144, {}, 64), Case("laplacian_tenth_leaves", 210020, {}, 64)]),
    Kernel("gpu.apply_laplacian", "leaf with bits", LEAVES, "", 4, lambda n: 2 * 2048 + 64 + 24 + 108,
           [Turns("for (uint32_t i = p.first + coppice_lane(); i < p.end", 4)],
           [Case("laplacian_tenth_cells", 262144, {}, 64)], {"__atomic_load_n": (1, 1)}),
    Kernel("runtime_poisson.apply_to", "leaf", LEAVES, "", 4, lambda n: 2 * 4096 + 24 + 108, [], [Case("poisson_128", 4096)]),
    Kernel("runtime_poisson.smooth", "leaf", LEAVES, "", 4, lambda n: 4 * 2048 + 24 + 108, [], [Case("poisson_128", 4096)]),
    # ---- activation and collection: 262,144 blocks of 8^2 floats, 320 bytes with their header
    Kernel("gpu.activate_blocks", "32 blocks", ITEMS, "", 1, lambda n: 32 * (4 + 4 + 32), WAITS,
           [Case("activate_clear_gc", 262144 / 32, {}, 64)], {"header->": (32, 32), "place.coord": (32, 32)}, (), 1),
    Kernel("runtime_collection.mark_changed", "launch", WHOLE, "", 1, lambda n: 0, [], once()),
    Kernel("runtime_collection.count_batches", "launch", WHOLE, "", 1, lambda n: 0, [], once()),
    Kernel("runtime_collection.recycle_all_cells", "32 cells", ITEMS, "", 1, lambda n: 32 * (32 + 4 + 4 + 4),
           [Turns("for (uint64_t cell = first; cell < end; ++cell)", 1), Turns("recycled &= recycled - 1", 0)],
           [Case("activate_clear_gc", 262144 / 32)], {"header->": (32, 32)}, (), 1),
    Kernel("runtime_collection.collect_begin", "launch", WHOLE, "", 1, lambda n: 0, [Turns(ITEMS, 0)], once()),
    Kernel("runtime_collection.collect_move_free", "launch of nothing", ITEMS, "STG", 1, lambda n: 0, [], [Case("activate_clear_gc", 0)]),
    Kernel("runtime_collection.collect_bookkeep", "launch", WHOLE, "", 1, lambda n: 0, [], once()),
    Kernel("runtime_collection.collect_refill", "51 cells", LEAVES, "", 4, lambda n: 51 * (256 + 4 + 4),
           [Turns("free[i] = recycled[i];", 51 / 128), Turns("reinterpret_cast<uint32_t*>(p + head)", 0),
            Turns("i < n - words * 4; i += by.count", 0), Turns("i < cells * lines; i += by.count", 51 * 16 / 128)],
           [Case("activate_clear_gc", 262144 / 51)]),
    Kernel("runtime_collection.count_version", "launch", WHOLE, "", 1, lambda n: 0, [], once()),
    # ---- the list of 2,097,152 leaves: a thread looks at one slot
    Kernel("loop_lists.count_slots", "32 slots", ITEMS, "", 1, lambda n: 32 * (4 + 4),
           [Turns("k < s.count(item); ++k) live", (0, 0, 1))], [Case("list", 2097152 / 32)]),
    Kernel("loop_lists.write_elements", "32 slots", ITEMS, "", 1, lambda n: 32 * (4 + 4 + 24),
           [Turns("k < s.count(item); ++k) {", 1)], [Case("list", 2097152 / 32)]),
    Kernel("loop_lists.fill_elements", "list of the root", ITEMS, "", 1, lambda n: 0,
           [Turns("for (uint32_t l = level; l + 1 < node->depth; ++l) {", (0,) * 8)], once()),
]

# ---- rows of the benchmark: launches that are predicted (kernel, case, how many), launches that do next to nothing, how often the host
# waits for a number of the device before it goes on, and the row's number of a repetition's seconds
Row = collections.namedtuple("Row", "name unit launches more_launches waits value")


def step_of(case):
    names = ["particles_to_grid_3d", "update_grid_3d", "grid_to_particles_3d"]
    ends = [("mpm.begin_step_3d", "one thread", 1), ("mpm.finish_step_3d", "one thread", 1)]
    return [(f"mpm.{name}", case.name, 1) for name in names] + ends


def laplacian(name, bytes_of_lines):
    return Row(name, "GB/s", [("gpu.apply_laplacian", name, 1)], 0, 0, lambda s: bytes_of_lines / s / 1e9)


ONE = "one thread"
ROWS = [
    laplacian("laplacian_full", 2 * 4 * 512**3),
    laplacian("laplacian_tenth_leaves", 2 * 4 * 107530240),
    laplacian("laplacian_tenth_cells", 65 * 13420710),
    # And deactivate_all's own launch, and what tells the host of the activation.
    Row("activate_clear_gc", "ns/block",
        [("gpu.activate_blocks", "activate_clear_gc", 1), ("runtime_collection.mark_changed", ONE, 2),
         ("runtime_collection.count_batches", ONE, 1), ("runtime_collection.recycle_all_cells", "activate_clear_gc", 1),
         ("runtime_collection.collect_begin", ONE, 1), ("runtime_collection.collect_move_free", "activate_clear_gc", 1),
         ("runtime_collection.collect_bookkeep", ONE, 1), ("runtime_collection.collect_refill", "activate_clear_gc", 1),
         ("runtime_collection.count_version", ONE, 2)], 2, 2, lambda s: 1e9 * s / 262144),
    # And the change of one block, in a dozen launches with two waits, and the scan of the slots' counts.
    Row("list", "us", [("loop_lists.count_slots", "list", 1), ("loop_lists.write_elements", "list", 1)], 14, 3, lambda s: 1e6 * s),
    *(Row(case.name, "particle-steps/s", step_of(case), 0, 0, lambda s, n=case.numbers["particles"]: n / s)
      for case in (FLUID, CUBE, TAICHI)),
]
