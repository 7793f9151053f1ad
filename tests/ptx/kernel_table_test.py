#!/usr/bin/env python3
"""GPU code of every kernel of the apps, the runtime and the tests, as it is specialized when they run: PTX by the
specializer, assembled by ptxas, in a table of registers, shared memory, stack and spills.

    kernel_table_test.py SOURCE BUILD PTXAS [--without-libdevice] [--keep FOLDER]

Runs the programs below with COPPICE_PTX_FOLDER (gpu/jit/ptx_recorder.h), and assembles for

- sm_90: every specialization of a hot kernel (of apps/ or sparse/) that they asked for, and two of each of the others: those
  with the shortest and the longest text;
- sm_75: the longest of every kernel. But for the header, PTX for it is nearly always sm_90's text;
- sm_80: the longest of hot kernels;
- sm_120: every specialization of hot kernels, of sm_90's PTX, which newer GPUs get.

The longest of hot kernels for each GPU is disassembled, too, where nvdisasm is at hand (machine_code.py).

The table is printed, and written to BUILD/kernel_table.txt; "loads" is how many from global memory are under way at most before
the code waits for one of them, or stores, on the GPU where these are fewest. Fails when

- ptxas refuses any of it;
- a hot kernel reads, writes or adds through a generic address, of which the GPU finds out at run time what memory it is of, in
  PTX or in the machine code;
- a hot kernel needs more registers, shared memory or stack, spills more, or has fewer loads under way, than its budget says
  (BUDGETS);
- a kernel in the generated headers was not met, or lacks PTX for a GPU, and is not in NOT_FOR_GPUS with the reason;
- one of NOT_FOR_GPUS has PTX.

Without ptxas the exit code is 77: skipped. In a build without libdevice, kernels that call math functions are only listed.
Needs no GPU. --keep leaves the PTX in a folder, and takes it from there when it is there already.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import machine_code

SKIPPED = 77
GPUS = [75, 80, 90, 120]
HOT_FOLDERS = ["apps", "sparse"]
FOLDERS = HOT_FOLDERS + ["tests"]

SCENE = ["--frames", "1", "--set", "grid.resolution=32", "--device", "cpu", "--threads", "2", "--overwrite"]


def programs(build, folder):
    """Commands that launch all kernels but those of NOT_FOR_GPUS, the longest first, and whether they may fail."""
    tests = build / "bin"
    # Without the tests that specialize a kernel for dozens of random trees, and the emulated GPU and other numbers of ranks,
    # which have the same PTX.
    # In three parts: it takes as long as all others together, and a part of it would be what all cores but one wait for.
    for part in range(3):
        yield ["env", "GTEST_TOTAL_SHARDS=3", f"GTEST_SHARD_INDEX={part}", tests / "sparse_conformance_tests",
               "--gtest_filter=-*/simt:*/cpu1:Sparse/Rank*/cpu2:Sparse/Rank*/cpu4:Sparse/Rank*/simt3:*C58_*:*KernelsOnDisk*:*CudaKernels*:*CudaFunctions*"], False
    yield [tests / "sparse_unit_tests",
           "--gtest_filter=-*/simt:*/cpu1:Trees/TopologyTools*/1?:Trees/TopologyTools*/2?:Sparse/Reload.*:*OfAnyStages*"], False
    yield [tests / "sparse_stress_tests", "--gtest_filter=*/PointerDense_cpu:Sparse/TopologyRaces.*/cpu:Sparse/MemoryCycles.*/cpu"], False
    # In one, two and three dimensions.
    each = ":".join(f"*AfterEachLaunchAlone/{kind}_cpu1" for kind in ["PointerDense", "PointerPointerDenseAndBitmasked", "PointerBitmaskedAndDense"])
    yield [tests / "sparse_stress_tests", f"--gtest_filter={each}"], False
    # What only a device does whose memory is mapped before a launch: room, and recordings. And 6 random trees, for 40 on a CPU.
    yield [tests / "sparse_conformance_tests", "--gtest_filter=Sparse/Effects.*/simt"], False
    yield [tests / "sparse_unit_tests", "--gtest_filter=*LaunchRuns*/simt:*LargeContainers*/simt:*OfAnyStages*/simt"], False
    yield [tests / "sparse_stress_tests", "--gtest_filter=*MaskRaces*BelowPointer_cpu:Sparse/MaskRacesOfLists.*/cpu:Sparse/MaskRacesOfInnerCells.*/cpu"], False
    yield [tests / "sparse_stress_tests", "--gtest_filter=Sparse/RandomFunctions.EqualTheirStatementsGivenOneByOne/cpu4"], False
    yield [tests / "kept_kernels_program", "cpu"], False
    yield [tests / "coppice-gpu-ladder", "compile", "simt"], False
    yield [tests / "apps_unit_tests", "--gtest_filter=Volumes/BrickPack.*/cpu:Trees/TreeBoxesOf.*/cpu:Apps/WriteVdb.WritesNumbers*/cpu*:PointPacking.*:Mpm/GridField.*/cpu:Mpm/Hands.*/cpu:"
           "Scenes/MpmRanks.HaveTheBitsOfOne/jelly:Scenes/MpmRanks.HaveTheBitsOfOne/mixed"], False
    # All materials have the same kernels. An outflow has one more, and so has a VTK image of the grid.
    for scene, corner in [("snow_2d", "0.1, 0.1"), ("snow_3d", "0.1, 0.1, 0.1")]:
        outflow = f"outflow+={{center=[{corner}], half_size=[{corner}]}}"
        yield [tests / "coppice", "run", scene, "-o", folder / "out" / scene, *SCENE, "--set", outflow, "--set", "output.vti=true"], False
    for fault in ["step", "race", "atomics", "right"]:
        yield [tests / "planted_program", fault], False
    for fault in ["overrun", "stack", "copy"]:  # they write where they must not
        yield [tests / "planted_program", fault], True


# Kernels without a row, and why.
NOT_FOR_GPUS = {
    "jit.write_checks": "compiled, not launched, by specializer_test",
    "library.helpers": "converts between floats and integers of 128 bits, which GPUs do not: validate_test",
    "ladder.spin_for_ever": "a planted fault, compiled when it is asked for: gpu_report_test",
    "ladder.store_nowhere": "a planted fault, compiled when it is asked for: gpu_report_test",
    "reload.*": "changed while they are used, each test in a process of its own: kernel_reload_test",
    "loops.count_blocks1": "its launch is refused before anything is compiled: loops_test",
    "conformance_lists.add_to_list1": "its launch is refused before anything is compiled: lists_conformance_test",
    "fast_math.*_functions": "compiled and assembled by sparse_gpu_tests (PtxMath)",
    "fast_math.fast_doubles": "compiled and assembled by sparse_gpu_tests (PtxMath)",
    "fast_math.all_libdevice": "compiled and assembled by sparse_gpu_tests (PtxMath)",
    "jit.follow_links": "compiled and assembled by sparse_gpu_tests (Ptx)",
    "jit.pick_memory": "compiled and assembled by sparse_gpu_tests (Ptx)",
    "heat.diffuse2": "compiled and assembled by sparse_gpu_tests (Ptx)",
    "box_loops.visit_block2": "its launch is refused before anything is compiled: box_loop_conformance_test",
    "effects.miss_then_fault": "it writes where it must not, on the emulated GPU alone: room_of_lists_conformance_test",
    "effects.fault_then_append": "it writes where it must not, on the emulated GPU alone: room_of_lists_conformance_test",
    "mpm_batches.*": "what a CPU's thread does alone: mpm_batches_test",
    "runtime_box.activate_box": "it runs only as what makes room, which has a row: activate_box_room",
}
# Handles used from a loop that may not use them so, and on trees of other axes.
for place in ["block1", "cell1", "entry1", "item1", "item3", "shared_block1", "team1"]:
    NOT_FOR_GPUS[f"misuse.*_{place}"] = "its launch is refused: misuse_conformance_test"
for name in ["add_where_told", "laplace2", "sum_to_own2"]:
    NOT_FOR_GPUS[f"misuse.{name}"] = "its launch is refused: misuse_conformance_test"
# Pairs of roles that race (sparse/role_table.cc).
REFUSED_PAIRS = {
    "read": ["sum", "tile", "atomic"],
    "reach": ["write", "update", "sum", "tile", "atomic", "set"],
    "write": ["sum", "tile", "atomic", "set"],
    "update": ["sum", "tile", "atomic", "set"],
    "sum": ["atomic", "set"],
    "tile": ["atomic", "set"],
    "atomic": ["set"],
}
for first, others in REFUSED_PAIRS.items():
    for second in others:
        for pair in (f"roles.pair_{first}_{second}", f"roles.pair_{second}_{first}"):
            NOT_FOR_GPUS[pair] = "its launch is refused before anything is compiled: role_table_conformance_test"


def known_kernels(source, build):
    """{file.kernel: folder of its kernel file} of all generated headers whose kernel file is still there."""
    kernels = {}
    for folder in FOLDERS:
        for header in (build / folder / "kernels").glob("*.kernels.h"):
            if not any((source / folder).rglob(header.stem + ".cc")):
                continue
            text = header.read_text(encoding="utf-8")
            for file, kernel in re.findall(r'^constexpr coppice::Kernel<.*\{&(\w+)_kernels, "(\w+)", ', text, re.MULTILINE):
                kernels[f"{file}.{kernel}"] = folder
    if set(kernels.values()) != set(FOLDERS):
        sys.exit(f"no kernels of all of {FOLDERS} in the generated headers of {build}")
    return kernels


def record(build, folder):
    """Runs the programs; returns what went wrong."""
    environment = {**os.environ, "COPPICE_PTX_FOLDER": str(folder / "ptx")}
    for variable in ["COPPICE_DEBUG", "COPPICE_LOG"]:
        environment.pop(variable, None)

    def run(program):
        command, may_fail = program
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0 or may_fail:
            return ""
        return f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [words for words in pool.map(run, programs(build, folder)) if words]


Usage = collections.namedtuple("Usage", "registers shared stack spills error")


def assemble(ptxas, text, gpu, nvdisasm=None):
    """What ptxas says of one kernel, and with `nvdisasm` its machine code."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.ptx"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([ptxas, "-v", f"-arch=sm_{gpu}", path, "-o", path.with_suffix(".cubin")], capture_output=True, text=True,
                              check=False)
        words = done.stdout + done.stderr
        if done.returncode != 0:
            return Usage(0, 0, 0, 0, words.strip()), None
        code = machine_code.disassemble(nvdisasm, path.with_suffix(".cubin")) if nvdisasm else None

    def number(pattern):
        return max((int(found) for found in re.findall(pattern, words)), default=0)

    spills = number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads")
    return Usage(number(r"Used (\d+) registers"), number(r"(\d+) bytes smem"), number(r"(\d+) bytes stack frame"), spills, ""), code


