"""A mistake in a kernel file stops the build with clang's own message: file, line and column. Kernel files may be called as
their authors like, and editors are told how they are compiled.

    broken_kernel_test.py <source folder> <host compiler> <coppice-kernelgen> <clang++>
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE, HOST, KERNELGEN, CLANG = sys.argv[1:5]
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


# A name with all that no C++ name has, in a folder with a space.
ODD = "2d my-heat.v2"
ODD_PROJECT = PROJECT.replace("coppice_add_kernels(tiny tiny.kernels.cc)", f"""target_sources(tiny PRIVATE host.cc)
target_compile_options(tiny PRIVATE -Wall)
target_compile_features(tiny PRIVATE cxx_std_20)
target_include_directories(tiny SYSTEM PRIVATE {SOURCE} /usr/include/eigen3)
coppice_add_kernels(tiny "{ODD}.kernels.cc" INCLUDES "more headers")
coppice_add_kernels(tiny plain.kernels.cc)
""").replace("kernels/tiny.kernels.h", "kernels/plain.kernels.h")
ODD_FILES = {
    "more headers/scale.h": "#pragma once\ninline float scale(float x) { return 2 * x; }\n",
    f"{ODD}.kernels.cc": '#include "coppice/kernel.h"\n#include "scale.h"\n'
                         "COPPICE_KERNEL(odd, coppice::Item i, float* out) { out[i.index] = scale(out[i.index]); }\n",
    "plain.kernels.cc": '#include "coppice/kernel.h"\nCOPPICE_KERNEL(plain, coppice::Item i, float* out) { out[i.index] = 1; }\n',
    "host.cc": f'#include "{ODD}.kernels.h"\n#include "plain.kernels.h"\n'
               "const void* files() { return odd.file == &_2d_my_heat_v2_kernels ? plain.file : nullptr; }\n",
}


class OddNamesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="with a space ")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        for name, text in {**ODD_FILES, "CMakeLists.txt": ODD_PROJECT}.items():
            (cls.folder / name).parent.mkdir(exist_ok=True)
            (cls.folder / name).write_text(text)

    def run_tool(self, *command, **options):
        return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)

    def configure(self, *options):
        done = self.run_tool("cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / "build", f"-DCMAKE_CXX_COMPILER={HOST}", *options)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_any_name_will_do_and_nothing_is_built_twice(self):
        self.configure("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        built = self.run_tool("cmake", "--build", self.folder / "build")
        self.assertEqual(built.returncode, 0, built.stdout)
        self.assertNotIn("for_editors", built.stdout)  # what stands for a kernel file is never built
        self.assertIn("no work to do", self.run_tool("cmake", "--build", self.folder / "build").stdout)
        (self.folder / "more headers/scale.h").touch()  # is a dependency
        self.assertIn("Bitcode", self.run_tool("cmake", "--build", self.folder / "build").stdout)

    def test_editors_are_told_how_kernel_files_are_compiled(self):
        self.configure("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_CXX_STANDARD=17")
        entries = {pathlib.Path(e["file"]).name: e for e in json.loads((self.folder / "build/compile_commands.json").read_text())}
        for name in (f"{ODD}.kernels.cc", "plain.kernels.cc"):
            entry = entries[name]
            command = [CLANG, *shlex.split(entry["command"])[1:], "-fsyntax-only", "-Werror"]
            right = self.run_tool(*command, cwd=entry["directory"])
            self.assertEqual(right.returncode, 0, right.stdout)
        # It is that file which is compiled so.
        text = (self.folder / "plain.kernels.cc").read_text()
        self.addCleanup((self.folder / "plain.kernels.cc").write_text, text)
        (self.folder / "plain.kernels.cc").write_text(text.replace("= 1", "= one"))
        self.assertIn("plain.kernels.cc:2:", self.run_tool(*command, cwd=entry["directory"]).stdout)

    def test_two_files_of_one_name_are_refused(self):
        (self.folder / "CMakeLists.txt").write_text(ODD_PROJECT + 'coppice_add_kernels(tiny "2d_my-heat.v2.kernels.cc")\n')
        self.addCleanup((self.folder / "CMakeLists.txt").write_text, ODD_PROJECT)
        done = self.run_tool("cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / "build", f"-DCMAKE_CXX_COMPILER={HOST}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("tiny has two kernel files that are called _2d_my_heat_v2 in C++; rename", " ".join(done.stdout.split()))

    def refusal(self, lines):
        (self.folder / "CMakeLists.txt").write_text(ODD_PROJECT + lines)
        self.addCleanup((self.folder / "CMakeLists.txt").write_text, ODD_PROJECT)
        done = self.run_tool("cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / "other", f"-DCMAKE_CXX_COMPILER={HOST}")
        return "" if done.returncode == 0 else " ".join(done.stdout.split())

    def test_a_name_that_does_not_work_is_refused(self):
        for character in "#$'":
            self.assertIn(f"the name of heat{character}1.kernels.cc has the character '{character}'",
                          self.refusal(f'coppice_add_kernels(tiny [=[heat{character}1.kernels.cc]=])\n'))

    # Seen to fail: what was called first was there for both, and the program said that there was no such kernel.
    def test_two_files_of_one_name_in_one_program_are_refused(self):
        for folder in ("a", "b"):
            (self.folder / folder).mkdir(exist_ok=True)
            (self.folder / folder / "k.kernels.cc").write_text(ODD_FILES["plain.kernels.cc"])
            (self.folder / folder / "CMakeLists.txt").write_text(
                f"add_library({folder} STATIC)\nset_target_properties({folder} PROPERTIES LINKER_LANGUAGE CXX)\n"
                f"coppice_add_kernels({folder} k.kernels.cc)\n")
        self.assertIn("would both be declared by k.kernels.h",
                      self.refusal("add_library(other STATIC host.cc)\ncoppice_add_kernels(tiny a/k.kernels.cc)\n"
                                   "coppice_add_kernels(other b/k.kernels.cc)\n"))
        both = "add_subdirectory(a)\nadd_subdirectory(b)\nadd_library(between INTERFACE)\ntarget_link_libraries(between INTERFACE b)\n"
        self.assertEqual(self.refusal(both), "")  # they may be of two programs
        self.assertIn("program has two kernel files that are called k in C++",
                      self.refusal(both + "add_executable(program host.cc)\ntarget_link_libraries(program PRIVATE a between)\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
