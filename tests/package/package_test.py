"""The installed package, as its users meet it: installs the build to a prefix, moves that, and builds projects with it
outside of the source tree.

    package_test.py <source folder> <build folder> <cmake> <prefix>       <prefix> is replaced
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "apps" / "window"))
from window_session_test import Display  # noqa: E402

SOURCE, BUILD, CMAKE, PREFIX = (pathlib.Path(a) if i != 2 else a for i, a in enumerate(sys.argv[1:5]))
EXAMPLES = SOURCE / "examples"
GUIDE = SOURCE / "docs" / "first-solver.md"
PARTICLES = SOURCE / "docs" / "particles.md"
README = SOURCE / "README.md"


def run(command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)


def files_in(page):
    """The files that a page's code blocks make up, by name: each block follows a comment `<!-- file: NAME -->`, and
    blocks of one file are its pieces, in order."""
    files = {}
    for name, code in re.findall(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", page.read_text(), re.M | re.S):
        files[name] = files[name] + "\n" + code if name in files else code
    return files


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="coppice-package-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.environment = {k: v for k, v in os.environ.items() if not k.startswith(("CMAKE_", "COPPICE_"))}
        cls.environment["COPPICE_CACHE_DIR"] = str(cls.folder / "cache")
        first = PREFIX.with_name(PREFIX.name + "-before-it-is-moved")
        for old in (first, PREFIX):
            shutil.rmtree(old, ignore_errors=True)
        installed = run([CMAKE, "--install", BUILD, "--prefix", first])
        assert installed.returncode == 0, installed.stdout
        first.rename(PREFIX)

    def test_who_builds_the_program_can_install_it(self):
        built = set(run(["ninja", "-C", BUILD, "-t", "inputs", "coppice"]).stdout.split())
        installed = set()
        for script in BUILD.rglob("cmake_install.cmake"):
            for block in script.read_text().split("if(CMAKE_INSTALL_COMPONENT STREQUAL ")[1:]:
                if not block.startswith('"Unspecified"'):
                    continue  # the bundle's
                installed.update(re.findall(rf'"{BUILD}/([^"]*?\.(?:a|so)|bin/[^"]*)"', block))
        self.assertIn("bin/coppice", installed)
        self.assertEqual(installed - built - {"bin/coppice"}, set())

    def configure(self, project, *options):
        """Configures a folder; returns exit code and words. The build goes to <project>/build."""
        done = run([CMAKE, "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}", *options],
                   env=self.environment)
        return done.returncode, done.stdout

    def build(self, project):
        done = run([CMAKE, "--build", project / "build"], env=self.environment)
        return done.returncode, done.stdout

    def run_program(self, project, name, *arguments, **environment):
        """What the project's program `name` prints; fails unless its exit code is 0."""
        done = run([project / "build" / name, *arguments], env={**self.environment, **environment}, cwd=project, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def build_whole(self, project, *options):
        for status, words in (self.configure(project, *options), self.build(project)):
            self.assertEqual(status, 0, words)
            self.assertNotIn("warning:", words)

    def build_and_run(self, project, name, *options):
        """Returns what the project's program `name` prints; fails unless all goes well."""
        self.build_whole(project, *options)
        return self.run_program(project, name)

    def copy_of(self, example):
        project = self.folder / f"{self._testMethodName}-{example}"
        shutil.copytree(EXAMPLES / example, project)
        return project

    # ---- the package

    def test_names_no_folder_of_the_build(self):
        for file in (PREFIX / "lib" / "cmake").rglob("*.cmake"):
            text = file.read_text()
            for leak in (str(SOURCE), str(BUILD), "-before-it-is-moved"):
                self.assertNotIn(leak, text, file)

    def test_the_moved_program_finds_its_scenes_and_its_plugin(self):
        program = PREFIX / "bin" / "coppice"
        words = run([program, "info"], env=self.environment).stdout
        self.assertIn(str(PREFIX / "share" / "coppice" / "assets"), words)
        if (BUILD / "lib" / "libcoppice_vdb.so").exists():
            self.assertRegex(words, r"OpenVDB plugin +found")
            self.assertTrue((PREFIX / "lib" / "coppice" / "libcoppice_vdb.so").exists())
        self.assertIn("snow_3d", run([program, "list"], env=self.environment).stdout)

    def test_the_links_of_the_installed_pages_lead_somewhere(self):
        pages = sorted((PREFIX / "share" / "doc" / "coppice").rglob("*.md"))
        self.assertIn("README.md", [p.name for p in pages])
        for page in pages:
            text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)  # lambdas look like links
            for link in re.findall(r"\]\(([^)#]+)", text):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page}: {link}")

    def test_coppice_log_is_heard_by_programs_of_users(self):
        project = self.copy_of("heat")
        self.build_whole(project)
        cache = lambda name: {"COPPICE_CACHE_DIR": str(self.folder / name)}
        self.assertIn("kernels: compiling", self.run_program(project, "heat", **cache("heard")))
        self.assertNotIn("kernels: ", self.run_program(project, "heat", COPPICE_LOG="warning", **cache("quiet")))

    # ---- examples

    def test_programs_of_users_may_be_built_with_sanitizers(self):
        project = self.folder / "sanitized"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.22)
