#!/usr/bin/env python3
"""What the GPU benchmark's kernels should cost on an H100 and an H200, from their machine code for sm_90.

    cost_model.py SOURCE BUILD PTXAS [--write] [--keep FOLDER] [--table] [--blocks KERNEL=N]...

Records the PTX of the benchmark's kernels (coppice-bench on the emulated GPU, and a test of the Poisson solver), has ptxas assemble
it as a GPU's driver would, reads the loops of the machine code (code_loops.py) and counts by the descriptions of kernel_costs.py.
Compares the prediction with scripts/gpu_report/predicted.tsv, and fails where a number there is more than a tenth off, or where the
code is not what its description says. --write writes that file instead, --table also prints docs/nvptx.md's tables. --keep leaves
the PTX in a folder, and takes it from there when it is there already. --blocks has a kernel assembled for so many thread blocks to a
multiprocessor, to see what that would change. Without ptxas, nvdisasm, libdevice or the benchmark, and where another ptxas than that
of the file gives other numbers, the exit code is 77: skipped, with the reason. Needs no GPU.

The model: a launch takes

    overhead + max over resources (work / throughput) + waiting,

the last two longer by what some multiprocessors have more to do than others. Waiting is what one warp stalls by itself for its unit,
in order and alone, times the units that a resident warp does one after the other. A closed queue with so many customers takes this
sum at most, and the larger of both at least: here all of them stand in the longest queue at once.
"""
import argparse
import collections
import concurrent.futures
import inspect
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import code_loops
import machine_code
from kernel_costs import KERNELS, ROWS

SKIPPED = 77

# ---- the hardware

SMS, CLOCK_HZ = 132, 1980e6  # H100 SXM and H200 alike: docs/gpu's machine.txt, docs/performance.md
SCHEDULERS = 4  # of a multiprocessor, each issues an instruction a clock to 32 threads (NVIDIA's Hopper whitepaper)
REGISTERS, MOST_WARPS, MOST_BLOCKS = 65536, 64, 32  # of a multiprocessor (CUDA C++ Programming Guide, compute capability 9.0)
SHARED_BYTES, RESERVED_BYTES = 233472, 1024  # of a multiprocessor, and of each thread block for the system
L2_BYTES_PER_CLOCK, L2_BYTES = 5120, 50e6  # of the whole GPU, nominal
# Cycles until a load's value is there (Luo et al., arXiv 2402.13499: H100, unloaded).
L1_LATENCY, L2_LATENCY, DRAM_LATENCY = 41, 262, 479
# An atomic operation of a warp on a counter that all warps raise, one after the other: gpu.activate_blocks' shortest launch on an
# H100, 45.3 us for 8,192 of them (docs/gpu, h100-after).
COUNTER_S = 4.9e-9
HOST_WAIT_S = 10e-6  # the host waits for the device and gives it the next work (docs/benchmarks.md)
LAUNCH_S = 2.8e-6  # a fifth of the shortest step of five launches that did nothing else on an H100 (docs/gpu, h100-after, rung mpm)
WARPS = 4  # of a thread block (gpu/launch_block.h)
MOST_TRIED, BETWEEN_TRIED = 12, (8, 6, 4, 3)  # thread blocks of a multiprocessor, and 1 (gpu/cuda/cuda_code.cc)

# The device's own copy, bytes read and written a second, measured (docs/performance.md).
Card = collections.namedtuple("Card", "name copy_bytes_per_s")
CARDS = [Card("H100", 2953e9), Card("H200", 4160e9)]

# Loads whose source (file: text) names one of these read the same for all threads of a warp, and what others have read before; but
# not where it names the other, a particle's or a cell's own.
SAME_FOR_ALL = re.compile(r"_model\.h:|elements\[|e\.container|neighbours\[|allocators|control|group\.|groups|starts\[|tree->|layout|level|"
                          r"block\.number")
OWN = re.compile(r"\bp\[|value_at<|header->")


