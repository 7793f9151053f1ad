"""Tests of the fuzzer of kernels: it finds what is planted, and says so in a few lines.

    kernel_fuzz_test.py TOOLCHAIN.json FOLDER
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

from generator import Options, generate
from kernel_fuzz import runs_of
from reducer import is_valid, reduce_kernel, size, smaller_lists
from shapes import SHAPES
from syntax import E, Kernel, S
from toolchain import Toolchain

HERE = Path(__file__).resolve().parent
ARGUMENTS = None


def fuzz(*words):
    done = subprocess.run([sys.executable, str(HERE / "kernel_fuzz.py"), ARGUMENTS.toolchain, "--folder", ARGUMENTS.folder,
                           *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class GeneratorTest(unittest.TestCase):
    def test_a_seed_is_a_kernel(self):
        for seed in range(200):
            self.assertEqual(generate(seed, Options()).text("k"), generate(seed, Options()).text("k"))

    def test_names_are_declared_where_they_are_used(self):
        for seed in range(2000):
            self.assertTrue(is_valid(generate(seed, Options()).body), seed)

    def test_every_statement_and_place_occurs(self):
        text = "".join(generate(seed, Options()).text("k") for seed in range(0, 60000, 17))
        for word in ("for (", "switch (", "break;", "continue;", "return;", "memcpy", "m::Mixed", "m::swap", "m::pick", ".add(",
                     "Cell1", "Cell2", "Cell3", "Block1", "Block2", "Block3", "Entry1", "Entry2", "Entry3", "Item cell",
                     "Read<", "Write<", "Update<", "Accumulate<", "Star<1>", "Star<2>", "Box<1>", "Box<2>", "table[",
                     "std::sin", "m::nextafter", "m::to_i32", "m::bits", "INFINITY", "NAN", "INT32_MIN",
                     "COPPICE_KERNEL_FAST_MATH", "m::pow_2", "m::pow_half", ".neighbour_data(", "Team cell", "BlockTeam<3",
                     "cell.barrier()", "m::fast(cell)", ".append(", "h0.set(", ".length(", ".at(cell, ", ".activate(",
                     ".deactivate(", ".is_active("):
            self.assertTrue(word in text, word)


class ReducerTest(unittest.TestCase):
    def test_keeps_what_fails_and_little_else(self):
        kernel = next(k for k in (generate(seed, Options()) for seed in range(1000)) if "m::rem(" in k.text("k"))
        small = reduce_kernel(kernel, lambda kernels: ["m::rem(" in k.text("k") for k in kernels], 30)
        self.assertIn("m::rem(", small.text("k"))
        self.assertLessEqual(len(small.body), 2, small.text("k"))

    def test_smaller_kernels_get_no_larger(self):
        rng = random.Random(1)
        for seed in rng.sample(range(100000), 30):
            kernel = generate(seed, Options())
            for body in smaller_lists(kernel.body):
                self.assertLessEqual(size(body), size(kernel.body))


class AssemblyTest(unittest.TestCase):
    """Loops and bodies that were compiled apart become what a user's build makes of the whole kernel."""

    def machine_code(self, kernels, whole):
        """The assembly of each kernel as it runs on the cpu, and how the runs ended."""
        folder = Path(ARGUMENTS.folder) / f"assembly_{int(whole)}"
        shutil.rmtree(folder, ignore_errors=True)
        toolchain = Toolchain(ARGUMENTS.toolchain)
        toolchain.build(folder, kernels, whole=whole)
        with mock.patch.dict(os.environ, COPPICE_DUMP=str(folder / "dump"), COPPICE_CACHE_MAX_MB="0"):
            results = toolchain.run(folder, [runs_of(kernel)[0].line(str(n), n, kernel) for n, kernel in enumerate(kernels)])
            toolchain.end_runner()
        texts = {}
        for file in (folder / "dump").glob("batch.k*.s"):
            # What clang calls itself stands once for each file that was linked.
            lines = [line for line in file.read_text().splitlines() if ".ident" not in line]
            texts[re.match(r"batch\.(k\d+)-", file.name)[1]] = "\n".join(lines)
        return texts, {result.outcome for result in results.values()}

    def test_machine_code_is_that_of_whole_kernels(self):
        kernels = [generate(900000 + 53 * n, Options()) for n in range(100)]
        parts, outcomes = self.machine_code(kernels, whole=False)
        whole, whole_outcomes = self.machine_code(kernels, whole=True)
        self.assertEqual((outcomes, whole_outcomes), ({"ok"}, {"ok"}))
        self.assertEqual(len(whole), len(kernels))
        other = sorted(name for name in whole if parts.get(name) != whole[name])
        # The inliner sees a loop's own helpers before it knows the body, and in a few kernels decides otherwise.
        self.assertLessEqual(len(other), 20, other)


class PlantedTest(unittest.TestCase):
    def test_a_wrong_reference_is_found_and_made_small(self):
        status, words = fuzz("--plant", "1", "--seeds", "0", "3000", "--stop-at", "1", "--report", "1")
        self.assertEqual(status, 1, words)
        kernel = re.search(r"COPPICE_KERNEL\((?:.*\n)*?    }", words)
        self.assertIsNotNone(kernel, words)
        self.assertIn("m::rem(", kernel[0])
        self.assertLessEqual(len(kernel[0].splitlines()), 6, words)

    def test_a_wrong_reference_of_each_kind_is_found(self):
        for fault in range(2, 8):
            with self.subTest(fault=fault):
                status, words = fuzz("--plant", str(fault), "--seeds", "0", "2000", "--stop-at", "1", "--report", "1",
                                     "--reduce-seconds", "1")
                self.assertEqual(status, 1, words)
                self.assertRegex(words, r"failure 1: seed \d+: differ")

    def test_kernels_are_defined(self):
        status, words = fuzz("--sanitize", "--seeds", "500000", "500200", "--report", "1")
        self.assertEqual(status, 0, words)

    def test_a_crash_and_a_hang_cost_one_run_each(self):
        shape = next(s for s in SHAPES if s.place == "Item")
        store = S("assign", "out_i[cell] = {};", [E("i", "7")])
        trap = S("assign", "if ({} == 0) *(volatile int32_t*)8 = 0;", [E("i", "(int32_t)cell")])
        hang = S("assign", "for (volatile int32_t k = 0; {} == k;) {{}}", [E("i", "0 * (int32_t)cell")])
        kernels = [Kernel(k, shape, body, []) for k, body in enumerate([[store], [trap], [store], [hang], [store]])]
        toolchain = Toolchain(ARGUMENTS.toolchain)
        folder = Path(ARGUMENTS.folder) / "crash"
        toolchain.build(folder, kernels)
        lines = [f"run {k} {k} {shape.number} Item 1 cpu1 plain 0 1 0 20" for k in range(5)]
        results = toolchain.run(folder, lines, seconds_per_run=5)
        toolchain.end_runner()
        self.assertEqual([results[str(k)].outcome for k in range(5)], ["ok", "crash", "ok", "timeout", "ok"])


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser()
    parser.add_argument("toolchain")
    parser.add_argument("folder")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
