"""The fuzzer of kernels: random kernels against an unoptimised reference (docs/debugging.md).

    kernel_fuzz.py TOOLCHAIN.json --seeds 0 10000 [--jobs 2] [--folder F] [--without FEATURE...]
    kernel_fuzz.py TOOLCHAIN.json --show SEED

A kernel is its seed, and so is what it runs on. Prints each failure as a kernel of a few lines with the run that shows it,
and a table of what ran. Exit status: 0 without a failure, 1 with one, 2 for wrong words.
"""
import argparse
import collections
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from generator import Options, generate
from reducer import reduce_kernel
from toolchain import CompileError, Toolchain

TREES = 24
NEIGHBOUR_TREES = [t for t in range(TREES) if t % 8 in (1, 2, 4, 5, 7)]  # whose blocks know those beside them (forest.cc)
SIMT_TREES = 8  # one of each kind: every tree costs the compilation of what fills it
FEATURES = ["fast_math", "powers", "neighbours", "arrays", "libm", "late_libm", "aliases", "sums_of_products", "early_exits"]


@dataclass
class Run:
    device: str
    options: str
    tree: int
    seed: int
    begin: int = 0
    end: int = 0

    def line(self, name, index, kernel):
        shape = kernel.shape
        return (f"run {name} {index} {shape.number} {shape.place} {max(shape.dims, 1)} {self.device} {self.options} "
                f"{self.tree} {self.seed} {self.begin} {self.end} {' '.join(kernel.fields)}")

    def words(self):
        where = f"items {self.begin} to {self.end}" if self.end else f"tree {self.tree}"
        return f"{self.device}, {self.options} code, {where}, values of seed {self.seed}"


def runs_of(kernel):
    """What a kernel runs on."""
    rng = random.Random(f"runs {kernel.seed}")

    def run(device, options, tree):
        item = kernel.shape.place in ("Item", "Team")
        begin = rng.choice([0, 0, 1, 5, 31]) if item else 0
        many = 1500 if device != "simt" and kernel.shape.place == "Item" else 70
        end = begin + rng.choice([1, 2, 7, 8, 9, 64, 100, many]) if item else 0
        if kernel.shape.kind() in ("Append", "Grow"):  # an item each of the smallest tree's cells
            begin, end = min(begin, 5), min(begin, 5) + rng.choice([1, 7, 8, 30])
        tree = next((t for t in NEIGHBOUR_TREES if t >= tree), NEIGHBOUR_TREES[0]) if kernel.neighbours else tree
        return Run(device, options, tree, rng.randrange(1 << 30), begin, end)

    # Optimised code for the cpu always; each of the others is compiled anew.
    tree = rng.randrange(TREES)
    runs = [run("cpu1", "plain", tree)]
    if rng.random() < 0.5:
        runs.append(run("cpu2", "plain", tree))
    if rng.random() < 0.05 and not kernel.outside:
        runs.append(run(rng.choice(["cpu1", "cpu2"]), "checks", tree))
    if rng.random() < 0.03 and "pow" not in kernel.features:  # unoptimised code calls pow() for a square, too
        runs.append(run("cpu1", "step", tree))
    if rng.random() < 0.03:
        runs.append(run("simt", "plain", tree % SIMT_TREES))
    if rng.random() < 0.03:
        runs.append(run("ptx", "plain", rng.randrange(TREES)))
    return runs


def signature(result):
    """What two failures must share to be one: how it failed, without names and numbers."""
    if result.outcome == "error":
        return "error " + re.sub(r"0x[0-9a-f]+|\d+", "N", result.words)[:60]
    return result.outcome


def is_refusal(kernel, result):
    """Two handles on one field may be refused, in words that say so."""
    return kernel.aliased and result.outcome == "error" and "field" in result.words and "compil" not in result.words