# What a hot kernel may take on any GPU, and the loads that it must have under way. 128 registers leave room for 512 threads on a
# multiprocessor; bytes of shared memory are those of a team.
Budget = collections.namedtuple("Budget", "registers shared stack loads spills may_be_generic", defaults=(128, 0, 0, 0, 0, False))

# By kernel; the first pattern counts, and other hot kernels have Budget(). The reasons:
# - MPM's teams of 64 threads keep a particle, or a row of nodes, in registers, and a block's nodes in a tile; a 3-D particle with the
#   loop over colliders beside it does not quite fit on sm_120;
# - reading a tile, a stencil's faces or a sum's elements, a thread asks for them before it uses the first;
# - a renderer's brick is put together in a thread's own memory, and takes one of eight leaves' pointers by an index;
# - loops over a tree's levels, which only the run counts, find them on the stack, as does libdevice what it reduces angles with.
BUDGETS = {
    "mpm.particles_to_grid_3d": Budget(255, 16944, loads=16),
    "mpm.particles_to_grid_wide_3d": Budget(255, 25136, loads=16),
    "mpm.particles_to_grid_2d": Budget(168, 9664, loads=8),
    "mpm.particles_to_grid_wide_2d": Budget(168, 11968, loads=8),
    "mpm.grid_to_particles_3d": Budget(255, 8192, stack=24, loads=16, spills=56),
    "mpm.grid_to_particles_wide_3d": Budget(255, 16384, loads=16),
    "mpm.grid_to_particles_2d": Budget(160, 2304, loads=8),
    "mpm.grid_to_particles_wide_2d": Budget(192, 4608, loads=8),
    "mpm.update_grid_*": Budget(loads=8),
    "mpm.begin_step_3d": Budget(stack=32),
    "mpm.finish_step_3d": Budget(stack=32),
    "mpm.add_body_3d": Budget(stack=48),
    "brick_pack.find_filled_blocks": Budget(stack=320, may_be_generic=True),
    "brick_pack.pack_blocks_*": Budget(stack=3248, may_be_generic=True),
    "brick_pack.pack_*": Budget(stack=2928),
    "runtime_append.count_in_blocks": Budget(stack=320),
    "runtime_append.write_keys": Budget(stack=320),
    "runtime_poisson.apply_to": Budget(shared=12800, loads=7),
    "runtime_poisson.subtract_applied": Budget(shared=12800, loads=7),
    "runtime_poisson.subtract_on_level": Budget(shared=6400, loads=7),
    "runtime_poisson.smooth": Budget(shared=6400, loads=7),
    "runtime_poisson.weigh_cells": Budget(shared=6400, loads=7),
    "runtime_poisson.pack_fine": Budget(shared=4000),
    "runtime_poisson.multiply*": Budget(shared=2048, loads=8),
    "runtime_poisson.go_on": Budget(shared=2048),
    "runtime_poisson.square_residual": Budget(shared=2048),
    "runtime_reductions.reduce_dot_*": Budget(loads=8),
    "runtime_reductions.reduce_*": Budget(loads=4),
    "runtime_reductions.finish_*": Budget(loads=8),
    "loop_lists.fill_elements": Budget(loads=16),
    "loop_lists.count_slots": Budget(loads=16),
    "topology_tools.dilate_masks": Budget(loads=16),
    "runtime_activation.bulk_bits": Budget(loads=16),
    "runtime_collection.clean_dirty": Budget(loads=16),
    "runtime_collection.collect_below": Budget(loads=16),
}


