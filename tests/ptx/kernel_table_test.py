#!/usr/bin/env python3
"""GPU code of every kernel of the apps, the runtime and the tests, as it is specialized when they run: PTX by the
specializer, assembled by ptxas, in a table of registers, shared memory, stack and spills.

    kernel_table_test.py SOURCE BUILD PTXAS [--without-libdevice] [--keep FOLDER]

Runs the programs below with COPPICE_PTX_FOLDER (gpu/jit/ptx_recorder.h). Fails when

- ptxas refuses any of it, or a kernel of apps/ or sparse/ (the hot ones) spills registers;
- a kernel in the generated headers was not met, or has no PTX, and is not in NOT_FOR_GPUS with the reason;
- one of NOT_FOR_GPUS has PTX.

Without ptxas the exit code is 77: skipped. In a build without libdevice, kernels that call math functions are only listed. Needs no GPU. --keep leaves the PTX in a folder, and takes it from there
when it is there already.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
# What PTX is recorded for, and what it is assembled for: newer GPUs get the newest.
ASSEMBLED = {75: [75], 80: [80], 90: [90, 120]}
GPUS = [75, 80, 90, 120]
HOT_FOLDERS = ["apps", "sparse"]

SCENES = ["snow_2d", "snow_3d", "jelly_2d", "jelly_3d", "water_2d", "water_3d", "sand_2d", "sand_3d"]
SCENE = ["--frames", "1", "--set", "grid.resolution=32", "--device", "cpu", "--threads", "2", "--overwrite"]


def programs(build, folder):
    """Commands that launch all kernels but those of NOT_FOR_GPUS."""
    tests = build / "bin"
    # Without the tests that specialize a kernel for dozens of random trees, and the emulated GPU, which has the same PTX.
    yield [tests / "sparse_conformance_tests", "--gtest_filter=*/cpu:*/cpu1:-*C58_*:*C62_*:*KernelsOnDisk*:*GatherAsWalksDo*"]
    yield [tests / "sparse_unit_tests", "--gtest_filter=-*/simt:Trees/TopologyTools*/1?:Trees/TopologyTools*/2?"]
    yield [tests / "sparse_stress_tests", "--gtest_filter=*/PointerDense_cpu:Sparse/TopologyRaces.*/cpu"]
    for scene in SCENES:
        yield [tests / "coppice", "run", scene, "-o", folder / "out" / scene, *SCENE]


# Kernels without a row, and why.
NOT_FOR_GPUS = {
    "refused.*": "what must be refused, and what must not: validate_test compiles each",
    "jit.calls_what_nobody_defines": "refused everywhere: specializer_test",
    "jit.write_checks": "compiled, not launched, by specializer_test",
    "fast_math.*_functions": "compiled and assembled by sparse_gpu_tests (PtxMath)",
    "fast_math.fast_doubles": "compiled and assembled by sparse_gpu_tests (PtxMath)",
    "fast_math.all_libdevice": "compiled and assembled by sparse_gpu_tests (PtxMath)",
    "heat.diffuse2": "compiled and assembled by sparse_gpu_tests (Ptx)",
}


def known_kernels(source, build):
    """{file.kernel: folder of its kernel file} of all generated headers whose kernel file is still there."""
    kernels = {}
    for header in sorted(build.glob("*/kernels/*.kernels.h")):
        text = header.read_text(encoding="utf-8")
        origin = pathlib.Path(re.match(r"// Kernels of (.*) for the host", text)[1])
        if not origin.exists() or source not in origin.parents:
            continue
        for file, kernel in re.findall(r'^constexpr coppice::Kernel<.*\{&(\w+)_kernels, "(\w+)", ', text, re.MULTILINE):
            kernels[f"{file}.{kernel}"] = origin.relative_to(source).parts[0]
    return kernels


def record(build, folder):
    """Runs the programs; returns what went wrong."""
    environment = {**os.environ, "COPPICE_PTX_FOLDER": str(folder / "ptx"), "COPPICE_LOG": "warning"}
    environment.pop("COPPICE_DEBUG", None)

    def run(command):
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        return f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [words for words in pool.map(run, programs(build, folder)) if words]


Usage = collections.namedtuple("Usage", "registers shared stack spills error")


def assemble(ptxas, text, gpu):
    """What ptxas says of one kernel."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.ptx"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([ptxas, "-v", f"-arch=sm_{gpu}", path, "-o", path.with_suffix(".cubin")], capture_output=True, text=True,
                              check=False)
    words = done.stdout + done.stderr
    if done.returncode != 0:
        return Usage(0, 0, 0, 0, words.strip())

    def number(pattern):
        return max((int(found) for found in re.findall(pattern, words)), default=0)

    spills = number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads")
    return Usage(number(r"Used (\d+) registers"), number(r"(\d+) bytes smem"), number(r"(\d+) bytes stack frame"), spills, "")


