"""A mistake in a kernel file stops the build with clang's own message: file, line and column.

    broken_kernel_test.py <source folder> <host compiler> <coppice-kernelgen>
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE, HOST, KERNELGEN = sys.argv[1:4]
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH {SOURCE}/cmake)
include(CoppiceKernels)
set(COPPICE_INCLUDE_DIR {SOURCE})
add_executable(coppice-kernelgen IMPORTED)
set_target_properties(coppice-kernelgen PROPERTIES IMPORTED_LOCATION {KERNELGEN})
add_library(tiny STATIC)
set_target_properties(tiny PROPERTIES LINKER_LANGUAGE CXX)
coppice_add_kernels(tiny tiny.kernels.cc)
add_custom_target(kernels_only DEPENDS ${{CMAKE_CURRENT_BINARY_DIR}}/kernels/tiny.kernels.h)
"""
KERNEL = """#include "coppice/kernel.h"

COPPICE_KERNEL(twice, coppice::Item i, float* out)
{
  out[i.index] = 2 * %s;
}
"""


class BrokenKernelTest(unittest.TestCase):
    def build(self, expression):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        (folder / "CMakeLists.txt").write_text(PROJECT)
        (folder / "tiny.kernels.cc").write_text(KERNEL % expression)
        for command in (["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_COMPILER={HOST}"],
                        ["cmake", "--build", folder / "build", "--target", "kernels_only"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout, folder

    def test_a_right_kernel_builds(self):
        status, words, folder = self.build("out[i.index]")
        self.assertEqual(status, 0, words)
        self.assertTrue((folder / "build/kernels/tiny.kernels.h").exists())

    def test_a_misspelt_name_is_shown_with_its_line_and_column(self):
        status, words, folder = self.build("outt[i.index]")
        self.assertNotEqual(status, 0, words)
        self.assertRegex(words, r"tiny\.kernels\.cc:5:22: error: use of undeclared identifier 'outt'")
        self.assertIn("out[i.index] = 2 * outt[i.index];", words)  # clang shows the line itself
        self.assertFalse((folder / "build/kernels/tiny.kernels.h").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