class Source:
    """Texts of source lines."""

    def __init__(self):
        self.files = {}

    def line(self, file, number):
        if file not in self.files:
            path = pathlib.Path(file)
            self.files[file] = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        lines = self.files[file]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


Assembled = collections.namedtuple("Assembled", "registers stack code")


def assemble(ptxas, nvdisasm, text, blocks):
    """A kernel's PTX for so many thread blocks to a multiprocessor."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.ptx"
        path.write_text(re.sub(r"^\.minnctapersm \d+", f".minnctapersm {blocks}", text, flags=re.MULTILINE), encoding="utf-8")
        cubin = path.with_suffix(".cubin")
        done = subprocess.run([ptxas, "-v", "-lineinfo", "-arch=sm_90", path, "-o", cubin], capture_output=True, text=True, check=False)
        words = done.stdout + done.stderr
        if done.returncode != 0:
            raise code_loops.Unexpected(f"ptxas: {words.strip()}")
        code = subprocess.run([nvdisasm, "-g", "-c", cubin], capture_output=True, text=True, check=True).stdout if nvdisasm else ""
    stack = max((int(n) for n in re.findall(r"(\d+) bytes stack frame", words)), default=0)
    return Assembled(int(re.search(r"Used (\d+) registers", words)[1]), stack, code)


def blocks_chosen(ptxas, text):
    """What gpu/cuda/cuda_code.cc takes: the most thread blocks with the least stack. More registers need no more stack, so that
    not all have to be tried."""
    stacks = {}

    def stack(blocks):
        if blocks not in stacks:
            stacks[blocks] = assemble(ptxas, None, text, blocks).stack
        return stacks[blocks]

    if stack(MOST_TRIED) == 0 or stack(1) >= stack(MOST_TRIED):
        return MOST_TRIED
    if stack(BETWEEN_TRIED[-1]) > stack(1):
        return 1
    return next(blocks for blocks in BETWEEN_TRIED if stack(blocks) <= stack(1))


def blocks_per_multiprocessor(registers, shared):
    per_warp = math.ceil(registers * 32 / 256) * 256
    by_registers = REGISTERS // (per_warp * WARPS)
    by_shared = SHARED_BYTES // (math.ceil(shared / 128) * 128 + RESERVED_BYTES)
    return min(by_registers, by_shared, MOST_WARPS // WARPS, MOST_BLOCKS)


class Counted:
    """One kernel's code, and what a unit of one case costs."""

    def __init__(self, kernel, case, code, graph, shared, source):
        self.kernel, self.case, self.code, self.source = kernel, case, code, source
        self.blocks = blocks_per_multiprocessor(code.registers, shared)
        bytes_of_all = kernel.dram_bytes(case.numbers) * case.units
        self.latency = DRAM_LATENCY if bytes_of_all > L2_BYTES else L2_LATENCY
        self.costs = code_loops.Costs(graph, self.touched, self.load_latency, kernel.rarely)
        unit = self.unit_loop()
        self.again = {id(line) for loop in unit.inner for block in loop.body for line in graph.blocks[block].lines}
        self.turns = self.match(unit)
        self.cost, self.waiting = self.costs.turn(unit, self.turns.get)
        if kernel.of:
            kind = "stores" if kernel.of == "STG" else "loads"
            parts = self.cost[kind]
            self.cost = collections.Counter({key: n / parts for key, n in self.cost.items()})
            self.waiting /= parts

    def text(self, line):
        return f"{pathlib.Path(line.file).name}: {self.source.line(line.file, line.number)}"

    def is_same_for_all(self, line):
        text = self.text(line)
        return bool(SAME_FOR_ALL.search(text)) and not OWN.search(text)

    def touched(self, line):
        for part, numbers in self.kernel.scattered.items():
            if part in self.text(line):
                return numbers
        return (1, 1) if self.is_same_for_all(line) else None

    def load_latency(self, line):
        """What all threads read alike is in L2, and in L1 where a loop inside of the unit's reads it again."""
        if not self.is_same_for_all(line):
            return self.latency
        is_again = id(line) in self.again and "STRONG" not in line.instruction.operation
        return L1_LATENCY if is_again else L2_LATENCY

    def closing_text(self, loop):
        return self.source.line(*loop.place)

    def unit_loop(self):
        found = [loop for loop in self.costs.whole.walk() if loop is not self.costs.whole and self.kernel.loop in self.closing_text(loop)]
        if len(found) != 1:
            raise code_loops.Unexpected(f"{len(found)} loops are a unit's: '{self.kernel.loop}'")
        return found[0]

    def has(self, loop, text):
        for block in loop.body:
            for line in self.costs.blocks[block].lines:
                if text in self.text(line):
                    return True
        return False

    def match(self, unit):
        """{loop: how often it turns} of all loops inside of the unit's."""
        left = list(unit.walk())[1:]
        turns = {}
        rules = [rule(self.case.name) if inspect.isfunction(rule) else rule for rule in self.kernel.turns]
        for rule in rules:
            found = [loop for loop in left if rule.text in self.closing_text(loop) and (not rule.holds or self.has(loop, rule.holds))]
            if not found:
                raise code_loops.Unexpected(f"there is no loop '{rule.text}'{' with ' + rule.holds if rule.holds else ''}")
            times = rule.times(self.case.numbers) if inspect.isfunction(rule.times) else rule.times
            if isinstance(times, tuple):
                if len(times) != len(found):
                    raise code_loops.Unexpected(f"{len(found)} loops '{rule.text}' and not {len(times)}")
                found.sort(key=lambda loop: -sum(len(self.costs.blocks[n].lines) for n in loop.body))
            elif len(found) > 1 and times != 0:
                raise code_loops.Unexpected(f"{len(found)} loops '{rule.text}' turn {times:g} times")
            else:
                times = (times,) * len(found)
            for loop, n in zip(found, times):
                left.remove(loop)
                if rule.of:
                    kinds = [machine_code.base(line.instruction) for block in loop.body for line in self.costs.blocks[block].lines]
                    if rule.of not in kinds:
                        raise code_loops.Unexpected(f"the loop '{rule.text}' has no {rule.of}")
                    n /= kinds.count(rule.of)
                turns[loop] = n
        if left:
            raise code_loops.Unexpected(f"a loop that nothing is said of: '{self.closing_text(left[0])}' ({left[0].place[0]})")
        return turns

    # ---- predicted

    def resources(self, card):
        """Seconds that each resource is busy, of one launch."""
        units = self.case.units * self.uneven()
        warps = units * self.kernel.warps
        per_s = SMS * CLOCK_HZ
        return {
            "memory": self.kernel.dram_bytes(self.case.numbers) * units / card.copy_bytes_per_s,
            "L2": 32 * self.cost["sectors"] * warps / (L2_BYTES_PER_CLOCK * CLOCK_HZ),
            "shared and L1": (self.cost["shared"] + self.cost["lines"]) * warps / per_s,
            "issue": self.cost["issue"] * warps / (SCHEDULERS * per_s),
            "FP64": self.cost["fp64"] * warps / (2 * per_s),
            "MUFU": self.cost["mufu"] * warps * 2 / (SCHEDULERS * per_s),
            "one counter": self.kernel.counters * self.case.units * COUNTER_S,
        }

    def rounds(self):
        """How many units those that are resident do one after the other, in the mean."""
        per_block = WARPS if self.kernel.warps == 1 else 1
        return self.case.units / (SMS * self.blocks * per_block)

    def waiting_s(self):
        return math.ceil(self.rounds()) * self.waiting / CLOCK_HZ

    def uneven(self):
        """Units are dealt out in turn: some multiprocessors have more, and the launch ends with them."""
        return math.ceil(self.rounds()) / self.rounds() if self.rounds() > 1 else 1.0

    def seconds(self, card):
        return LAUNCH_S + max(self.resources(card).values()) + self.waiting_s()

    def bound(self, card):
        name, most = max(self.resources(card).items(), key=lambda item: item[1])
        parts = {name: most, "waiting": self.waiting_s(), "launch": LAUNCH_S}
        return max(parts, key=parts.get)


