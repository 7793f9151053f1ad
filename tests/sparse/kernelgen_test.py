"""Kernel files and launches that must not compile, and what they are told: runs clang, coppice-kernelgen and the host
compiler as the build does.

    kernelgen_test.py <source folder> <clang++> <host compiler> <coppice-kernelgen>
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE, CLANG, HOST, KERNELGEN = sys.argv[1:5]
EIGEN = "/usr/include/eigen3"
# The flags of cmake/CoppiceKernels.cmake that bear on layouts.
BITCODE = ["-std=c++20", "-O2", "-g", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-fno-exceptions", "-fno-rtti",
           "-DEIGEN_DONT_VECTORIZE", "-DEIGEN_NO_DEBUG"]


class KernelgenTest(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)

    def run_tool(self, command):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)

    def generate(self, kernels):
        """Header and source of a kernel file; returns kernelgen's exit status and words."""
        source = self.folder / "snippet.kernels.cc"
        source.write_text('#include "coppice/kernel.h"\n' + kernels)
        bitcode = self.folder / "snippet.bc"
        compiled = self.run_tool([CLANG, *BITCODE, "-I", SOURCE, "-isystem", EIGEN, "-I", self.folder, source, "-o", bitcode])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        made = self.run_tool([KERNELGEN, bitcode, bitcode, "snippet", self.folder / "snippet.kernels.h", self.folder / "snippet.gen.cc"])
        return made.returncode, made.stderr

    def compile_host(self, code, flags=()):
        source = self.folder / "host.cc"
        source.write_text('#include "sparse/program.h"\n#include "snippet.kernels.h"\n' + code)
        return self.run_tool([HOST, "-std=c++20", "-fsyntax-only", *flags, "-I", SOURCE, "-I", self.folder, "-isystem", EIGEN, source])

    def expect_generated(self, kernels):
        status, words = self.generate(kernels)
        self.assertEqual(status, 0, words)

    def expect_refused(self, kernels, *expected):
        status, words = self.generate(kernels)
        self.assertEqual(status, 1, words)
        for text in expected:
            self.assertIn(text, words)

    def expect_host_error(self, code, expected, flags=()):
        compiled = self.compile_host(code, flags)
        self.assertNotEqual(compiled.returncode, 0, "it compiled")
        self.assertIn(expected, compiled.stderr)

    # ---- what clang refuses

    def test_reading_a_neighbour_without_a_reach_is_a_compile_time_error(self):
        source = self.folder / "snippet.kernels.cc"
        source.write_text('#include "coppice/kernel.h"\n'
                          "COPPICE_KERNEL(f, coppice::Read<float> x, coppice::Cell1 cell, float* out) { *out = x(cell, 1); }\n")
        compiled = self.run_tool([CLANG, *BITCODE, "-I", SOURCE, "-isystem", EIGEN, source, "-o", self.folder / "snippet.bc"])
        self.assertNotEqual(compiled.returncode, 0, "it compiled")
        self.assertIn("a Read without a reach reads its own cell only; declare it Read<T, Star<1>> or Read<T, Box<1>>",
                      compiled.stderr)
        self.assertIn("snippet.kernels.cc:2:", compiled.stderr)

    # ---- what kernelgen refuses

    def test_refuses_a_template_of_the_kernel_file(self):
        self.expect_refused("template <class T> struct Pair { T a, b; };\n"
                            "COPPICE_KERNEL(f, coppice::Item, Pair<float> p, float* out) { *out = p.a; }\n",
                            "snippet.kernels.cc:2: argument type Pair<float> must be a plain struct at global scope")

    def test_refuses_a_struct_in_a_namespace(self):
        self.expect_refused("namespace n { struct P { float a; }; }\n"
                            "COPPICE_KERNEL(f, coppice::Item, n::P p, float* out) { *out = p.a; }\n",
                            "snippet.kernels.cc:2: argument type n::P must be a plain struct at global scope")

    def test_refuses_base_classes_and_bit_fields(self):
        self.expect_refused("struct B { float a; };\nstruct D : B { float b; };\n"
                            "COPPICE_KERNEL(f, coppice::Item, D d, float* out) { *out = d.a; }\n", "argument type D must have no base class")
        self.expect_refused("struct F { int a : 3; int b : 5; };\n"
                            "COPPICE_KERNEL(f, coppice::Item, F x, int* out) { *out = x.a; }\n", "argument type F must have no bit-fields")
        self.expect_refused("union U { int a; float b; };\n"
                            "COPPICE_KERNEL(f, coppice::Item, U x, int* out) { *out = x.a; }\n", "argument type U must be no union")

    def test_refuses_a_file_without_kernels(self):
        self.expect_refused("int f() { return 1; }\n", "no COPPICE_KERNEL in this file")

    # ---- what it declares

    def test_declares_structs_enumerations_and_field_values(self):
        self.expect_generated("enum class Mode : unsigned char { kSoft = 3, kHard = -0 };\nstruct Particle { float x[3]; Mode mode; };\n"
                              "struct alignas(32) Wide { double a; };\nstruct All { Particle p[2]; Wide w; const int* ids; };\n"
                              "COPPICE_KERNEL(f, coppice::Grow<Particle> x, coppice::Item i, All all, Mode m) { x.set(i, {0}, all.p[m == Mode::kSoft]); }\n")
        compiled = self.compile_host("static_assert(sizeof(Wide) == 32 && static_cast<int>(Mode::kSoft) == 3);\n"
                                     "void g(coppice::Program& p, coppice::Field<Particle> x) { p.launch(f, coppice::range(1), x, All{}, Mode::kHard); }\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_tells_kernels_that_must_not_run_for_inactive_cells(self):
        self.expect_generated("static int helper(int a, int b) { return a % b; }\n"
                              "COPPICE_KERNEL(plain, coppice::Read<int> x, coppice::Write<int> y, coppice::Cell1 c) { y[c] = x[c] / 3; }\n"
                              "COPPICE_KERNEL(divides, coppice::Read<int> x, coppice::Write<int> y, coppice::Cell1 c) { y[c] = helper(5, x[c]); }\n"
                              "COPPICE_KERNEL(points, coppice::Write<int> y, coppice::Cell1 c, const int* p) { y[c] = *p; }\n")
        compiled = self.compile_host("static_assert(!plain.active_only && divides.active_only && points.active_only);\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    # ---- what the host compiler refuses

    KERNEL = ("struct P { float a; };\n"
              "COPPICE_KERNEL(f, coppice::Read<float> x, coppice::Item i, P p, float* out) { *out = x.at(i, {0}) + p.a; }\n")

    def test_wrong_argument_types_are_compile_time_errors(self):
        self.expect_generated(self.KERNEL)
        launch = "void g(coppice::Program& p, coppice::Field<float> x, coppice::Field<int> n, float* out) {{ p.launch(f, coppice::range(1), {}); }}\n"
        self.assertEqual(self.compile_host(launch.format("x, P{1}, out")).returncode, 0)
        wrong_type = "a launch argument does not convert to the kernel's parameter"
        self.expect_host_error(launch.format("x, out, out"), wrong_type)
        self.expect_host_error(launch.format("n, P{1}, out"), wrong_type)
        self.expect_host_error(launch.format("x, P{1}, 3"), wrong_type)
        wrong_count = "a launch gives every kernel argument but the Cell, Block, BlockTeam, Entry, Item or Team, in order"
        self.expect_host_error(launch.format("x, P{1}"), wrong_count)
        self.expect_host_error(launch.format("x, P{1}, out, out"), wrong_count)

    def test_types_that_align_differently_are_compile_time_errors(self):
        # Of the same size, but aligned by the compiler's vector width, which clang is told not to use: as Eigen's are.
        (self.folder / "vector.h").write_text("#pragma once\n#ifdef EIGEN_DONT_VECTORIZE\nstruct Vector { float v[4]; };\n"
                                              "#else\nstruct alignas(16) Vector { float v[4]; };\n#endif\n")
        self.expect_generated('#include "vector.h"\n'
                              "COPPICE_KERNEL(f, coppice::Item, char c, Vector x, float* out) { *out = x.v[0] + c; }\n")
        same = self.compile_host("", ["-DEIGEN_DONT_VECTORIZE"])
        self.assertEqual(same.returncode, 0, same.stderr)
        self.expect_host_error("", "kernel f: clang and the host compiler align its arguments differently")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