def budget_of(name):
    return next((budget for pattern, budget in BUDGETS.items() if fnmatch.fnmatchcase(name, pattern)), Budget())


def code_faults(usage, code, budget):
    """What is wrong with one kernel's machine code for one GPU; `code` may be None, where it was not disassembled."""
    faults = []
    if usage.spills > budget.spills:
        faults.append(f"spills {usage.spills} bytes of registers, and may spill {budget.spills}")
    if usage.registers > budget.registers:
        faults.append(f"has {usage.registers} registers, and may have {budget.registers}")
    if usage.shared > budget.shared:
        faults.append(f"has {usage.shared} bytes of shared memory, and may have {budget.shared}")
    if usage.stack > budget.stack:
        faults.append(f"has {usage.stack} bytes of stack, and may have {budget.stack}")
    if code is None:
        return faults
    generic = machine_code.with_opcodes(code, machine_code.GENERIC)
    if generic and not budget.may_be_generic:
        faults.append(f"has generic addresses: {', '.join(generic)}")
    loads = machine_code.longest_load_run(code)
    if loads < budget.loads:
        faults.append(f"waits for memory: {loads} load{' at most is' if loads == 1 else 's at most are'} under way, and {budget.loads} "
                      "should be")
    return faults


ACCESS = re.compile(r"^\s*(?:@!?%p\d+\s+)?((?:ld|st|atom|red)\.\S+)", re.MULTILINE)