def record(build, folder):
    """Runs what asks for the kernels; returns what went wrong."""
    environment = {**os.environ, "COPPICE_PTX_FOLDER": str(folder)}
    for variable in ["COPPICE_DEBUG", "COPPICE_LOG"]:
        environment.pop(variable, None)
    commands = [[build / "bin" / "coppice-bench", "gpu", "--device", "simt", "--tiny"],
                [build / "bin" / "sparse_unit_tests", "--gtest_filter=PoissonOnCpu.MayBeOnSeveralLeavesOfATree"]]

    def run(command):
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else f"{command[0]}: exit code {done.returncode}\n{done.stderr[-2000:]}"

    with concurrent.futures.ThreadPoolExecutor() as pool:
        return "".join(pool.map(run, commands))


def count(kernel, texts, tools, source, forced):
    """Of each case: the first specialization that the description is of, the longest first."""
    why = "no PTX was recorded"
    ptxas, nvdisasm = tools
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        shared = int(re.match(r"// .*: (\d+) bytes of shared memory", text)[1])
        try:
            code = assemble(ptxas, nvdisasm, text, forced.get(kernel.name) or blocks_chosen(ptxas, text))
            graph = code_loops.Graph(code.code)
            return [Counted(kernel, case, code, graph, shared, source) for case in kernel.cases], ""
        except code_loops.Unexpected as error:
            why = str(error)
    return [], f"{kernel.name} ({kernel.cases[0].name}): {why}"


