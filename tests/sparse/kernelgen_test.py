"""Kernel files and launches that must not compile, and what they are told: runs clang, coppice-kernelgen and the host
compiler as the build does.

    kernelgen_test.py <source folder> <clang++> <host compiler> <coppice-kernelgen> <opt>
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE, CLANG, HOST, KERNELGEN, OPT = sys.argv[1:6]
EIGEN = "/usr/include/eigen3"


def cmake_list(name):
    """A list that cmake/CoppiceKernels.cmake sets: kernels are compiled here as they are there."""
    text = (pathlib.Path(SOURCE) / "cmake/CoppiceKernels.cmake").read_text()
    return shlex.split(re.search(rf"set\({name}\s+(.*?)\)\n", text, re.DOTALL)[1])


BITCODE = cmake_list("COPPICE_BITCODE_FLAGS")
PASSES = cmake_list("COPPICE_BITCODE_PASSES")[0]


class KernelgenTest(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)

    def run_tool(self, command):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)

    def generate(self, kernels, name="snippet"):
        """Header and source of a kernel file; returns kernelgen's exit status and words."""
        source = self.folder / f"{name}.kernels.cc"
        source.write_text('#include "coppice/kernel.h"\n' + kernels)
        debug, shipped = self.folder / f"{name}.debug.bc", self.folder / f"{name}.bc"
        compiled = self.run_tool([CLANG, *BITCODE, "-I", SOURCE, "-isystem", EIGEN, "-I", self.folder, source, "-o", debug])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        optimized = self.run_tool([OPT, f"-passes={PASSES}", debug, "-o", shipped])
        self.assertEqual(optimized.returncode, 0, optimized.stderr)
        made = self.run_tool([KERNELGEN, debug, shipped, name, SOURCE, EIGEN, self.folder / f"{name}.kernels.h", self.folder / f"{name}.gen.cc"])
        return made.returncode, made.stderr

    def compile_host(self, code, flags=()):
        source = self.folder / "host.cc"
        source.write_text('#include "sparse/program.h"\n#include "snippet.kernels.h"\n' + code)
        return self.run_tool([HOST, "-std=c++20", "-fsyntax-only", *flags, "-I", SOURCE, "-I", self.folder, "-isystem", EIGEN, source])

    def expect_generated(self, kernels, name="snippet"):
        status, words = self.generate(kernels, name)
        self.assertEqual(status, 0, words)

    def expect_refused(self, kernels, *expected):
        status, words = self.generate(kernels)
        self.assertEqual(status, 1, words)
        self.assertEqual(words.count("\n"), 1, words)  # one line
        for text in expected:
            self.assertIn(text, words)

    def expect_line(self, kernels, line, message):
        """Refused with exactly this: line 1 is the first of `kernels`."""
        self.expect_refused(kernels, f"error: {self.folder}/snippet.kernels.cc:{line + 1}: {message}\n")

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

    def test_a_use_against_a_handles_role_names_the_roles_that_would_do(self):
        reads, stores = "a Read only reads", "a Write only stores to its own cell"
        both = "a Write only stores; to read the cell, too, declare the field Update<T>"
        changes, adds = "an Update changes its own cell only", "an Accumulate only adds"
        grows, lists = "a Grow stores by set(), adds by add() and activates", "an Append changes lists"
        own = "u[cell] is of a Read<T> to read, a Write<T> to store and an Update<T> for both"
        around = "cells around are read by a Read<T, Star<1>> or Read<T, Box<1>>"
        for role, body, message in [
                ("Read<float>", "u.add(c, {1, 2}, 3.0f);", f"{reads}; add() is of an Accumulate<T>"),
                ("Read<float>", "u.set(c, {1, 2}, 3);", f"{reads}; set() at any cell is of a Grow<T>, or of an Append<T> for lists"),
                ("Read<float>", "u.activate(c, {1, 2});", f"{reads}; activate() is of a Topology or a Grow<T>"),
                ("Read<float>", "u.append(c, {1, 2}, 3);", f"{reads}; append() is of an Append<T>, on a dynamic node"),
                ("Write<float>", "float x = u[c]; *out = x;", both), ("Write<float>", "*out = u[c] + 1;", both),
                ("Write<float>", "u[c] += 2;", both), ("Write<P>", "P p = u[c]; *out = p.x;", both),
                ("Write<float>", "*out = u.at(c, {1, 2});", f"{stores}; at() is of a Read<T>"),
                ("Write<float>", "*out = u(c, 1, 0);", f"{stores}; {around}"),
                ("Write<float>", "u.add(c, {1, 2}, 3);", f"{stores}; add() is of an Accumulate<T>"),
                ("Update<float>", "*out = u(c, 0, 1);", f"{changes}; {around}"),
                ("Update<float>", "u.deactivate(c, {1, 2});", f"{changes}; deactivate() is of a Topology or a Grow<T>"),
                ("Accumulate<float>", "u[c] += 1;", f"{adds}; {own}"), ("Accumulate<float>", "*out = u[c];", f"{adds}; {own}"),
                ("Accumulate<float, Star<1>>", "u[c] += 1;", f"{adds}; {own}"),
                ("Accumulate<float>", "*out = u.at(c, {1, 2});", f"{adds}; at() is of a Read<T>"),
                ("Grow<float>", "u[c] = 3;", f"{grows}; {own}"), ("Atomic<float>", "u[c] = 3;", f"an Atomic changes cells by its own operations; {own}"),
                ("Topology", "*out = u.at(c, {1, 2});", f"{grows}; at() is of a Read<T>"),
                ("Append<float>", "u[c] = 3;", f"{lists}; {own}"), ("Append<float>", "u.activate(c, {1, 2});", f"{lists}; append() and set() activate")]:
            with self.subTest(role + ": " + body):
                self.expect_clang_error(f"using namespace coppice; struct P {{ float x; }};\nCOPPICE_KERNEL(f, {role} u, Cell2 c, float* out) {{\n"
                                        f"(void)out;\n{body}\n}}\n", 4, f"is unavailable: {message}")
        # One place is not assigned to another, which would store nothing; nor is what a Read gives, a copy.
        for parameters, body, message in [("Write<float> u, Write<float> v", "u[c] = v[c];", both), ("Write<P> u, Write<P> v", "u[c] = v[c];", both),
                                          ("Read<P> u", "u[c] = P{1};", "no viable overloaded '='"), ("Read<float> u", "u[c] = 1;", "expression is not assignable")]:
            with self.subTest(parameters):
                words = self.clang_words(f"using namespace coppice; struct P {{ float x; }};\nCOPPICE_KERNEL(f, {parameters}, Cell2 c) {{\n{body}\n}}\n")
                self.assertIn("snippet.kernels.cc:4:", words)
                self.assertIn(message, words)

    # ---- kernels of functions that stand above

    def test_a_kernel_may_be_made_of_a_templates_function(self):
        self.expect_generated("""template <int D>
            COPPICE_INLINE void fill(coppice::Write<float> x, coppice::Cell<D> c, const float& a) { x[c] = a; }
            namespace n { template <int D, class T> COPPICE_INLINE void add(coppice::Item i, T* out) { out[i.index] += D; } }
            COPPICE_KERNEL_OF(fill_2d, fill<2>) COPPICE_KERNEL_OF(fill_3d, fill<3>) COPPICE_KERNEL_OF(add_2d, n::add<2, int>)""")
        compiled = self.compile_host("""using namespace coppice;
            void f(Program& p, const Node& leaf, const Field<float>& x, int* out) {
              p.launch(fill_2d, over(leaf), x, 1.0f); p.launch(fill_3d, over(leaf), x, 1.0f); p.launch(n::add_2d, range(5), out);
              static_assert(fill_2d.name == "fill_2d" && n::add_2d.name == "add_2d");
              static_assert(!std::is_same_v<decltype(fill_2d), decltype(fill_3d)>);
            }""")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.expect_host_error("void f(coppice::Program& p, int* out) { p.launch(n::add_2d, coppice::range(5), 1.5f); }",
                               "a launch argument does not convert to the kernel's parameter")

    # ---- kernels for 2 and 3 dimensions

    def test_one_body_makes_a_kernel_for_2_and_one_for_3_dimensions(self):
        self.expect_generated("""using namespace coppice;
            struct Pair { Read<float> x; Write<float> y; };
            COPPICE_KERNEL_2D_3D(scale, Pair p, Cell<D> cell, float by) { p.y[cell] = D * by * p.x[cell]; }
            namespace n { COPPICE_KERNEL_2D_3D(index, Item i, float* out) { out[i.index] = D; } }
            COPPICE_KERNEL(all, Item i, float* out) { n::index<3>(i, out); }""")
        compiled = self.compile_host("""using namespace coppice;
            template <int D> void f(Program& p, const Node& leaf, const Field<float>& x, float* out) {
              p.launch(scale<D>, over(leaf), Pair{x, x}, 2); p.launch(n::index<D>, range(5), out);
              static_assert(scale<D>.name == (D == 2 ? "scale_2d" : "scale_3d"));
            }
            template void f<2>(Program&, const Node&, const Field<float>&, float*);
            template void f<3>(Program&, const Node&, const Field<float>&, float*);
            void g(Program& p, const Node& leaf, const Field<float>& x) { p.launch(scale_2d, over(leaf), Pair{x, x}, 2); }""", ["-Wall", "-Werror"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.expect_host_error("auto f = &scale<1>;", "the kernel is for 2 or 3 dimensions")
        self.expect_refused("#include <string.h>\nCOPPICE_KERNEL_2D_3D(index, coppice::Item, float* out) { *out = D; }\n",
                            "snippet.kernels.cc:3: kernel index is called as a function of C's library, ")
        self.expect_clang_error("COPPICE_KERNEL_2D_3D(f, coppice::Item, float* out) {\n  *out = none;\n}\n", 2, "undeclared identifier 'none'")

    # ---- kernels in headers

    SHARED = """#pragma once
        #include "coppice/kernel.h"
        namespace n { enum class Kind { kA = 3 }; struct P { float a = 2; Kind kind = Kind::kA; }; }
        struct Pair { coppice::Read<float> x; coppice::Write<float> y; };
        COPPICE_KERNEL(first, coppice::Item i, float* out, n::P p) { out[i.index] = SCALE * p.a; COPPICE_ASSERT(i, p.a > 0); }
        namespace n { COPPICE_KERNEL_2D_3D(twice, Pair p, coppice::Cell<D> c) { p.y[c] = D * p.x[c]; } }
        """

    def test_kernels_may_stand_in_a_header(self):
        (self.folder / "shared.h").write_text(self.SHARED)
        self.expect_generated('#define SCALE 2\n#include "shared.h"\n')
        host = """using namespace coppice;
            void f(Program& p, const Node& leaf, const Field<float>& x, float* out) {
              static_assert(n::P{}.a == 2 && n::P{}.kind == n::Kind::kA);
              p.launch(first, range(5), out, n::P{}); p.launch(n::twice_2d, over(leaf), Pair{x, x}); p.launch(n::twice<3>, over(leaf), Pair{x, x});
            }"""
        compiled = self.compile_host(host, ["-Werror"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        # A second file with the same header, and more code of its own before and behind it.
        self.expect_generated("#define SCALE 2\nstatic float half(float x) { return x / 2; }\n"
                              'COPPICE_KERNEL(before, coppice::Item i, float* out) { out[i.index] = half(1); print(i, "here {}", 1); }\n'
                              '#include "shared.h"\nCOPPICE_KERNEL(other, coppice::Item, float* out, n::P p) { *out = p.a; }\n', "second")
        both = '#include "second.kernels.h"\n'
        compiled = self.compile_host(both + host, ["-Werror"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        # What another macro makes of it is another kernel.
        self.expect_generated('#define SCALE 3\n#include "shared.h"\n', "second")
        words = self.compile_host(both).stderr
        self.assertEqual(words.count("error: "), 1, words)
        self.assertIn("kernel first of shared.h differs between the kernel files whose generated headers are included here", words)

    # ---- types of headers

    def test_members_that_are_private_are_no_concern_of_the_hosts(self):
        for definition in ["class P { float a_ = 1; public: float b; float sum() const { return a_ + b; } };",
                           "struct P { float b; float sum() const { return a_ + b; } private: float a_ = 1; };",
                           "class P { protected: float a_ = 1; float b; public: float sum() const { return a_ + b; } };"]:
            with self.subTest(definition):
                (self.folder / "types.h").write_text("#pragma once\n" + definition)
                self.expect_generated('#include "types.h"\nCOPPICE_KERNEL(f, coppice::Item i, float* out, const P* p) { out[i.index] = p->sum(); }')
                compiled = self.compile_host("")
                self.assertEqual(compiled.returncode, 0, compiled.stderr)

    # ---- default values of members

    def run_host(self, code):
        """What a program prints that needs the header alone."""
        source, program = self.folder / "host.cc", self.folder / "host"
        source.write_text('#include <cstdio>\n#include "snippet.kernels.h"\n'
                          "extern const coppice::KernelBitcode snippet_kernels{};\n" + code)
        built = self.run_tool([HOST, "-std=c++20", "-I", SOURCE, "-I", self.folder, "-isystem", EIGEN, source, "-o", program])
        self.assertEqual(built.returncode, 0, built.stderr)
        return self.run_tool([program]).stdout

    def test_default_values_of_members_are_the_hosts_too(self):
        (self.folder / "types.h").write_text("#pragma once\nstruct Pair { float x = 9, y = 8; };\n")
        self.expect_generated("""#include <cmath>
            #include "types.h"
            enum class Kind : short { kA = -3, kB = 7 };
            namespace n { struct Inner { float x = 1.5f, y; double z = -0.1; }; }
            struct All {
              float f = 0.1f; double d = 1e300; bool b = true; char c = 'x'; int8_t s = -5; uint16_t u = 65535;
              int i = -2147483647 - 1; int64_t l = INT64_MIN; uint64_t m = UINT64_MAX; float inf = -INFINITY; double no = NAN;
              Kind kind = Kind::kA; int grid[2][3] = {{1, 2, 3}, {4, -5, 6}}; const float* p = nullptr; int none;
              n::Inner inner{.x = 2.5f, .y = 3, .z = 4}; Pair pair{1, -2}, pairs[2] = {{3, 4}};
            };
            struct Plain { float a, b; };
            COPPICE_KERNEL(f, coppice::Item, float* out, const All& a, Plain q) { *out = a.f + q.a; }
            COPPICE_KERNEL(g, coppice::Item, coppice::View<const n::Inner> all, float* out) { *out = all[0].x; }""")
        self.assertEqual(self.run_host("""int main() {
              const All a; const n::Inner i;
              std::printf("%d %d %d %c %d %d %d %d %d %d %d %d %d %d %d ", a.f == 0.1f, a.d == 1e300, a.b, a.c, a.s, a.u, a.i == INT32_MIN,
                          a.l == INT64_MIN, a.m == UINT64_MAX, a.inf < -1e38f, a.no != a.no, a.kind == Kind::kA, a.grid[1][1], a.p == nullptr, a.none);
              std::printf("%g %g %g %g %g %g %g %g %g", a.inner.x, a.inner.y, a.inner.z, a.pair.x, a.pair.y, a.pairs[0].y, a.pairs[1].x, i.x, i.z);
              static_assert(std::is_trivially_default_constructible_v<Plain> && std::is_trivially_copyable_v<All>);
            }"""), "1 1 1 x -5 65535 1 1 1 1 1 1 -5 1 0 2.5 3 4 1 -2 4 9 1.5 -0.1")

    def test_default_values_that_code_makes_are_the_hosts_too(self):
        """Seen to fail: they were lost, and nothing said so, where one member was of Eigen's."""
        self.expect_generated("""#include <Eigen/Core>
            struct Fluid {
              float density = 1000; Eigen::Vector3f gravity{0, -9.81f, 0}, wind; Eigen::Matrix2d turn = Eigen::Matrix2d::Identity() * 3;
              int steps = 7; Eigen::Vector2i cells = Eigen::Vector2i(2, 3) + Eigen::Vector2i::Constant(4), none;
            };
            struct Drop { Eigen::Vector3f x; float mass; };
            COPPICE_KERNEL(f, coppice::Item, float* out, const Fluid& a) { *out = a.gravity.y(); }
            COPPICE_KERNEL(g, coppice::Item, coppice::View<const Drop> all, float* out) { *out = all[0].x.y(); }""")
        self.assertEqual(self.run_host("""int main() {
              const Fluid a; const Drop d{{1, 2, 3}, 4};
              std::printf("%g %g %g %g %g %g %g %g %d %d %d %g", a.density, a.gravity.x(), a.gravity.y(), a.gravity.z(), a.turn(0, 0), a.turn(1, 0),
                          a.turn(0, 1), a.turn(1, 1), a.steps, a.cells.x(), a.cells.y(), d.x.z() + d.mass);
            }"""), "1000 0 -9.81 0 3 0 0 3 7 6 7 7")

    def test_default_values_of_a_fields_value_and_of_items_are_the_hosts_too(self):
        """Seen to fail: they were lost where a member was of Eigen's."""
        self.expect_generated("""#include <Eigen/Core>
            #include <array>
            struct Node { Eigen::Vector2f v{1, 2}; float m = 3; }; struct Side { Eigen::Vector2f n{0, 4}; }; struct Gone { Eigen::Vector2f x{5, 6}; };
            struct Grid { coppice::Read<float> p; coppice::Update<Gone> gone; };
            COPPICE_KERNEL(f, coppice::Update<Node> u, coppice::Cell2 c, const std::array<Side, 2>& sides) { u[c] = {sides[0].n, 1}; }
            COPPICE_KERNEL(g, Grid grid, coppice::Cell2 c) { grid.gone[c] = {{grid.p[c], 0}}; }""")
        self.assertEqual(self.run_host("""int main() {
              const Node n; const std::array<Side, 2> s; const Gone g; std::printf("%g %g %g %g %g", n.v.y(), n.m, s[1].n.y(), g.x.x(), g.x.y());
            }"""), "2 3 4 5 6")

    def test_default_values_that_the_host_could_not_have_are_refused(self):
        self.expect_refused("""#include <Eigen/Core>
            float measured();
            struct P { Eigen::Vector3f a{measured(), 0, 0}; };
            COPPICE_KERNEL(f, coppice::Item, float* out, const P& p) { *out = p.a.x(); }""",
                            "argument type P must have default values that are known when it is compiled")
        for text, why in [("struct I { float a = 1; }; struct P { const I* i; };",
                           "argument type I must be what a kernel takes, what it points to, or a field's value, if its members have default "
                           "values, or be defined in a header without kernels that the host includes, too"),
                          ('struct P { const char* text = "abc"; };',
                           "argument type P must have no addresses, and no numbers of 128 bits, as default values, or be defined")]:
            with self.subTest(text):
                self.expect_refused(text + "\nCOPPICE_KERNEL(f, coppice::Item, float* out, P p) { *out = " +
                                    ("p.i->a" if "P { const I" in text else "sizeof p") + "; }", why)
        # Seen to fail: the first three had the number that follows from the other members' default values, the last two none.
        for text, why in [("struct P { int n = 8, cells = n * n; };", "a default value of cells that does not follow from another member, n"),
                          ("struct P {\n  float a = 1; /* a; b = a */ float b[2] = {1, this->a};\n};",
                           "a default value of b that does not follow from another member, a"),
                          ("struct P { float a = 1; float twice() const { return 2 * a; } float b{twice()}; };",
                           "a default value of b that does not follow from another member, twice"),
                          ("struct I { Eigen::Vector2f a{1, 2}; }; struct P { I i; };", "argument type I must be what a kernel takes"),
                          ("struct I { Eigen::Vector2f a = {1, 2}; };\nstruct P { const I* i; };", "argument type I must be what a kernel takes")]:
            with self.subTest(text):
                self.expect_refused("#include <Eigen/Core>\n" + text +
                                    "\nCOPPICE_KERNEL(f, coppice::Item, float* out, P p) { *out = " +
                                    ("p.i->a.x()" if "* i" in text else "sizeof p") + "; }", why)
        # Other names that are spelled as members are none.
        self.expect_generated("""namespace k { constexpr float b = 2; struct B { float a, b; }; }
            struct P { static constexpr int n = 4; int cells = n * n; float a = k::b, b = k::B{.a = 1, .b = 3}.b; k::B both{.a = 5}; const char* s = nullptr; };
            COPPICE_KERNEL(f, coppice::Item, float* out, P p) { *out = p.a; }""")
        self.assertEqual(self.run_host('int main() { const P p; std::printf("%d %g %g %g", p.cells, p.a, p.b, p.both.a); }'), "16 2 3 5")
        # A struct that says itself how it is made is made otherwise on the host, which says so.
        self.expect_generated("struct P { constexpr P(float x) : a(x) {} float a; };\n"
                              "COPPICE_KERNEL(f, coppice::Item, float* out, P p) { *out = p.a; }")

    def test_structs_of_handles_and_other_members_are_refused(self):
        """Seen to fail: the others were lost, or a handle behind them was, and nothing said so."""
        for members in ["Read<float> now; Write<float> next; float speed;", "Read<float> r; int q; Write<float> w;", "Read<float> r; float* p;",
                        "std::array<Read<float>, 2> r; int steps;", "struct { Read<float> a; int k; } inner;"]:
            with self.subTest(members):
                self.expect_refused("#include <array>\nusing namespace coppice;\nstruct Wave { " + members + " };\n"
                                    "COPPICE_KERNEL(f, Wave w, Item i, float* out) { *out = sizeof w; }",
                                    "kernel f: argument 1, Wave, holds handles and other members; give these as arguments of their own")
        self.expect_generated("#include <array>\nusing namespace coppice;\nstruct In { Read<float> a; };\n"
                              "struct Wave { In in; std::array<Read<float>, 2> r; Write<float> w; };\n"
                              "COPPICE_KERNEL(f, Wave w, Item i, float* out) { *out = sizeof w; }")

    # ---- contents of single kernels

    def contents(self, kernels, **headers):
        """By a kernel's name, what its line of the interface says of its contents."""
        for name, text in headers.items():
            (self.folder / f"{name}.h").write_text(text)
        self.expect_generated(kernels)
        interface, known = self.folder / "interface", self.folder / "known"
        known.write_text(self.known)
        with open(self.folder / "snippet.bc", "rb") as shipped:
            told = subprocess.run([KERNELGEN, "--interface", self.folder / "snippet.debug.bc", "-", "snippet", SOURCE,
                                   EIGEN, interface, known], stdin=shipped, capture_output=True, text=True, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        lines = [line.split() for line in interface.read_text().splitlines() if line.startswith("kernel ")]
        self.assertTrue(all(len(line[4]) == 40 for line in lines), lines)
        self.lines = {line[1]: line for line in lines}
        return {line[1]: line[4] for line in lines}

    known = ""

    def test_what_is_known_of_the_same_contents_is_taken_over(self):
        file = ("COPPICE_KERNEL(f, coppice::Item i, int* out, int a) { out[i.index] = a; }\n"
                "COPPICE_KERNEL(g, coppice::Item i, int* out, int a) { out[i.index] += a; }\n")
        self.contents(file)
        before = self.lines
        self.assertNotEqual(before["f"][3], before["g"][3])
        self.known = " ".join(["kernel", "f", "0", "77", before["f"][4]]) + "\n" + " ".join(["kernel", "g", "0", "77", "0" * 40])
        self.contents(file)
        self.assertEqual(self.lines["f"][2:5], ["0", "77", before["f"][4]])
        self.assertEqual(self.lines["g"], before["g"])

    def test_contents_of_a_kernel_are_those_of_what_it_leads_to(self):
        file = """#include "twice.h"
            static constexpr float kTable[] = {1, 2, 3, 4};
            __attribute__((noinline)) static float far(float x) { return x + 1; }
            COPPICE_KERNEL(f, coppice::Item i, float* out, float a) { out[i.index] = far(a) * kTable[i.index & 3]; }
            COPPICE_KERNEL(g, coppice::Item i, float* out, float a) { out[i.index] = twice(a); }
            COPPICE_KERNEL(h, coppice::Item i, float* out, float a) { out[i.index] = a; }
            """
        twice = "inline float twice(float x) { return 2 * x; }\n"
        known = self.contents(file, twice=twice)
        self.assertEqual(len(set(known.values())), 3, known)
        for change, into, changed in [
                ("x + 1", "x + 2", {"f"}), ("3, 4}", "3, 5}", {"f"}), ("twice(a)", "twice(a) + 1", {"g"}),
                ("static constexpr", "\n\nstatic constexpr", set()), ("= a;", "= /* as it was */ a;", set()),
                ("COPPICE_KERNEL(g", "COPPICE_KERNEL(more, coppice::Item i, int* x) { x[i.index] = 1; }\nCOPPICE_KERNEL(g", {"more"})]:
            with self.subTest(into):
                now = self.contents(file.replace(change, into), twice=twice)
                self.assertEqual({name for name in now if now[name] != known.get(name)}, changed)
        now = self.contents(file, twice=twice.replace("2 *", "3 *"))
        self.assertEqual({name for name in now if now[name] != known[name]}, {"g"})
        # What is the author's is told by the file.
        now = self.contents(file.replace("twice.h", "again.h"), again=twice)
        self.assertEqual({name for name in now if now[name] != known[name]}, {"g"})

    # ---- what kernelgen refuses

    IN_A_HEADER = ", or be defined in a header without kernels that the host includes, too"

    def test_refuses_types_that_it_cannot_declare(self):
        PLAIN = ("must be laid out as its members' types say, without packing, [[no_unique_address]] or types of another "
                 "alignment than their own")
        kernel = "COPPICE_KERNEL(f, coppice::Item, {0} x, {0}* out) {{ *out = x; }}\n"
        for definition, name, message in [
                ("template <class T> struct Pair { T a, b; };", "Pair<float>", "must be a plain struct, not a template"),
                ("struct B { float a; }; struct D : B { float b; };", "D", "must have no base class"),
                ("struct F { int a : 3; int b : 5; };", "F", "must have no bit-fields"),
                ("union U { int a; float b; };", "U", "must be no union"),
                ("struct V { struct { int a; }; };", "V", "must have no unnamed members"),
                ("struct Outer { struct In { float a; }; };", "Outer::In", "must be outside of classes and functions"),
                ("struct __attribute__((packed)) K { char a; int m; };", "K", PLAIN),
                ("struct __attribute__((packed)) L { int a; char m; };", "L", PLAIN),
                ("_Pragma(\"pack(push, 2)\") struct M { char a; int m; }; _Pragma(\"pack(pop)\")", "M", PLAIN),
                ("struct E {}; struct N { [[no_unique_address]] E e; float a; };", "N", PLAIN),
                ("struct A { int a; private: char b; }; struct O { [[no_unique_address]] A a; char b; };", "O", PLAIN),
                ("typedef int Near __attribute__((aligned(2))); struct R { char a; Near b; };", "R", PLAIN),
                ("using T = decltype([](int x) { return x; });", "without a name", "must have one")]:
            with self.subTest(name):
                self.expect_line(definition + "\n" + kernel.format("T" if name == "without a name" else name), 1, f"argument type {name} {message}{self.IN_A_HEADER}")

    def test_refuses_arguments_that_mean_nothing_on_a_device(self):
        HANDLES = "give handles as arguments or in a struct that holds nothing else"
        for parameter, what in [
                ("float (*x)(float)", "is or holds a pointer to a function, which has no address on a device; give a number and use a switch"),
                ("float P::*x", "is or holds a pointer to a member; give a number and use a switch"),
                ("Wide x", "is or holds a vector of the compiler's; use an array or Eigen's types"),
                ("float (*x)[]", "is or holds an array without a size; use a pointer"),
                ("_BitInt(37) x", "is or holds _BitInt, which is no type of every host compiler's; use an integer of 8, 16, 32 or 64 bits"),
                ("unsigned _BitInt(8)* x", "is or holds _BitInt, which is no type of every host compiler's; use an integer of 8, 16, 32 or 64 bits"),
                ("_Float16 x", "is or holds _Float16, which is no type of every host compiler's; use uint16_t and __builtin_bit_cast"),
                ("coppice::Read<float>* x", "leads to a handle, Read<float, coppice::Point>; " + HANDLES),
                ("Mixed x", "leads to a handle, Mixed; " + HANDLES),
                ("coppice::View<coppice::Write<int>> x", "leads to a handle, Write<int>; " + HANDLES)]:
            with self.subTest(parameter):
                self.expect_line("struct P { float a; };\ntypedef float Wide __attribute__((vector_size(16))); "
                                 "struct Mixed { float k; coppice::Read<int> a; };\n"
                                 f"COPPICE_KERNEL(f, coppice::Item, {parameter}, float* out) {{ (void)x; *out = 1; }}\n",
                                 3, f"kernel f: argument 2 {what}")
        self.expect_line("struct Heat { coppice::Read<int> a; };\nCOPPICE_KERNEL(f, coppice::Item i, const Heat* x, int* out) { *out = x->a.at(i, {0}); }\n",
                         2, "kernel f: argument 2 leads to a handle, Heat; " + HANDLES)
        self.expect_line("struct P {\n  int (*call)(int);\n};\nCOPPICE_KERNEL(f, coppice::Item, P p, int* out) { *out = p.call == nullptr; }\n",
                         2, "P::call is or holds a pointer to a function, which has no address on a device; give a number and use a switch")

    def test_clang_refuses_references_that_could_be_written_through(self):
        for parameter in ["float& x", "float&& x"]:
            source = self.folder / "snippet.kernels.cc"
            source.write_text(f'#include "coppice/kernel.h"\nCOPPICE_KERNEL(f, coppice::Item, {parameter}, float* out) {{ *out = x; }}\n')
            compiled = self.run_tool([CLANG, *BITCODE, "-I", SOURCE, "-isystem", EIGEN, source, "-o", self.folder / "snippet.bc"])
            self.assertNotEqual(compiled.returncode, 0, "it compiled")
            self.assertIn("a kernel takes values and constant references; results go to a field or a pointer", compiled.stderr)
            self.assertIn("snippet.kernels.cc:2:", compiled.stderr)

    # ---- what no device can run

    def expect_body_refused(self, body, message, before="", line=None):
        """The body's lines are the kernel's from line 2 of its own on; `before` is one line."""
        self.expect_line(f"{before}\nCOPPICE_KERNEL(f, coppice::Item i, float* out, int n) {{\n{body}\n(void)i, (void)out, (void)n; }}\n",
                         line or 3, message)

    def test_refuses_static_variables_where_they_are_declared(self):
        instead = "; make it constexpr, or give it as an argument: no variable is shared by a kernel's runs"
        self.expect_body_refused("++counter;", f"kernel f uses the static variable counter, which is not constant{instead}",
                                 "static int counter;", 1)
        self.expect_body_refused("*out = here::scale;", f"kernel f uses the static variable here::scale, which is not constant{instead}",
                                 "namespace here { float scale = 2; }", 1)
        for kept in ["static float kept = out[n];", "static int kept; *out = ++kept;", "static const float kept = out[n]; *out = kept;"]:
            self.expect_body_refused(kept, "kernel f uses the static variable "
                                     f"f(coppice::Item, float*, int)::kept, which is not constant{instead}")
        self.expect_body_refused("*out = count();", f"kernel f uses the static variable count()::n, which is not constant{instead}",
                                 "static int count() { static int n; return ++n; }", 1)

    def test_refuses_variables_that_are_no_kernels(self):
        self.expect_body_refused("*out = ++mine;", "kernel f uses the thread-local variable mine; use a variable of the kernel's own",
                                 "static thread_local int mine;")
        self.expect_body_refused("*out = elsewhere;", "kernel f uses the variable elsewhere, which the kernel file does not define; "
                                 "give its value as an argument", "extern int elsewhere;")
        self.expect_line("float root(float);\nstatic const float table = root(2);\n"
                         "COPPICE_KERNEL(f, coppice::Item, float* out) { *out = table; }\n",
                         2, "kernel f uses table, which is initialised or destroyed by code that no device runs; make it constexpr")
        self.expect_line("struct Guard { ~Guard(); int n; };\nstatic Guard guard;\n"
                         "COPPICE_KERNEL(f, coppice::Item, int* out) { *out = guard.n; }\n",
                         2, "kernel f uses guard, which is initialised or destroyed by code that no device runs; make it constexpr")

    def test_lets_variables_pass_that_no_kernel_leads_to(self):
        self.expect_generated("#include <iostream>\nfloat root(float);\nstatic const float table = root(2);\n"
                              "COPPICE_KERNEL(f, coppice::Item, float* out) { *out = 1; }\n")
        self.expect_refused("#include <iostream>\nCOPPICE_KERNEL(f, coppice::Item, int n) {\n  std::cout << n;\n}\n",
                            "snippet.kernels.cc:4: kernel f uses the variable std::cout, which the kernel file does not define")
        # Eigen's caches are variables like others; its placeholders are objects that hold nothing.
        self.expect_refused('#include "core/math.h"\nCOPPICE_KERNEL(f, coppice::Item, float* out) {\n  std::ptrdiff_t a, b, c;\n'
                            "  Eigen::internal::manage_caching_sizes(Eigen::GetAction, &a, &b, &c);\n  *out = a + b + c;\n}\n",
                            "kernel f uses the static variable Eigen::internal::manage_caching_sizes(", "m_cacheSizes, which is not constant")
        self.expect_generated('#include "core/math.h"\nCOPPICE_KERNEL(f, coppice::Item, Eigen::Matrix<float, 5, 1> v, float* out) {\n'
                              "  *out = v(Eigen::seq(2, Eigen::last)).sum() + v(Eigen::last);\n}\n")

    def test_lets_constants_pass(self):
        self.expect_generated("static const float kTable[] = {1, 2, 3};\nconstexpr struct { int a; } kOne = {1};\nint unused;\n"
                              "COPPICE_KERNEL(f, coppice::Item i, float* out) {\n  static constexpr int kLocal[2] = {4, 5};\n"
                              "  out[i.index] = kTable[i.index % 3] + kOne.a + kLocal[i.index % 2];\n}\n")

    def test_refuses_what_kernels_cannot_call_and_says_what_there_is(self):
        define = "define it in the kernel file or in a header that it includes"
        memory = "use an array of constant size, a field, or memory that the host gives as an argument"
        for declaration, call, name, instead in [
                ("int helper(int);", "*out = helper(n);", "helper(int)", define),
                ("float root(float); static float twice(float x) { return root(2 * x); }", "*out = twice(1);", "root(float)", define),
                ('extern "C" int printf(const char*, ...);', 'printf("%d", n);', "printf", 'use print(cell, "x is {}", x)'),
                ('extern "C" int puts(const char*);', 'puts("here");', "puts", 'use print(cell, "x is {}", x)'),
                ("#include <assert.h>", "assert(n > 0);", "__assert_fail", "use COPPICE_ASSERT(cell, condition)"),
                ("#include <stdlib.h>", "if (n > 0) abort();", "abort", "use COPPICE_ASSERT(cell, condition)"),
                ("#include <stdlib.h>", "if (n > 0) exit(1);", "exit", "use COPPICE_ASSERT(cell, condition)"),
                ("", "*out = *new float[n];", "operator new[](unsigned long)", memory),
                ("#include <vector>", "std::vector<float> v(n); *out = v[n / 2];", None, memory),
                ("#include <array>", "std::array<float, 3> a{}; *out = a.at(n);", None, "test before what it would throw on"),
                ("#include <string.h>", "*out = strlen((const char*)out);", "strlen", "no device has C's strings"),
                ("#include <fenv.h>", "*out = fesetround(n);", "fesetround", "a device rounds to nearest and has no flags"),
                ("#include <setjmp.h>", "static const int k = 1; jmp_buf b; *out = setjmp(b) + k;", "_setjmp", "return a value"),
                ("#include <complex>", "*out = std::abs(std::complex<float>(n, 1) * out[1]);", "cabsf",
                 "write it with real numbers, such as std::hypot(z.real(), z.imag()) for abs(z)"),
                ("#include <stdlib.h>", "*out = rand();", "rand", "use Random random(cell); random.uniform()")]:
            with self.subTest(call):
                status, words = self.generate(f"{declaration}\nCOPPICE_KERNEL(f, coppice::Item, float* out, int n) {{\n{call}\n(void)out, (void)n; }}\n")
                self.assertEqual(status, 1, words)
                self.assertEqual(words.count("\n"), 1, words)
                line = 2 if name == "root(float)" else 4  # where the call is written, in a function or the kernel
                self.assertIn(f"{self.folder}/snippet.kernels.cc:{line}: kernel f calls {name or ''}", words)
                if instead is not None:
                    self.assertIn(f", which kernels cannot; {instead}\n", words)

    def test_refuses_what_not_every_device_can_do(self):
        ordered = "use a relaxed one, or the ordered ones of gpu/device_intrinsics.h"
        for body, what in [
                ("volatile long double a = *out; *out = a * a;", "uses long double; use double"),
                ("volatile __float128 a = *out; *out = a * a;", "uses a float of 128 bits; use double"),
                ("float v[n]; v[n / 2] = *out; *out = v[n / 3];", "has an array whose size only the run knows; give it a constant size"),
                ("int* v = (int*)__builtin_alloca(n); v[0] = n; *out = v[n / 9];", "has an array whose size only the run knows; give it a constant size"),
                ('asm volatile("pause");', "has assembly, which is of one processor; write it as C++"),
                ("static void* const k[] = {&&a, &&b}; goto* k[n % 2]; a: *out = 1; b: *out += 1;", "has a computed goto; use a switch"),
                ("__atomic_thread_fence(__ATOMIC_ACQUIRE);", f"has a fence; {ordered}"),
                ("__atomic_store_n((int*)out, n, __ATOMIC_RELEASE);",
                 f"has an atomic with an order other than relaxed; {ordered}"),
                ("*out = __builtin_ia32_rdtsc();", "uses llvm.x86.rdtsc, which not every device has; write it as C++"),
                ("*out = __builtin_return_address(0) == out;", "uses llvm.returnaddress, which not every device has; write it as C++"),
                ("void* b[5]; if (__builtin_setjmp(b) == 0) *out = 1;", "uses llvm.frameaddress.p0, which not every device has; write it as C++")]:
            with self.subTest(body):
                self.expect_body_refused(body, f"kernel f {what}")

    def test_refuses_to_end_the_program(self):
        for call in ["__builtin_trap()", "__builtin_debugtrap()", "__builtin_verbose_trap(\"a\", \"b\")"]:
            with self.subTest(call):
                self.expect_body_refused(f"if (n > 3) {call};", "kernel f traps, which ends the whole program; use COPPICE_ASSERT(cell, condition)")
        self.expect_line("static void stop(int n) {\n  if (n > 3) __builtin_trap();\n}\n"
                         "COPPICE_KERNEL(f, coppice::Item, float* out, int n) { stop(n); *out = 1; }\n",
                         2, "kernel f traps, which ends the whole program; use COPPICE_ASSERT(cell, condition)")
        self.expect_generated("COPPICE_KERNEL(f, coppice::Item, float* out, int n) { if (n > 3) __builtin_unreachable(); *out = n; }\n")

    def test_refuses_variadic_functions(self):
        words = "whose `...` every device would read differently; use a template with `class... Args`"
        self.expect_line("#include <stdarg.h>\nstatic int total(int n, ...) {\n  va_list l;\n  va_start(l, n);\n  int s = 0;\n"
                         "  for (int k = 0; k < n; ++k) s += va_arg(l, int);\n  va_end(l);\n  return s;\n}\n"
                         "COPPICE_KERNEL(f, coppice::Item, int* out, int n) {\n  *out = total(2, n, 4);\n}\n",
                         11, f"kernel f leads to total(int, ...), {words}")
        self.expect_line("[[gnu::noinline]] static int first(int n, ...) { return n + 1; }\n"
                         "COPPICE_KERNEL(f, coppice::Item, int* out, int n) {\n  *out = first(n, 4.0);\n}\n",
                         3, f"kernel f leads to first(int, ...), {words}")
        self.expect_generated("template <class... Args> static int total(Args... args) { return (0 + ... + args); }\n"
                              "static int any(...);\n"
                              "COPPICE_KERNEL(f, coppice::Item, int* out, int n) { *out = total(2, n, 4) + int(sizeof(any(n))); }\n")

    def test_refuses_virtual_functions(self):
        self.expect_refused("struct A { virtual float f() const { return 1; } };\nstruct B : A { float f() const override { return 2; } };\n"
                            "COPPICE_KERNEL(f, coppice::Item, float* out, int n) {\n  A a; B b;\n  const A* const p = n > 3 ? &a : &b;\n"
                            "  *out = p->f();\n}\n", "kernel f uses virtual functions, vtable for ", "; use a template, or a switch")

    def test_clang_refuses_exceptions_and_run_time_types(self):
        for body, words in [("throw 1;", "cannot use 'throw' with exceptions disabled"),
                            ("try { *out = 1; } catch (...) {}", "cannot use 'try' with exceptions disabled")]:
            source = self.folder / "snippet.kernels.cc"
            source.write_text(f'#include "coppice/kernel.h"\nCOPPICE_KERNEL(f, coppice::Item, float* out) {{ {body} (void)out; }}\n')
            compiled = self.run_tool([CLANG, *BITCODE, "-I", SOURCE, "-isystem", EIGEN, source, "-o", self.folder / "snippet.bc"])
            self.assertNotEqual(compiled.returncode, 0, "it compiled")
            self.assertRegex(compiled.stderr, r"snippet\.kernels\.cc:2:\d+: error: " + re.escape(words))

    def test_refuses_more_stack_than_devices_have(self):
        use = "for (int k = 0; k < n; ++k) big[k] = out[k]; *out = big[n];"
        self.expect_body_refused(f"float big[16400]; {use}", "kernel f has variables of 65600 bytes, 65600 of them in the one that "
                                 "begins here, and may have 65536; use a field, or memory that the host gives as an argument")
        # All that may be there at once counts, also what is called and not inlined.
        self.expect_body_refused("float big[9000]; " + use + " *out += far(out, n);",
                                 "kernel f has variables of 68000 bytes, 36000 of them in the one that begins here, and may have 65536; "
                                 "use a field, or memory that the host gives as an argument",
                                 "[[gnu::noinline]] static float far(const float* p, int n) { volatile float big[8000]; "
                                 "for (int k = 0; k < n; ++k) big[k] = p[k]; return big[n / 2]; }")
        # The loop over cells has several copies of a kernel.
        cells = "COPPICE_KERNEL(f, coppice::Read<int> x, coppice::Write<float> o, coppice::Cell2 c, int n) { float big[%d]; " \
                "for (int k = 0; k < n; ++k) big[k] = x[c] + k; o[c] = big[n / 2]; }\n"
        self.expect_generated(cells % 16300)
        self.expect_refused(cells % 16400, "65600 of them in the one that begins here, and may have 65536")
        self.expect_generated("COPPICE_KERNEL(f, coppice::Item i, float* out, int n) { float big[16000]; " + use + " (void)i; }\n")

    def test_points_at_the_kernel_and_not_at_the_header_that_it_calls(self):
        self.expect_line("#include <algorithm>\n#include <functional>\nCOPPICE_KERNEL(f, coppice::Item, float* out, int n) {\n"
                         "  const std::function<float(float)> g = [n](float x) { return n * x; };\n  *out = g(2);\n}\n", 5,
                         "kernel f calls std::__throw_bad_function_call(), which kernels cannot; test before what it would throw on")

    def test_knows_its_own_headers_by_their_folder_and_not_by_how_a_path_ends(self):
        folder = self.folder / "sparse/device"
        folder.mkdir(parents=True)
        (folder / "mine.h").write_text("#pragma once\nstruct Mine { float a; };\n")
        (folder / "Eigen").mkdir()
        (folder / "Eigen/other.h").write_text("#pragma once\nstruct Other { float a; };\n")
        self.expect_generated('#include "sparse/device/mine.h"\n#include "sparse/device/Eigen/other.h"\n'
                              "COPPICE_KERNEL(f, coppice::Item, Mine m, Other o, float* out) { *out = m.a + o.a; }\n")
        compiled = self.compile_host("static_assert(sizeof(Mine) == sizeof(Other));\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def clang_words(self, kernels):
        """What clang says of a kernel file that it refuses."""
        source = self.folder / "snippet.kernels.cc"
        source.write_text('#include "coppice/kernel.h"\n' + kernels)
        compiled = self.run_tool([CLANG, *BITCODE, "-I", SOURCE, "-isystem", EIGEN, source, "-o", self.folder / "snippet.bc"])
        self.assertNotEqual(compiled.returncode, 0, "it compiled")
        return compiled.stderr

    def expect_clang_error(self, kernels, line, message):
        """The first error, on a line as expect_line counts them."""
        errors = [at for at in self.clang_words(kernels).splitlines() if ": error: " in at]
        self.assertRegex(errors[0], rf"snippet\.kernels\.cc:{line + 1}:\d+: error: .*{re.escape(message)}")

    def test_two_kernels_of_one_name_are_clangs_error(self):
        kernel = "COPPICE_KERNEL(f, coppice::Item, float* out) { *out = 1; }\n"
        self.expect_clang_error(f"namespace a {{\n{kernel}}}\nnamespace b {{\n{kernel}}}\n", 5,
                                "redefinition of 'coppice_only_kernel_in_this_file_with_the_name_f'")

    def test_refuses_names_that_the_host_cannot_use(self):
        self.expect_clang_error("COPPICE_KERNEL(main, coppice::Item, float* out) { *out = 1; }\n", 1,
                                "a kernel cannot be called main; give it another name")
        self.expect_clang_error("COPPICE_KERNEL(f, decltype([](int x) { return x; }) g, coppice::Item, float* out) { *out = g(1); }\n", 1, "static_cast from 'void (*)(decltype([](int x) {")
        for name in ["exit", "index", "floor", "remove"]:
            with self.subTest(name):
                kernel = f"COPPICE_KERNEL({name}, coppice::Item, float* out) {{ *out = 1; }}\n"
                self.expect_line(f"#include <stdlib.h>\n#include <string.h>\n{kernel}", 3,
                                 f"kernel {name} is called as a function of C's library, so that the host could not name it; "
                                 "give it another name or a namespace")
                self.expect_generated(f"#include <stdlib.h>\n#include <string.h>\nnamespace n {{ {kernel} }}\n")
                self.assertEqual(self.compile_host("").stderr, "")

    def test_clang_refuses_handles_that_a_kernel_makes(self):
        heat = "using namespace coppice; struct Heat { Read<float> now; Write<float> next; };\n"
        for body, message in [("Write<float> w{}; w[c] = 1;", "deleted default constructor of 'Write<float>'"),
                              ("Heat h; h.next[c] = 1;", "deleted default constructor of 'Heat'"),
                              ("Heat h{heat.now, {}}; h.next[c] = 1;", "deleted default constructor of 'Write<float>'"),
                              ("Write<float> w = heat.next; w.id = {}; w[c] = 1;", "'id' is a protected member"),
                              ("Write<float> w{heat.now}; w[c] = 1;", "no matching constructor for initialization of 'Write<float>'"),
                              ("Write<float> w{device::BindingNumber(1)}; w[c] = 1;", "calling a private constructor of class 'coppice::device::BindingNumber'")]:
            with self.subTest(body):
                self.expect_clang_error(f"{heat}COPPICE_KERNEL(f, Heat heat, Cell1 c) {{\n{body}\n}}\n", 3, message)
        self.expect_generated(f"{heat}static void by_copy(Heat h, const Cell1& c) {{ const Read<float> now = h.now; h.next[c] = now[c]; }}\n"
                              "COPPICE_KERNEL(f, Heat heat, Update<int> u, Cell1 c) { const Heat both[] = {heat, {heat.now, heat.next}}; by_copy(both[0], c); u[c] = 1; }\n")

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

    def test_declares_what_pointers_lead_to_by_name(self):
        self.expect_generated("struct Z; namespace n { class Y; union U; } struct Full { int a; };\n"
                              "struct P { Z* z; const n::Y* y; n::U** u; Full* full; void* any; };\n"
                              "COPPICE_KERNEL(f, coppice::Item, P p, Z* z, int* out) { *out = p.z == z; }\n")
        compiled = self.compile_host("struct Z { int a; };\n"
                                     "void g(coppice::Program& p, Z* z, int* out) { p.launch(f, coppice::range(1), P{.z = z}, z, out); }\n", ["-Werror"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_declares_how_members_are_aligned(self):
        self.expect_generated("typedef float Far __attribute__((aligned(16)));\nstruct In { char a; alignas(32) short b; };\n"
                              "struct P { int a; Far m; In in[2]; alignas(1) char c; };\n"
                              "COPPICE_KERNEL(f, coppice::Item, P p, int* out) { *out = p.a + p.in[1].b; }\n")
        compiled = self.compile_host("static_assert(alignof(P) == 32 && offsetof(P, m) == 16 && offsetof(P, in) == 32 && sizeof(In) == 64);\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_includes_the_standard_headers_of_arguments(self):
        self.expect_generated("#include <array>\n#include <complex>\nstruct P { char c; std::array<std::complex<float>, 2> z; };\n"
                              "COPPICE_KERNEL(f, coppice::Item, std::complex<double> z, P p, _Complex float k, float* out) "
                              "{ *out = z.real() * p.z[1].imag() + __real__ k; }\n")
        # Before any other header.
        (self.folder / "host.cc").write_text('#include "snippet.kernels.h"\n')
        compiled = self.run_tool([HOST, "-std=c++20", "-fsyntax-only", "-I", SOURCE, "-I", self.folder, "-isystem", EIGEN, self.folder / "host.cc"])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_declares_kernels_and_structs_of_namespaces(self):
        self.expect_generated("namespace app::inner {\nenum Kind { kA, kB };\nstruct P { float a[2]; Kind kind; };\n"
                              "namespace other { static float f(float x) { return 3 * x; } }\n"
                              "COPPICE_KERNEL(f, coppice::Item, P p, float* out) { *out = other::f(p.a[0]); }\n}\n"
                              "namespace { COPPICE_KERNEL(g, coppice::Item, const app::inner::P* p, float* out) { *out = p->a[1]; } }\n")
        compiled = self.compile_host("void h(coppice::Program& p, float* out) { p.launch(app::inner::f, coppice::range(1), app::inner::P{{1, 2}, app::inner::kB}, out);\n"
                                     "p.launch(g, coppice::range(1), nullptr, out); }\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_a_helper_of_the_kernels_name_is_not_the_kernel(self):
        self.expect_generated("namespace helpers { static int f(int a) { return a; } }\nstruct f_of { static float f(float x) { return x; } };\n"
                              "COPPICE_KERNEL(f, coppice::Item, float k, float* out) { *out = helpers::f(3) * f_of::f(k); }\n")
        compiled = self.compile_host("void h(coppice::Program& p, float* out) { p.launch(f, coppice::range(1), 2.5f, out); }\n"
                                     "static_assert(std::is_same_v<decltype(f), const coppice::Kernel<void(coppice::Item, float, float*)>>);\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_a_constant_reference_is_given_a_value(self):
        self.expect_generated("struct Heat { coppice::Read<float> now; coppice::Write<float> next; };\nstruct P { float a; };\n"
                              "COPPICE_KERNEL(f, const Heat& heat, const coppice::Cell2& cell, const float& k, const P& p) "
                              "{ heat.next[cell] = k * heat.now[cell] + p.a; }\n")
        compiled = self.compile_host("void g(coppice::Program& p, coppice::Node leaf, coppice::Field<float> x) "
                                     "{ p.launch(f, over(leaf), Heat{x, x}, 2, P{1}); }\n")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_declares_pointers_arrays_and_constants_as_they_are(self):
        self.expect_generated("using Row = float[3];\nstruct P { float* const a = nullptr; const int* b; float c[2][3]; Row d[2]; Row* e; const Row* f; const void* g; };\n"
                              "COPPICE_KERNEL(f, coppice::Item, P p, Row* rows, float (*more)[2][3], float* out) { *out = rows[1][2] + p.c[1][1] + more[0][1][2]; }\n")
        compiled = self.compile_host("static_assert(std::is_same_v<decltype(P::a), float* const> && std::is_same_v<decltype(P::b), const int*>);\n"
                                     "static_assert(std::is_same_v<decltype(P::c), float[2][3]> && std::is_same_v<decltype(P::d), float[2][3]>);\n"
                                     "static_assert(std::is_same_v<decltype(P::e), float(*)[3]> && std::is_same_v<decltype(P::f), const float(*)[3]>);\n"
                                     "static_assert(std::is_same_v<decltype(f), const coppice::Kernel<void(coppice::Item, P, float(*)[3], float(*)[2][3], float*)>>);\n")
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
        for given, named in [("x, out, out", "WrongLaunchArgument<2, float*, P>"), ("x, P{1}, 3", "WrongLaunchArgument<3, int, float*>"),
                             ("n, P{1}, out", "WrongLaunchArgument<1, coppice::Field<int>, coppice::Read<float, coppice::Point> >")]:
            words = self.compile_host(launch.format(given)).stderr
            self.assertIn(named, words)
            self.assertEqual(words.count("error: "), 1, words)
            self.assertLess(words.count("\n"), 16, words)
        self.expect_host_error(launch.format("n, P{1}, out"), wrong_type)
        self.expect_host_error(launch.format("x, P{1}, 3"), wrong_type)
        kernel = "COPPICE_KERNEL(f, coppice::Topology t, coppice::Item i, coppice::View<float> v, float* p) { v[0] = *p; t.activate(i, {0}); }\n"
        self.expect_generated(kernel)
        for given, hint in [("n.topology(), b, b->as<float>()", "a View takes *buffer"), ("n, *b, b->as<float>()", "a Topology takes node.topology()"),
                            ("n.topology(), s, b->as<float>()", "kernels do not reach the host's memory"), ("n.topology(), *b, b", "a pointer buffer->as<T>()"),
                            ("n.topology(), *b, s", "kernels do not reach the host's memory")]:
            words = self.compile_host("#include <vector>\nvoid g(coppice::Program& p, coppice::Node n, coppice::IntrusivePtr<coppice::Buffer> b, std::vector<float> s) "
                                      f"{{ p.launch(f, coppice::range(1), {given}); }}\n").stderr
            self.assertIn("a launch argument does not convert to the kernel's parameter: ", words)
            self.assertIn(hint, words)
            self.assertEqual(words.count("error: "), 1, words)
        self.expect_generated(self.KERNEL)
        wrong_count = "a launch gives every kernel argument but the Cell, Block, BlockTeam, Entry, Item, GridItem or Team, in order"
        self.expect_host_error(launch.format("x, P{1}"), wrong_count)
        self.expect_host_error(launch.format("x, P{1}, out, out"), wrong_count)

    def test_a_target_without_the_library_is_told_so(self):
        self.expect_generated(self.KERNEL)
        (self.folder / "host.cc").write_text('#include "snippet.kernels.h"\n')
        words = self.run_tool([HOST, "-std=c++20", "-fsyntax-only", "-I", self.folder, self.folder / "host.cc"]).stderr
        self.assertIn('#error "a target with kernels needs the library: target_link_libraries(your_program PRIVATE coppice::coppice)"', words)

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
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[6:]])