project(sanitized CXX)
find_package(coppice REQUIRED)
add_executable(sanitized main.cc)
target_compile_options(sanitized PRIVATE -fsanitize=address)
target_link_options(sanitized PRIVATE -fsanitize=address)
target_link_libraries(sanitized PRIVATE coppice::coppice)
""")
        # Blocks of all sizes go from the program to the library and back.
        (project / "main.cc").write_text("""#include <cstdio>
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/text.h"
using namespace coppice;
using namespace coppice::executor;
int main() {
  Registry registry;
  add_builtin_operations(registry);
  registry.add("square.i32", [](int32_t x) { return x * x; });
  auto module = LoadedModule::load(
      parse("func @main(%x: i32) -> i32 { %y = square.i32 (%x) %z = square.i32 (%y) return %z }", "g"), registry);
  auto host = make_intrusive<Host>(WorkQueue::create({.threads = 2}));
  auto request = host->start_request();
  for (int i = 0; i < 1000; ++i) {
    auto z = execute(module->function("main"), {make_available_async_value<int32_t>(3)}, *request)[0];
    wait(*z);
    if (z->get<int32_t>() != 81) return 1;
  }
  std::puts("81");
}
""")
        self.build_whole(project)
        self.assertEqual(self.run_program(project, "sanitized", ASAN_OPTIONS="detect_leaks=1"), "81\n")

    def test_the_first_example_is_short(self):
        heat = EXAMPLES / "heat"
        lines = lambda *names: sum(len((heat / name).read_text().splitlines()) for name in names)
        self.assertLessEqual(lines("heat.kernels.cc", "main.cc"), 60)
        self.assertLessEqual(lines("CMakeLists.txt"), 12)
        self.assertEqual(sorted(p.name for p in heat.iterdir()), ["CMakeLists.txt", "heat.kernels.cc", "main.cc"])

    def test_heat_converges_to_the_exact_solution(self):
        words = self.build_and_run(self.copy_of("heat"), "heat")
        coarse, fine = (float(e) for e in re.findall(r"error (\S+),", words))
        ratio = float(re.search(r"ratio (\S+);", words)[1])
        self.assertLess(fine, 1e-3, words)
        # Second order: a quarter of the error at half the cell size; 10 % for the next order's part.
        self.assertAlmostEqual(coarse / fine, 4, delta=0.4, msg=words)
        self.assertAlmostEqual(coarse / fine, ratio, delta=0.02, msg=words)
        # The tree grows with the heat: a spot of about the same width takes about 4 times the leaves.
        leaves = [int(n) for n in re.findall(r"(\d+) of 4096 leaves", words)]
        self.assertTrue(0 < leaves[0] < leaves[1] < 1024, words)

    def test_wave_converges_and_draws_pictures_where_it_is_told(self):
        project = self.copy_of("wave")
        self.build_whole(project, "-DCMAKE_BUILD_TYPE=Release")
        before = sorted(project.iterdir())
        words = self.run_program(project, "wave", "--check")
        coarse, fine = (float(e) for e in re.findall(r"error (\S+),", words))
        self.assertLess(fine, 1e-3, words)
        # Second order, as for heat. Leapfrog conserves its energy but for rounding: 128 steps of relative 6e-8.
        self.assertAlmostEqual(coarse / fine, 4, delta=0.4, msg=words)
        for factor in re.findall(r"factor of (\S+)", words):
            self.assertAlmostEqual(float(factor), 1, delta=1e-4, msg=words)

        words = self.run_program(project, "wave", self.folder / "pictures" / "of-waves")
        self.assertEqual(sorted(project.iterdir()), before, "it littered")
        pictures = sorted((self.folder / "pictures" / "of-waves").iterdir())
        self.assertEqual([p.name for p in pictures], [f"wave_{i:02}.ppm" for i in range(13)])
        for picture in pictures:
            self.assertEqual(picture.stat().st_size, len("P6\n512 512\n255\n") + 3 * 512 * 512)
        # The wave comes, grows over the domain, and leaves through the sponge.
        energy = [float(e) for e in re.findall(r"energy +(\S+),", words)]
        blocks = [int(n) for n in re.findall(r"(\d+) of 1024 blocks", words)]
        self.assertEqual((len(energy), len(blocks)), (13, 13), words)
        self.assertLess(energy[-1], 0.1 * max(energy), words)
        self.assertTrue(blocks[0] < 16 < max(blocks) and blocks[-1] < max(blocks) < 1024, words)

        for arguments in ([], ["--frames"]):
            done = run([project / "build" / "wave", *arguments], env=self.environment, cwd=project)
            self.assertEqual((done.returncode, done.stdout), (2, "usage: wave FOLDER | wave --check\n"))

    def test_mpm88_keeps_what_mechanics_keeps_and_draws_where_it_is_told(self):
        project = self.copy_of("mpm88")
        self.build_whole(project, "-DCMAKE_BUILD_TYPE=Release")
        before = sorted(project.iterdir())
        words = self.run_program(project, "mpm88", self.folder / "splash.pgm")
        self.assertEqual(sorted(project.iterdir()), before, "it littered")
        # Mass, momentum along both axes, the centre's fall and the angular momentum, for particles in a buffer and in lists.
        errors = [float(e) for e in re.findall(r"error (\S+)$", words, re.M)]
        self.assertEqual(len(errors), 10, words)
        self.assertLess(max(errors), 1e-4, words)
        header = b"P5\n768 256\n255\n"
        picture = (self.folder / "splash.pgm").read_bytes()
        self.assertEqual((picture[:len(header)], len(picture)), (header, len(header) + 768 * 256))
        # Three times 11,972 particles, a pixel of room for each: some share one, since moving water has no such order.
        drawn = sum(grey < 255 for grey in picture[len(header):])
        self.assertTrue(1.5 * 11972 < drawn <= 3 * 11972, drawn)
        done = run([project / "build" / "mpm88", "/nowhere/splash.pgm"], env=self.environment)
        self.assertEqual((done.returncode, done.stdout), (1, "mpm88: cannot write /nowhere/splash.pgm\n"))

    def test_the_viewers_example_runs_with_every_back_end(self):
        project = self.copy_of("viewer")
        self.build_whole(project)
        self.assertEqual([w for w in self.run_program(project, "viewer", "--view", "null", "--frames", "3").splitlines()
                          if not w.startswith("kernels: ")], [])
        pictures = project / "pictures"
        self.run_program(project, "viewer", "--view", "file", "--frames", "20", "-o", pictures)
        self.assertEqual(sorted(p.name for p in pictures.glob("*.png")), [f"frame_{i:04}.png" for i in range(21)])
        self.assertNotEqual((pictures / "frame_0001.png").read_bytes(), (pictures / "frame_0020.png").read_bytes())
        for arguments, status, words in [(["--view", "file"], 2, "--view file needs --frames N"), (["--speed"], 2, "--speed"),
                                         (["--view", "window"], 1, "cannot open a window: ")]:
            environment = {k: v for k, v in self.environment.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
            done = run([project / "build" / "viewer", *arguments], env=environment, cwd=project)
            self.assertEqual((done.returncode, done.stdout.count("\n")), (status, 1), done.stdout)
            self.assertRegex(done.stdout, rf"^room: error: .*{words}")
        if not (BUILD / "lib" / "libcoppice_window.so").exists():
            self.skipTest("the build has no window")
        if not shutil.which("Xvfb"):
            self.skipTest("Xvfb is not installed")
        # The program lies elsewhere than the package, whose window it finds nevertheless.
        display = Display(str(self.folder))
        self.addCleanup(display.stop)
        state = project / "state.json"
        environment = {**self.environment, "DISPLAY": display.name, "COPPICE_VIEW_TEST": str(state)}
        window = subprocess.Popen([project / "build" / "viewer", "--view", "window", "--frames", "20"], env=environment)
        self.addCleanup(window.kill)
        end = time.monotonic() + 60
        seen = {}
        while seen.get("run") != "ended" and time.monotonic() < end and window.poll() is None:
            time.sleep(0.05)
            if state.exists():
                seen = json.loads(state.read_text())["state"]
        self.assertEqual((seen.get("run"), seen.get("steps")), ("ended", "200"), seen)
        window.send_signal(signal.SIGINT)  # the window stays open until it is closed
        self.assertEqual(window.wait(timeout=60), 0)

    def test_a_stage_of_ones_own_acts_in_the_solver(self):
        words = self.build_and_run(self.copy_of("stage"), "stage")
        calm, windy = (float(v) for v in re.findall(r"([-\d.]+) m/s along x", words))
        # Snow in free fall has no drift of its own; with a drag of 5/s it has come close to the wind's 2 m/s and more.
        self.assertLess(abs(calm), 0.01, words)
        self.assertGreater(windy, 0.5, words)

    def test_a_kernel_that_is_saved_is_taken_over_by_the_running_viewer(self):
        project = self.copy_of("viewer")
        self.build_whole(project)
        kernels, words = project / "room.kernels.cc", project / "words"
        right = kernels.read_text()
        with words.open("w") as out:
            running = subprocess.Popen([project / "build" / "viewer", "--view", "null"], env=self.environment, stderr=out)
        self.addCleanup(running.kill)

        def wait_for(pattern):
            end = time.monotonic() + 60
            while not re.search(pattern, words.read_text(), re.M) and time.monotonic() < end and running.poll() is None:
                time.sleep(0.05)
            self.assertRegex(words.read_text(), re.compile(pattern, re.M))

        kernels.write_text(right.replace("keep * (now", "0.5f * keep * (now"))
        wait_for(r"^kernels: room\.kernels\.cc loaded in \d+ ms$")
        kernels.write_text(right.replace("laplacian(now, cell)", "laplacian(now, sell)"))
        wait_for(r"^warning: kernels: room\.kernels\.cc is not taken: \S*/room\.kernels\.cc:25:\d+: error: .*'sell'")
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(timeout=60), 130)

    def test_ranks_lend_each_other_what_they_keep(self):
        if not (PREFIX / "lib" / "libcoppice_mpi.a").exists():
            self.skipTest("the build has no MPI (Debian packages libopenmpi-dev and openmpi-bin)")
        project = self.copy_of("remote")
        self.build_whole(project)
        for n in (1, 3):
            words = self.run_program(project, "remote", "--ranks", str(n))
            self.assertEqual(re.findall(r"^rank (\d): \S+, error 0.0e\+00$", words, re.M), [str(r) for r in range(n)], words)
        done = run([project / "build" / "remote", "--ranks", "2"], env={**self.environment, "PATH": "/nowhere"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^remote: .*cannot start mpiexec: .*\n$")
        # A program that does not ask for it is not linked to MPI.
        other = self.copy_of("heat")
        self.build_whole(other)
        self.assertNotIn("libmpi", run(["ldd", other / "build" / "heat"]).stdout)
        self.assertIn("libmpi", run(["ldd", project / "build" / "remote"]).stdout)

    def test_a_tree_over_ranks_gives_what_one_rank_gives(self):
        if not (PREFIX / "lib" / "libcoppice_mpi.a").exists():
            self.skipTest("the build has no MPI (Debian packages libopenmpi-dev and openmpi-bin)")
        examples = self.folder / self._testMethodName
        shutil.copytree(EXAMPLES, examples)
        own_words = lambda words: [word for word in words.splitlines() if not word.startswith("kernels: ")]
        expected = own_words(self.build_and_run(examples / "heat", "heat"))
        project = examples / "heat_ranks"  # it has heat's kernels
        self.build_whole(project)
        for n in (1, 3):
            words = self.run_program(project, "heat_ranks", "--ranks", str(n))
            self.assertEqual(own_words(re.sub(r", \d+ of them here", "", words)), expected)
            fewest = min(int(own) / int(all) for all, own in re.findall(r"(\d+) of 4096 leaves active, (\d+) of them", words))
            self.assertLess(fewest, 1.3 / n)

    def test_every_example_is_tested_here(self):
        self.assertEqual(sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir()), ["heat", "heat_ranks", "mpm88", "remote", "stage", "viewer", "wave"])

    # ---- the guide

    def test_every_code_block_of_the_guides_belongs_to_a_file(self):
        for page in (GUIDE, PARTICLES, README):
            text = page.read_text()
            self.assertEqual(len(re.findall(r"^```(?:cpp|cmake|c\+\+)$", text, re.M)),
                             len(re.findall(r"^<!-- file: .* -->$", text, re.M)), page)

    def test_the_first_program_of_guide_and_readme_is_the_example(self):
        for page in (GUIDE, README):
            for name in ("CMakeLists.txt", "heat.kernels.cc", "main.cc"):
                self.assertEqual(files_in(page)[f"heat/{name}"], (EXAMPLES / "heat" / name).read_text(), (page, name))

    def test_the_program_on_the_page_about_remote_references_is_the_example(self):
        page = SOURCE / "docs" / "remote.md"
        self.assertEqual(files_in(page), {"remote/main.cc": (EXAMPLES / "remote" / "main.cc").read_text()})

    def test_the_page_about_particles_is_the_example(self):
        files = {name.removeprefix("mpm88/"): code for name, code in files_in(PARTICLES).items()}
        self.assertEqual(files, {p.name: p.read_text() for p in (EXAMPLES / "mpm88").iterdir()})

    def test_the_first_program_of_the_readme_is_short_and_prints_what_it_says(self):
        files = {name: code for name, code in files_in(README).items() if name.startswith("drops/")}
        lines = {name: len(code.splitlines()) for name, code in files.items()}
        self.assertLessEqual(sum(lines.values()), 40, lines)
        for name, code in files.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(code)
        words = [w.rstrip() for w in self.build_and_run(self.folder / "drops", "drops").splitlines() if not w.startswith("kernels: ")]
        expected = re.search(r"^It prints how a drop .*\n\n((?:    .*\n)+)", README.read_text(), re.M)[1]
        self.assertEqual(words, [row[4:] for row in expected.splitlines()])

    def test_the_guides_tour_prints_what_the_guide_says(self):
        for name, code in files_in(GUIDE).items():
            if name.startswith("tour/"):
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(code)
        words = self.build_and_run(self.folder / "tour", "tour").splitlines()
        expected = re.search(r"^It prints\n\n((?:    .*\n)+)", GUIDE.read_text(), re.M)[1]
        spoken = lambda rows: [w for w in rows if not w.startswith(("kernels: ", "no volume: "))]
        self.assertEqual(spoken(words), [row[4:] for row in expected.splitlines()])
        self.check_files_of_the_tour(self.folder / "tour", words)
        # As the guide's part 8 tells to look for faults, with what was built.
        for mode in ("step", "checks", "1"):
            printed = self.run_program(self.folder / "tour", "tour", COPPICE_DEBUG=mode).splitlines()
            self.assertEqual(len(spoken(printed)), len(expected.splitlines()), printed)

    def check_files_of_the_tour(self, tour, words):
        picture = (tour / "dye.png").read_bytes()
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", picture[16:24]), (128, 128))
        header, rows = (tour / "dye.ply").read_bytes().split(b"end_header\n", 1)
        self.assertRegex(header, rb"property float x\nproperty float y\nproperty float z\nproperty float amount\n$")
        count = int(re.search(rb"element vertex (\d+)\n", header)[1])
        self.assertEqual(len(rows), 16 * count)
        # The drops lie along y = 64, from x = 20 to x = 96, with 6 cells around each; blurring spreads a tenth of them by 4 more.
        particles = list(struct.iter_unpack("<4f", rows))
        self.assertTrue(500 < count < 2000, count)
        self.assertTrue(all(8 < x < 106 and 52 < y < 76 and z == 0 and 0.1 <= dye < 1.001 for x, y, z, dye in particles))
        plugin = PREFIX / "lib" / "coppice" / "libcoppice_vdb.so"
        said = lambda rows: [w for w in rows if w.startswith("no volume: ")]
        self.assertEqual(len(said(words)), 0 if plugin.exists() else 1, words)
        if not plugin.exists():
            self.skipTest("the build has no OpenVDB")
        self.assertEqual((tour / "smoke.vdb").read_bytes()[:4], b" BDV")
        # Without the plugin the rest goes on, and one line says what is missing.
        (tour / "smoke.vdb").unlink()
        plugin.rename(plugin.with_suffix(".away"))
        try:
            without = self.run_program(tour, "tour").splitlines()
        finally:
            plugin.with_suffix(".away").rename(plugin)
        self.assertEqual(len(said(without)), 1, without)
        self.assertRegex(said(without)[0], r"smoke\.vdb: cannot write the volume: built without OpenVDB: no .*libcoppice_vdb\.so$")
        self.assertFalse((tour / "smoke.vdb").exists())

    # ---- what a user's project may meet

    def test_a_wrong_kernel_is_clangs_own_message(self):
        project = self.copy_of("heat")
        kernels = project / "heat.kernels.cc"
        text = kernels.read_text()
        kernels.write_text(text.replace("heat.now[cell] +", "heat.before[cell] +"))
        line = next(i + 1 for i, row in enumerate(text.splitlines()) if "heat.now[cell] +" in row)
        self.assertEqual(self.configure(project)[0], 0)
        status, words = self.build(project)
        self.assertNotEqual(status, 0)
        self.assertRegex(words, rf"heat\.kernels\.cc:{line}:\d+: error: no member named 'before' in 'Heat'")

    def test_editors_are_told_how_kernel_files_are_compiled(self):
        project = self.folder / "editors"
        shutil.copytree(EXAMPLES / "heat", project)
        status, words = self.configure(project, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        self.assertEqual(status, 0, words)
        entries = json.loads((project / "build/compile_commands.json").read_text())
        entry = next(e for e in entries if e["file"].endswith("heat.kernels.cc"))
        clang = re.search(r"COPPICE_CLANG:\w+=(.*)", (project / "build/CMakeCache.txt").read_text())[1]
        done = run([clang, *shlex.split(entry["command"])[1:], "-fsyntax-only", "-Werror"], cwd=entry["directory"])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_without_clang_19_one_line_says_what_to_install(self):
        expected = "kernels need clang++-19 and opt-19 (COPPICE_CLANG is missing): install the Debian packages clang-19 and llvm-19-dev"
        project = self.copy_of("heat")
        status, words = self.configure(project, "-DCOPPICE_CLANG=missing")
        self.assertNotEqual(status, 0)
        self.assertEqual(sum(expected in line for line in words.splitlines()), 1, words)
        status, words = self.configure(project, "-DCOPPICE_CLANG=/bin/true")
        self.assertNotEqual(status, 0)
        self.assertIn("is of version ''", words)

    def project_of(self, name, kernels, main, more="", command="coppice_add_kernels({0} {0}.kernels.cc)"):
        """A folder with a program of one kernel file; `command` is the last line of its CMakeLists.txt."""
        project = self.folder / name
        project.mkdir(exist_ok=True)
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\n" + f"project({name} CXX)\nfind_package(coppice REQUIRED)\n"
                                                f"add_executable({name} main.cc)\ntarget_link_libraries({name} PRIVATE coppice::coppice)\n"
                                                + command.format(name) + "\n" + more)
        (project / f"{name}.kernels.cc").write_text(kernels)
        (project / "main.cc").write_text(main)
        return project

    def test_macros_are_given_to_kernel_files_and_change_their_kernels(self):
        kernels = ('#include "coppice/kernel.h"\n#ifdef LESS\n#undef SCALE\n#define SCALE 1\n#endif\n'
                   "COPPICE_KERNEL(fill, coppice::Item i, float* out) { out[i.index] = SCALE; }\n"
                   'COPPICE_KERNEL(tell, coppice::Item i) { print(i, TITLE); }\n')
        main = """#include <cstdio>
