#!/usr/bin/env python3
"""What nvcc made of the parallel primitives: every kernel they need, for every architecture. Spills are listed, not judged:
how many registers CUB's kernels get is CUB's own choice.

    cub_kernels_test.py LOG OBJECT ARCHITECTURES

LOG is what ptxas said (-Xptxas=-v) when OBJECT was built. Without them (no nvcc at build time) the test is skipped. Seen to
catch: an architecture left out of the command line; a primitive left out of cub_primitives.cu.
"""
import re
import subprocess
import sys

SKIPPED = 77
# What the calls of cub_primitives.cu cannot do without, by a part of a kernel's name.
NEEDED = {
    "sorting": ["DeviceRadixSortOnesweepKernel", "DeviceRadixSortSingleTileKernel"],
    "scanning": ["DeviceScanKernel"],
    "sums, maxima": ["DeviceReduceKernel", "DeviceReduceSingleTileKernel"],
    "sums of segments": ["DeviceSegmentedReduceKernel"],
    "selecting": ["DeviceSelectSweepKernel"],
    "runs": ["DeviceReduceByKeyKernel"],
    "histogram": ["count_keys"],
    "bin starts": ["find_bin_starts"],
}
# Called by the library, and all that other code may see of the object.
INTERFACE = ["scratch_bytes", "run", "error_name", "error_text", "runtime_version", "driver_version"]


def kernels_by_architecture(log):
    """{"75": {kernel: (registers, spilled bytes)}}"""
    found, spills, kernel, sm = {}, 0, None, None
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for 'sm_(\d+)'", line):
            kernel, sm, spills = match[1], match[2], 0
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills = int(match[1]) + int(match[2])
        elif (match := re.search(r"Used (\d+) registers", line)) and kernel:
            found.setdefault(sm, {})[kernel] = (int(match[1]), spills)
            kernel = None
    return found


def main(log_path, object_path, architectures):
    if not object_path:
        print("skipped: built without nvcc")
        return SKIPPED
    with open(log_path, encoding="utf-8") as log:
        found = kernels_by_architecture(log.read())
    problems = []
    for sm in architectures.split(","):
        kernels = found.get(sm, {})
        registers = max((used for used, _ in kernels.values()), default=0)
        print(f"sm_{sm}: {len(kernels)} kernels, at most {registers} registers")
        for what, names in NEEDED.items():
            problems += [f"sm_{sm}: no {name}, for {what}" for name in names if not any(name in k for k in kernels)]
        for kernel, (_, spilled) in kernels.items():
            if spilled:
                print(f"  {spilled} bytes are spilled by {kernel}")
    symbols = subprocess.run(["nm", "-g", "--defined-only", object_path], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in symbols.stdout.splitlines()]
    for name in INTERFACE:
        if not any(re.match(rf"_ZN7coppice14cub_primitives{len(name)}{name}E", symbol) for symbol in names):
            problems.append(f"{object_path} lacks {name}()")
    problems += [f"{object_path} shows {name}" for name in names if not name.startswith("_ZN7coppice14cub_primitives")]
    print("\n".join(problems) or "all there")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
