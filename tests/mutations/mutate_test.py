#!/usr/bin/env python3
"""Planted breaks (mutate.py): every patch reads well and applies to the sources as they are, and bad ones are told in a line.

    mutate_test.py <source folder>
"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # beside the sources
import mutate  # noqa: E402

SOURCE = pathlib.Path(sys.argv.pop(1))
GOOD = """One is two.
test: some_tests Suite.Name
limit: 5
--- a/x.cc
+++ b/x.cc
@@ -1,3 +1,3 @@
 first
-one
+COPPICE_BREAK(good) ? two : one
 last
"""


class MutateTest(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)
        for name in ["gpu/jit/llvm_module.cc", "gpu/jit/kernel_rules.cc", "sparse/launch_arguments.h"]:  # switch.diff changes these
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text((SOURCE / name).read_text())
        (self.folder / "x.cc").write_text("zero\nfirst\none\nlast\n")

    def patch(self, text, name="good"):
        path = self.folder / f"{name}.patch"
        path.write_text(text)
        return mutate.Patch(path)

    def expect_fault(self, words, function, *arguments):
        with self.assertRaises(mutate.Fault) as fault:
            function(*arguments)
        self.assertIn(words, str(fault.exception))
        self.assertNotIn("\n", str(fault.exception))

    def test_the_patches_here_apply(self):
        patches = mutate.read_patches(mutate.HERE)
        self.assertGreater(len(patches), 60)
        texts = mutate.patched_sources(SOURCE, patches)
        for patch in patches:
            self.assertTrue(any(f"COPPICE_BREAK({patch.name})" in text for text in texts.values()), patch.name)

    def test_a_patch_says_how_it_is_seen(self):
        patch = self.patch(GOOD.replace("limit", "hangs\nkernels: a b\nenvironment: X=1 Y=2\nlimit"))
        self.assertEqual(patch.about, "One is two.")
        self.assertEqual(patch.tests, [("some_tests", "Suite.Name")])
        self.assertEqual((patch.kernels, patch.environment), (["a", "b"], {"X": "1", "Y": "2"}))
        self.assertEqual((patch.limit, patch.hangs, patch.equivalent), (5.0, True, ""))

    def test_lines_are_found_where_they_have_moved_to(self):
        text = mutate.patched_sources(self.folder, [self.patch(GOOD)])["x.cc"]
        self.assertEqual(text, mutate.SWITCH + "zero\nfirst\nCOPPICE_BREAK(good) ? two : one\nlast\n")

    def test_neighbours_apply_together(self):
        other = GOOD.replace("good", "other").replace(" first\n-one\n", " one\n-last\n").replace(" last\n", "")
        texts = mutate.patched_sources(self.folder, [self.patch(GOOD), self.patch(other, "other")])
        self.assertEqual(texts["x.cc"].count("COPPICE_BREAK"), 2)

    def test_faults_are_told_in_a_line(self):
        self.expect_fault("good.patch does not apply to the sources: x.cc has no such lines", mutate.patched_sources,
                          self.folder, [self.patch(GOOD.replace("-one", "-gone"))])
        self.expect_fault("good.patch does not apply to the sources: y.cc", mutate.patched_sources, self.folder,
                          [self.patch(GOOD.replace("x.cc", "y.cc"))])
        twice = [self.patch(GOOD), self.patch(GOOD.replace("good", "again"), "again")]
        self.expect_fault("change the same line of x.cc", mutate.patched_sources, self.folder, twice)
        for text, words in [
            (GOOD.replace("One is two.\n", ""), "says nothing of what it breaks"),
            (GOOD.replace("test: some_tests Suite.Name\n", ""), "neither, or both, of 'test:' and 'equivalent:'"),
            (GOOD.replace("limit: 5", "equivalent: so it is"), "neither, or both, of 'test:' and 'equivalent:'"),
            (GOOD.replace(" Suite.Name", ""), "needs a program and a filter"),
            (GOOD.replace("COPPICE_BREAK(good)", "COPPICE_BREAK(bad)"), "its switch is not COPPICE_BREAK(good)"),
        ]:
            self.expect_fault(words, self.patch, text)


if __name__ == "__main__":
    unittest.main()