class Kernel:
    """One row: the worst of all its specializations."""

    def __init__(self):
        self.texts = collections.defaultdict(set)  # by target
        self.shared = 0  # bytes that launches ask for
        self.refused = []
        self.usage = {}  # by GPU

    def row(self, name):
        if not self.usage:
            return f"{name:44} {self.refused[0] if self.refused else 'no PTX'}"
        registers = " ".join(f"{self.usage[gpu].registers:4}" for gpu in GPUS)
        return (f"{name:44} {len(self.texts[90]):5} {registers} {max(self.shared, *(u.shared for u in self.usage.values())):7} "
                f"{max(u.stack for u in self.usage.values()):6} {max(u.spills for u in self.usage.values()):6}")


def read_recorded(folder):
    kernels = collections.defaultdict(Kernel)
    for path in sorted(folder.iterdir()):
        found = re.fullmatch(r"(.+)-[0-9a-f]{8}-sm_(\d+)\.(ptx|refused)", path.name)
        if not found:
            continue
        kernel, text = kernels[found[1]], path.read_text(encoding="utf-8")
        if found[3] == "refused":
            kernel.refused.append(text.strip())
            continue
        head, text = text.split("\n", 1)
        kernel.shared = max(kernel.shared, int(re.fullmatch(r"// .*: (\d+) bytes of shared memory", head)[1]))
        kernel.texts[int(found[2])].add(text)
    return kernels


def assemble_all(ptxas, kernels):
    """Sets the usages; returns ptxas' complaints. A text that several kernels have in common is assembled once."""
    wanted = {}
    for kernel in kernels.values():
        for target, gpus in ASSEMBLED.items():
            for text in kernel.texts[target]:
                wanted.update({(hashlib.sha256(text.encode()).digest(), gpu): text for gpu in gpus})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(wanted, pool.map(lambda job: assemble(ptxas, job[1], job[0][1]), wanted.items())))
    complaints = []
    for name, kernel in kernels.items():
        for target, gpus in ASSEMBLED.items():
            for gpu in gpus:
                usages = [results[hashlib.sha256(text.encode()).digest(), gpu] for text in kernel.texts[target]]
                complaints += [f"{name}: ptxas refuses it for sm_{gpu}: {usage.error}" for usage in usages if usage.error]
                if usages:
                    kernel.usage[gpu] = Usage(*(max(values) for values in zip(*usages)))
    return complaints, len(results)


def why_not_for_gpus(name):
    return next((why for pattern, why in NOT_FOR_GPUS.items() if fnmatch.fnmatchcase(name, pattern)), None)


def check(known, kernels, without_libdevice):
    """What is wrong with the table."""
    wrong = []
    for name in sorted(known.keys() | kernels.keys()):
        kernel, why = kernels.get(name), why_not_for_gpus(name)
        has_ptx = kernel is not None and bool(kernel.usage)
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
        elif known.get(name) in HOT_FOLDERS and any(usage.spills for usage in kernel.usage.values()):
            wrong.append(f"{name} is hot and spills registers")
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
        complaints, count = assemble_all(options.ptxas, kernels)
    wrong += complaints + check(known_kernels(options.source, options.build), kernels, options.without_libdevice)
    print(f"{'kernel':44} forms  sm_75   80   90  120  shared  stack  spills")
    for name in sorted(kernels):
        print(kernels[name].row(name))
    forms = sum(len(kernel.texts[90]) for kernel in kernels.values())
    print(f"{len(kernels)} kernels, {forms} specializations, assembled {count} times")
    for pattern, why in NOT_FOR_GPUS.items():
        print(f"not for GPUs: {pattern}: {why}")
    for words in wrong:
        print(f"WRONG: {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