def generic_accesses(text):
    return [word for word in ACCESS.findall(text) if not re.search(r"\.(global|shared|local|param|const)\b", word)]


def wanted_gpus(is_hot):
    return GPUS if is_hot else [75, 90]


class Kernel:
    """One row: the worst of all its specializations."""

    def __init__(self):
        self.texts = collections.defaultdict(dict)  # by target, then by key
        self.shared = 0  # bytes that launches ask for
        self.refused = []
        self.usage = {}  # by GPU
        self.code = {}  # by GPU, of the longest text: instructions of hot kernels, where there is nvdisasm

    def texts_for(self, gpu, is_hot):
        """What is assembled for the GPU."""
        texts = sorted(self.texts[min(gpu, 90)].values(), key=lambda text: (len(text), text))
        if gpu >= 90 and is_hot:
            return texts
        if gpu not in wanted_gpus(is_hot):
            return []
        return texts[:1] + texts[1:][-1:] if gpu == 90 else texts[-1:]

    def row(self, name):
        if not self.usage:
            return f"{name:44} {self.refused[0] if self.refused else 'no PTX'}"
        loads = min(map(machine_code.longest_load_run, self.code.values())) if self.code else "-"
        registers = " ".join(f"{self.usage[gpu].registers:4}" if gpu in self.usage else "   -" for gpu in GPUS)
        return (f"{name:44} {len(self.texts[90]):5} {registers} {max(self.shared, *(u.shared for u in self.usage.values())):7} "
                f"{max(u.stack for u in self.usage.values()):6} {max(u.spills for u in self.usage.values()):6} {loads:>6}")


def read_recorded(folder):
    kernels = collections.defaultdict(Kernel)
    for path in sorted(folder.iterdir()):
        found = re.fullmatch(r"(.+)-([0-9a-f]{8})-sm_(\d+)\.(ptx|refused)", path.name)
        if not found:
            continue
        kernel, text = kernels[found[1]], path.read_text(encoding="utf-8")
        if found[4] == "refused":
            kernel.refused.append(text.strip())
            continue
        head, text = text.split("\n", 1)
        kernel.shared = max(kernel.shared, int(re.fullmatch(r"// .*: (\d+) bytes of shared memory", head)[1]))
        kernel.texts[int(found[3])][found[2]] = text
    return kernels