class Fuzzer:
    def __init__(self, arguments):
        self.toolchain = Toolchain(arguments.toolchain)
        self.options = Options(**{f: False for f in arguments.without})
        self.reference_flags = [f"-DKERNEL_FUZZ_PLANT={arguments.plant}"] if arguments.plant else []
        if arguments.sanitize:
            self.reference_flags += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
        self.whole = arguments.whole
        self.folder = Path(arguments.folder)
        os.environ["COPPICE_CACHE_DIR"] = str(self.folder / "cache")
        os.environ.pop("COPPICE_DEBUG", None)

    def assemble(self, results, folder):
        """ptxas' word on the PTX of a batch; without ptxas the text alone is what is checked."""
        for result in results:
            if result.outcome != "ptx":
                continue
            text = Path(result.words).read_text()
            if ".extern .func" in text:
                result.outcome, result.words = "error", "ptx: a call of what the text does not define"
            elif not self.toolchain.ptxas:
                result.outcome = "ok"
            else:
                try:
                    self.toolchain.call("ptxas", [self.toolchain.ptxas, "-arch=sm_80", result.words, "-o",
                                                  str(folder / "kernel.cubin")])
                    result.outcome = "ok"
                except CompileError as error:
                    result.outcome, result.words = "error", " ".join(str(error).split())

    def run_kernels(self, folder, kernels, plans):
        """The results of each kernel's runs."""
        self.toolchain.build(folder, kernels, self.reference_flags, self.whole)
        lines, names = [], []
        for index, (kernel, runs) in enumerate(zip(kernels, plans)):
            names.append([f"{index}.{j}" for j in range(len(runs))])
            lines += [run.line(name, index, kernel) for name, run in zip(names[-1], runs)]
        # Runs over one tree follow each other no further than this batch goes.
        results = self.toolchain.run(folder, lines)
        self.assemble(results.values(), Path(folder))
        return [[results[name] for name in own] for own in names]

    def batch(self, seeds):
        """Runs the kernels of some seeds; returns what ran, and what failed."""
        kernels = [generate(seed, self.options) for seed in seeds]
        plans = [runs_of(kernel) for kernel in kernels]
        folder = Path(tempfile.mkdtemp(prefix="batch_", dir=self.folder))
        counts, failures = collections.Counter(), []
        try:
            all_results = self.run_kernels(folder, kernels, plans)
        except CompileError as error:
            return counts, [(seeds[0], None, "build", str(error))], self.take_seconds()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for kernel, runs, results in zip(kernels, plans, all_results):
            counts["kernels"] += 1
            counts["kernels, " + kernel.shape.kind()] += 1
            for feature in kernel.all_features():
                counts["kernels with " + feature] += 1
            for run, result in zip(runs, results):
                if is_refusal(kernel, result):
                    counts["refused: two handles on one field"] += 1
                    continue
                counts[f"runs {run.device}, {run.options}"] += 1
                if result.outcome != "ok":
                    failures.append((kernel.seed, run, result.outcome, result.words))
        return counts, failures, self.take_seconds()

    def take_seconds(self):
        seconds, self.toolchain.seconds = self.toolchain.seconds, {}
        return seconds

    def reduce(self, seed, run, seconds):
        """The failure of a seed's run as a kernel of a few lines, and the words of its difference."""
        kernel = generate(seed, self.options)
        folder = Path(tempfile.mkdtemp(prefix="reduce_", dir=self.folder))
        last = {}

        def results_of(kernels):
            return [r[0] for r in self.run_kernels(folder, kernels, [[run]] * len(kernels))]

        try:
            wanted = results_of([kernel])[0]
            if wanted.outcome == "ok":
                return kernel, "does not fail again"

            def fails(kernels):
                try:
                    results = results_of(kernels)
                except CompileError:
                    return [False] * len(kernels)
                bad = [signature(r) == signature(wanted) for r in results]
                for k, b, r in zip(kernels, bad, results):
                    if b:
                        last[k.text("k")] = r.words
                return bad

            small = reduce_kernel(kernel, fails, seconds)
            return small, last.get(small.text("k"), wanted.words)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


FUZZER = None


def begin_worker(arguments):
    global FUZZER
    FUZZER = Fuzzer(arguments)


def run_batch(seeds):
    return FUZZER.batch(seeds)


def report(fuzzer, failure, seconds, number):
    seed, run, outcome, words = failure
    print(f"\nfailure {number}: seed {seed}: {outcome}: {words}", flush=True)
    if run is None:
        return
    kernel, last = fuzzer.reduce(seed, run, seconds)
    print(f"  {run.words()}; fields {' '.join(kernel.fields)}\n  {last}")
    print("".join("    " + line + "\n" for line in kernel.text(f"seed_{seed}").splitlines()), flush=True)