def count_all(folder, tools, forced):
    texts = collections.defaultdict(list)
    for path in sorted(folder.glob("*-sm_90.ptx")):
        texts[path.name.split("-")[0]].append(path.read_text(encoding="utf-8"))
    source = Source()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda kernel: count(kernel, texts[kernel.name], tools, source, forced), KERNELS))
    return [counted for found, _ in results for counted in found], [why for _, why in results if why]


# ---- the rows of the benchmark, and the file


def launch_seconds(counted, card):
    return {(c.kernel.name, c.case.name): c.seconds(card) for c in counted}


def rows_of(counted):
    """(row, unit, predicted on each card)"""
    found = []
    of_cards = [launch_seconds(counted, card) for card in CARDS]
    for row in ROWS:
        values = []
        for seconds in of_cards:
            total = sum(seconds[name, case] * n for name, case, n in row.launches) + row.more_launches * LAUNCH_S + row.waits * HOST_WAIT_S
            values.append(row.value(total))
        found.append((row.name, row.unit, values))
    return found


def version_of(ptxas):
    words = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release (\S+),", words)[1]


def lines_of(counted, version):
    """predicted.tsv: per launch of a case, the mean of the benchmark's launches of a kernel, and rows."""
    lines = ["what\tname\tunit\tunits\tH100\tH200\tbound on an H100", f"assembler\tptxas\t{version}\t-\t-\t-\t-"]
    for c in counted:
        us = [1e6 * c.seconds(card) for card in CARDS]
        lines.append(f"launch\t{c.kernel.name}\t{c.case.name}: {c.kernel.unit}\t{c.case.units:.0f}\t"
                     f"{us[0]:.1f}\t{us[1]:.1f}\t{c.bound(CARDS[0])}")
    weights = collections.defaultdict(list)
    for c in counted:
        if c.case.launches:
            weights[c.kernel.name].append(c)
    means = {}
    for name, cases in weights.items():
        launches = sum(c.case.launches for c in cases)
        means[name] = [1e6 * sum(c.seconds(card) * c.case.launches for c in cases) / launches for card in CARDS]
        lines.append(f"kernel\t{name}\tus\t{launches}\t{means[name][0]:.1f}\t{means[name][1]:.1f}\t-")
    lines += [f"row\tgpu/{name}\t{unit}\t-\t{values[0]:.4g}\t{values[1]:.4g}\t-" for name, unit, values in rows_of(counted)]
    return lines