def assemble_all(ptxas, nvdisasm, kernels, folders):
    """Sets usages and machine code; returns ptxas' complaints. A text that several kernels have in common is assembled once."""
    wanted = {}  # (kernel, GPU): texts
    read = set()  # (text, GPU) whose machine code is read: the longest of each hot kernel
    for name, kernel in kernels.items():
        is_hot = folders.get(name) in HOT_FOLDERS
        for gpu in GPUS:
            texts = wanted[name, gpu] = kernel.texts_for(gpu, is_hot)
            if texts and is_hot:
                read.add((max(texts, key=len), gpu))
    jobs = list(dict.fromkeys((text, gpu) for (_, gpu), texts in wanted.items() for text in texts))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda job: assemble(ptxas, *job, nvdisasm if job in read else None), jobs)
        results = dict(zip(jobs, found))
    complaints = []
    for (name, gpu), texts in wanted.items():
        usages = [results[text, gpu][0] for text in texts]
        complaints += [f"{name}: ptxas refuses it for sm_{gpu}: {usage.error}" for usage in usages if usage.error]
        if not usages:
            continue
        kernels[name].usage[gpu] = Usage(*(max(values) for values in zip(*usages)))
        code = results[max(texts, key=len), gpu][1]
        if code is not None:
            kernels[name].code[gpu] = code
    return complaints, len(jobs)


def why_not_for_gpus(name):
    return next((why for pattern, why in NOT_FOR_GPUS.items() if fnmatch.fnmatchcase(name, pattern)), None)


def check(known, kernels, without_libdevice):
    """What is wrong with the table."""
    wrong = []
    for name in sorted(known.keys() | kernels.keys()):
        kernel, why = kernels.get(name), why_not_for_gpus(name)
        has_ptx = kernel is not None and set(kernel.usage) >= set(wanted_gpus(known.get(name) in HOT_FOLDERS))
        if why and has_ptx and not kernel.refused:
            wrong.append(f"{name} is in NOT_FOR_GPUS ({why}), but has PTX: take it out")
        if why:
            continue
        if kernel is None:
            wrong.append(f"{name}: no program here launches it: add one, or the reason to NOT_FOR_GPUS")
        elif kernel.refused and without_libdevice and all("without NVIDIA's libdevice" in words for words in kernel.refused):
            print(f"not checked: {kernel.refused[0]}")
        elif kernel.refused:
            wrong.append(f"{name}: cannot be PTX: {kernel.refused[0]}")
        elif not has_ptx:
            wrong.append(f"{name}: assembled for {sorted(kernel.usage)} only")
        elif known.get(name) in HOT_FOLDERS:
            budget = budget_of(name)
            generic = {word for texts in kernel.texts.values() for text in texts.values() for word in generic_accesses(text)}
            if generic and not budget.may_be_generic:
                wrong.append(f"{name} is hot and has generic addresses: {', '.join(sorted(generic))}")
            for gpu, usage in kernel.usage.items():
                usage = usage._replace(shared=max(usage.shared, kernel.shared))
                wrong += [f"{name} is hot and {fault} (sm_{gpu})" for fault in code_faults(usage, kernel.code.get(gpu), budget)]
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("ptxas")
    parser.add_argument("--without-libdevice", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if not os.access(options.ptxas, os.X_OK):
        print("skipped: CMake found no ptxas (of a CUDA toolkit; on PATH, in $CUDA_HOME or in $CUDA_PATH)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        wrong = [] if (folder / "ptx").exists() else record(options.build, folder)
        kernels = read_recorded(folder / "ptx")
        known = known_kernels(options.source, options.build)
        nvdisasm, why_none = machine_code.find_nvdisasm(options.ptxas, options.build)
        if nvdisasm is None:
            print(f"machine code was not read: {why_none}")
        complaints, count = assemble_all(options.ptxas, nvdisasm, kernels, known)
    wrong += complaints + check(known, kernels, options.without_libdevice)
    table = [f"{'kernel':44} forms  sm_75   80   90  120  shared  stack  spills  loads"]
    table += [kernels[name].row(name) for name in sorted(kernels)]
    forms = sum(len(kernel.texts[90]) for kernel in kernels.values())
    table.append(f"{len(kernels)} kernels, {forms} specializations, assembled {count} times")
    table += [f"not for GPUs: {pattern}: {why}" for pattern, why in NOT_FOR_GPUS.items()]
    (options.build / "kernel_table.txt").write_text("\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))
    for words in wrong:
        print(f"WRONG: {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