#include "coppice/coppice.h"
#include "defined.kernels.h"
#if defined(SCALE) || defined(TITLE)
#error "macros of kernel files"
#endif
int main() {
  auto device = coppice::Device::cpu(1);
  coppice::Program program(device);
  const auto buffer = device->reserve(4, 4);
  program.launch(fill, coppice::range(1), buffer->as<float>());
  program.launch(tell, coppice::range(1));
  program.wait();
  float value;
  device->wait_copy(&value, buffer->data(), 4);
  std::printf("%g\\n", value);
}
"""
        command = "coppice_add_kernels({0} {0}.kernels.cc DEFINES %s)"
        for defines, expected in [(r'"SCALE=2 + 3" "TITLE=\"a  pool, $HOME (50%%) is not \\\"dry\\\"\""', ['a  pool, $HOME (50%%) is not "dry"', "5"]),
                                  (r'SCALE=4 "TITLE=\"b\""', ["b", "4"]), (r'SCALE=4 LESS "TITLE=\"b\""', ["b", "1"])]:
            with self.subTest(defines):
                project = self.project_of("defined", kernels, main, command=command % defines)
                words = self.build_and_run(project, "defined", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON").splitlines()
                self.assertEqual([w for w in words if not w.startswith("kernels: ")], expected)
        entries = json.loads((project / "build/compile_commands.json").read_text())
        self.assertIn("-DSCALE=4 ", next(e["command"] for e in entries if e["file"].endswith("defined.kernels.cc")))
        for defines, words in [('"A=1;B=2"', "DEFINES 'A=1;B=2' has a semicolon, which no value may have"),
                               ("-DA=1", "DEFINES '-DA=1' is not name or name=value, with the name of a macro"),
                               ('"A=1\n2"', "the value of A in DEFINES has several lines")]:
            project = self.project_of("defined", kernels, main, command=command % defines)
            status, said = self.configure(project)
            self.assertNotEqual(status, 0)
            self.assertIn("coppice_add_kernels: " + words, " ".join(said.split()))
        project = self.project_of("defined", kernels, main, command="coppice_add_kernels({0} {0}.kernels.cc DEFINES A)",
                                  more="add_executable(other main.cc)\ncoppice_add_kernels(other defined.kernels.cc DEFINES B)\n")
        status, said = self.configure(project)
        self.assertNotEqual(status, 0)
        self.assertIn("defined.kernels.cc has other INCLUDES or DEFINES in other than in defined", " ".join(said.split()))

    def test_one_header_of_the_library_is_enough(self):
        project = self.project_of("one", '#include "coppice/kernel.h"\nCOPPICE_KERNEL(fill, coppice::Write<float> x, coppice::Cell2 c, float a) { x[c] = a; }\n',
                                  """#include "coppice/coppice.h"