class Tally:
    """What ran, and what failed."""

    def __init__(self, first):
        self.begin = time.monotonic()
        self.first = self.end = first
        self.counts, self.seconds, self.failures = collections.Counter(), collections.Counter(), []

    def add(self, seeds, done, failed, spent):
        self.end = max(self.end, seeds[-1] + 1)
        self.counts += done
        self.seconds.update(spent)
        self.failures += failed

    def kinds(self):
        """Failures by kind: the same fault comes many times."""
        kinds = collections.defaultdict(list)
        for failure in sorted(self.failures, key=lambda f: f[0]):
            kinds[(failure[2], re.sub(r"\d+", "N", failure[3])[:40])].append(failure)
        return kinds

    def print(self):
        spent = time.monotonic() - self.begin
        per_kernel = 1000 / max(1, self.counts["kernels"])
        print(f"seeds {self.first} to {self.end}, {spent:.0f} s, {per_kernel * spent:.1f} ms a kernel")
        for name, count in sorted(self.counts.items()):
            print(f"{count:9} {name}")
        print("milliseconds of a processor per kernel: " +
              ", ".join(f"{name} {per_kernel * value:.1f}" for name, value in self.seconds.items()))
        print(f"{len(self.failures):9} failures of {len(self.kinds())} kinds", flush=True)


def batches_of(arguments, first):
    """Seeds of a batch each, until the time is up."""
    begin = time.monotonic()
    for at in range(first, arguments.seeds[1], arguments.batch):
        if time.monotonic() - begin > arguments.seconds:
            return
        yield range(at, min(at + arguments.batch, arguments.seeds[1]))


def run_all(arguments, first):
    tally = Tally(first)
    batches = batches_of(arguments, first)
    with multiprocessing.Pool(arguments.jobs, begin_worker, (arguments,)) as pool:
        under_way = collections.deque()
        while True:
            # No more than are being worked on, so that the clock is looked at when a batch begins.
            while len(under_way) <= arguments.jobs and (seeds := next(batches, None)) is not None:
                under_way.append((seeds, pool.apply_async(run_batch, (seeds,))))
            if not under_way:
                return tally
            seeds, result = under_way.popleft()
            tally.add(seeds, *result.get())
            if arguments.stop_at and len(tally.failures) >= arguments.stop_at:
                return tally


def fuzz(arguments):
    state = Path(arguments.state) if arguments.state else None
    first = int(state.read_text()) if state and state.exists() else arguments.seeds[0]
    tally = run_all(arguments, first)
    tally.print()
    if state:
        state.write_text(f"{tally.end}\n")
    fuzzer = Fuzzer(arguments)
    kinds = tally.kinds().values()
    chosen = [f for rank in range(10) for group in kinds for f in group[rank:rank + 1]][:arguments.report]
    for number, failure in enumerate(chosen, 1):
        report(fuzzer, failure, arguments.reduce_seconds, number)
    return 1 if tally.failures else 0


def parse(words):
    parser = argparse.ArgumentParser(description="random kernels against an unoptimised reference")
    parser.add_argument("toolchain", help="toolchain.json of a build")
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10000), metavar=("BEGIN", "END"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=100, help="kernels of one file")
    parser.add_argument("--folder", help="for what is compiled; default: a temporary one")
    parser.add_argument("--without", nargs="*", default=[], choices=FEATURES)
    parser.add_argument("--plant", type=int, default=0, help="a fault of prelude.h's in the reference, which must be found")
    parser.add_argument("--sanitize", action="store_true", help="the reference under UBSan: is every kernel defined?")
    parser.add_argument("--whole", action="store_true", help="compile kernels with their loops, as a user's build does")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no batch after so long")
    parser.add_argument("--state", help="a file that keeps the next seed, so that the next call goes on from there")
    parser.add_argument("--stop-at", type=int, default=0, help="so many failures are enough")
    parser.add_argument("--report", type=int, default=5, help="how many failures are made small and printed")
    parser.add_argument("--reduce-seconds", type=float, default=60)
    parser.add_argument("--show", type=int, metavar="SEED", help="print a seed's kernel and its runs")
    return parser.parse_args(words)


def main():
    arguments = parse(sys.argv[1:])
    if arguments.show is not None:
        kernel = generate(arguments.show, Options(**{f: False for f in arguments.without}))
        print(kernel.text(f"seed_{arguments.show}") + "".join(f"// {run.words()}\n" for run in runs_of(kernel)))
        return 0
    with tempfile.TemporaryDirectory(prefix="kernel_fuzz_") as temporary:
        arguments.folder = arguments.folder or temporary
        Path(arguments.folder).mkdir(parents=True, exist_ok=True)
        return fuzz(arguments)


if __name__ == "__main__":
    sys.exit(main())