def differences(wanted, found):
    """What in the file is more than a tenth away from what the code gives."""
    def table(lines):
        return {tuple(line.split("\t")[:3]): line.split("\t")[3:6] for line in lines[1:]}

    before, now = table(found), table(wanted)
    wrong = [f"{' '.join(key)} is not in the file" for key in now.keys() - before.keys()]
    wrong += [f"{' '.join(key)} is in the file, and nothing predicts it" for key in before.keys() - now.keys()]
    for key in sorted(now.keys() & before.keys()):
        for what, a, b in zip(["units", "H100", "H200"], now[key], before[key]):
            if a != b and ("-" in (a, b) or not abs(float(a) - float(b)) <= 0.1 * abs(float(b))):
                wrong.append(f"{' '.join(key)}: {what} is {b} in the file, and the code gives {a}")
    return sorted(wrong)


def print_table(counted):
    print("| kernel | case, unit | registers | blocks/SM | occupancy % | instructions | shared and L1 | sectors | bytes "
          "| waiting, cycles | bound by | H100, us | H200, us |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for c in counted:
        w = c.kernel.warps
        print(f"| {c.kernel.name} | {c.case.name}: {c.case.units:.0f} x {c.kernel.unit} | {c.code.registers} | {c.blocks} | "
              f"{100 * c.blocks * WARPS // MOST_WARPS} | {w * c.cost['issue']:.0f} | {w * (c.cost['shared'] + c.cost['lines']):.0f} | "
              f"{w * c.cost['sectors']:.0f} | {c.kernel.dram_bytes(c.case.numbers):.0f} | {c.waiting:.0f} | {c.bound(CARDS[0])} | "
              f"{1e6 * c.seconds(CARDS[0]):.1f} | {1e6 * c.seconds(CARDS[1]):.1f} |")
    for c in counted:
        of = ", ".join(f"{name} {1e6 * s:.1f}" for name, s in c.resources(CARDS[0]).items() if s > 0)
        print(f"{c.kernel.name} {c.case.name}: {of}, waiting {1e6 * c.waiting_s():.1f}; {dict(c.cost)}; {c.code.stack} bytes of stack")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("ptxas")
    parser.add_argument("--without-libdevice", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--blocks", action="append", default=[], metavar="KERNEL=N")
    options = parser.parse_args()
    if not os.access(options.ptxas, os.X_OK):
        print("skipped: CMake found no ptxas (of a CUDA toolkit; on PATH, in $CUDA_HOME or in $CUDA_PATH)")
        return SKIPPED
    if options.without_libdevice:
        print("skipped: without libdevice there is no PTX of kernels that call math functions")
        return SKIPPED
    if not (options.build / "bin" / "coppice-bench").exists():
        print("skipped: the benchmarks were not built")
        return SKIPPED
    nvdisasm, why_none = machine_code.find_nvdisasm(options.ptxas, options.build)
    if nvdisasm is None:
        print(f"skipped: {why_none}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary) / "ptx"
        wrong = "" if folder.exists() else record(options.build, folder)
        if wrong:
            print(f"WRONG: {wrong}")
            return 1
        forced = {name: int(n) for name, n in (words.split("=") for words in options.blocks)}
        counted, wrong = count_all(folder, (options.ptxas, nvdisasm), forced)
    if options.table:
        print_table(counted)
    if not wrong:
        lines = lines_of(counted, version_of(options.ptxas))
        file = options.source / "scripts" / "gpu_report" / "predicted.tsv"
        print("\n".join(lines))
        if options.write:
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            found = file.read_text(encoding="utf-8").splitlines() if file.exists() else ["no file"]
            wrong = differences(lines, found)
            if wrong and found[1:2] != lines[1:2]:
                print("\n".join(wrong))
                print(f"skipped: the file was made with another ptxas than {lines[1].split()[2]}")
                return SKIPPED
    for words in wrong:
        print(f"WRONG: {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