#include "one.kernels.h"
#include <cstdio>
using namespace coppice;
int main() {
  auto device = Device::cpu(1);
  device->set_message_handler([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  Tree tree(device);
  Node leaf = tree.root().pointer({4, 4}).bitmasked({4, 4});
  Field<float> x = leaf.place<float>("x");
  Field<float> flux = leaf.temporary<float>("flux", {0, 1});
  Program program(device);
  leaf.activate({{5, 5}});
  Slot<float> amount(device);
  amount.set(3);
  program.launch(fill, over(leaf), x, amount);
  const MemoryReport report = tree.wait_memory_report();
  std::printf("%s\\n%s\\n", report.text().c_str(), text_of(memory_of(leaf)).c_str());
  std::printf("%zu nodes, %g %g\\n", report.nodes.size(), wait_read(x, {5, 5}), wait_read(x, {6, 6}));
}
""")
        words = self.build_and_run(project, "one")
        self.assertIn("pointer[4,4]", words)
        self.assertRegex(words, r"1 temporar.* of 4 bytes per cell")
        self.assertEqual(words.splitlines()[-1], "2 nodes, 3 0")

    def test_kernel_files_share_a_header_of_kernels(self):
        project = self.project_of("shared", '#include "steps.h"\nCOPPICE_KERNEL(before, Item i, float* out) { out[i.index] = 1; }\n', """#include <cstdio>
#include "coppice/coppice.h"
#include "more.kernels.h"
#include "shared.kernels.h"
using namespace coppice;
int main() {
  auto device = Device::cpu(1);
  Program program(device);
  const auto buffer = device->reserve(16, 16);
  program.launch(before, range(4), buffer->as<float>());
  program.launch(scale, range(4), Step{.out = buffer->as<float>()});
  program.launch(after, range(4), Step{.out = buffer->as<float>(), .by = 2});
  program.wait();
  float values[4];
  device->wait_copy(values, buffer->data(), 16);
  std::printf("%g\\n", values[3]);
}
""", command="coppice_add_kernels({0} {0}.kernels.cc more.kernels.cc)")
        (project / "steps.h").write_text('#pragma once\n#include "coppice/kernel.h"\nusing namespace coppice;\nstruct Step { float* out; float by = 3; };\n'
                                         "COPPICE_KERNEL(scale, Item i, Step s) { s.out[i.index] *= s.by; }\n")
        (project / "more.kernels.cc").write_text('#include "steps.h"\nCOPPICE_KERNEL(after, Item i, Step s) { s.out[i.index] += s.by; }\n')
        self.assertEqual(self.build_and_run(project, "shared").splitlines()[-1], "5")

    def test_a_larger_project_shares_headers_and_names(self):
        """Several kernel files with kernels of one name, in a library and a program, unoptimised, with a header elsewhere."""
        project = self.folder / "larger"
        (project / "common").mkdir(parents=True)
        (project / "lib").mkdir()
        write = lambda name, text: (project / name).write_text(text)
        write("CMakeLists.txt", """cmake_minimum_required(VERSION 3.25)
project(larger C CXX)
find_package(coppice REQUIRED)
include_directories(common)
add_subdirectory(lib)
add_executable(larger main.cc)
target_link_libraries(larger PRIVATE doubling)
coppice_add_kernels(larger main.kernels.cc INCLUDES common)
coppice_embed_text(larger greetings hello.txt)
""")
        write("hello.txt", "hello")
        write("common/amount.h", "#pragma once\nstruct Amount { float scale; int shift; };\n")
        write("lib/CMakeLists.txt", "add_library(doubling doubling.cc)\ntarget_link_libraries(doubling PUBLIC coppice::coppice)\n"
              "coppice_add_kernels(doubling doubling.kernels.cc)\n")
        write("lib/doubling.kernels.cc", '#include "coppice/kernel.h"\n'
              "COPPICE_KERNEL(apply, coppice::Update<float> x, coppice::Cell1 c) { x[c] *= 2; }\n")
        write("lib/doubling.cc", '#include "coppice/coppice.h"\n#include "doubling.kernels.h"\n'
              "void twice(coppice::Program& p, coppice::Node n, coppice::Field<float> x) { p.launch(apply, over(n), x); }\n")
        write("main.kernels.cc", '#include "amount.h"\n#include "coppice/kernel.h"\n'
              "COPPICE_KERNEL(apply, coppice::Update<float> x, coppice::Cell1 c, Amount a) { x[c] = a.scale * c.coord(0) + a.shift; }\n")
        write("main.cc", """#include <cstdio>
#include "coppice/coppice.h"
#include "greetings.h"
#include "main.kernels.h"
void twice(coppice::Program& p, coppice::Node n, coppice::Field<float> x);
int main() {
  auto device = coppice::Device::cpu(2);
  coppice::Tree tree(device);
  coppice::Node cells = tree.root().dense({8});
  auto x = cells.place<float>("x");
  coppice::Program program(device);
  program.launch(apply, over(cells), x, Amount{0.5f, 3});
  twice(program, cells, x);
  program.wait();
  std::printf("%s %g\\n", coppice::embedded::greetings("hello.txt").data(), wait_read(x, {5}));
}
""")
        self.assertEqual(self.build_and_run(project, "larger", "-DCMAKE_BUILD_TYPE=Debug").splitlines()[-1], "hello 11")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
