"""Tests of the fuzzer of kernels: it finds what is planted, and says so in a few lines.

    kernel_fuzz_test.py TOOLCHAIN.json FOLDER
"""
import argparse
import random
import re
import subprocess
import sys
import unittest
from pathlib import Path

from generator import E, Kernel, Options, S, generate
from reducer import is_valid, reduce_kernel, size, smaller_lists
from shapes import SHAPES
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
        text = "".join(generate(seed, Options()).text("k") for seed in range(0, 20000, 17))
        for word in ("for (", "switch (", "break;", "continue;", "return;", "memcpy", "m::Mixed", "m::swap", "m::pick", ".add(",
                     "Cell1", "Cell2", "Cell3", "Block1", "Block2", "Block3", "Entry1", "Entry2", "Entry3", "Item cell",
                     "Read<", "Write<", "Update<", "Accumulate<", "Star<1>", "Star<2>", "Box<1>", "Box<2>", "table[",
                     "std::sin", "m::nextafter", "m::to_i32", "m::bits", "INFINITY", "NAN", "INT32_MIN"):
            self.assertIn(word, text)


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


class PlantedTest(unittest.TestCase):
    def test_a_wrong_reference_is_found_and_made_small(self):
        status, words = fuzz("--plant", "--seeds", "0", "3000", "--stop-at", "1", "--report", "1")
        self.assertEqual(status, 1, words)
        kernel = re.search(r"COPPICE_KERNEL\((?:.*\n)*?    }", words)
        self.assertIsNotNone(kernel, words)
        self.assertIn("m::rem(", kernel[0])
        self.assertLessEqual(len(kernel[0].splitlines()), 6, words)

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
        library = toolchain.build(folder, kernels)
        lines = [f"run {k} {k} {shape.number} Item 1 cpu1 plain 0 1 0 20" for k in range(5)]
        results = toolchain.run(folder, library, lines, seconds_per_run=5)
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
