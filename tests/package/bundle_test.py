"""The portable bundle, as its users meet it: unpacked, and run where there is nothing but glibc, for `./dev` also bash,
`timeout` and `mkdir`. Once more with an older glibc, Debian 11's, which is fetched and kept in the build folder.

    bundle_test.py <build folder> <cmake>

A library that the bundle lacks (libtbb left out), a `./dev` that needs `dirname`, and a loader that may not be executed were
seen to fail here.
"""
import functools
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

BUILD, CMAKE = pathlib.Path(sys.argv[1]), sys.argv[2]
MAX_BYTES = 60_000_000
OLDEST_GLIBC = 28  # 2.28: RHEL 8
OLD_DEBIAN = "http://deb.debian.org/debian"
GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")


def run(command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)


def may_make_roots():
    """Whether this process may mount and change its root: as root, unless a container forbids it."""
    return os.geteuid() == 0 and run(["unshare", "--mount", "true"]).returncode == 0


@functools.cache
def built_archive():
    built = run([CMAKE, "--build", BUILD, "--target", "bundle"])
    assert built.returncode == 0, built.stdout
    archive, = BUILD.glob("coppice-*-linux-x86_64.tar.xz")
    return archive


def old_glibc():
    """The folder of an older glibc's libraries."""
    folder = BUILD / "old_glibc"
    libraries = folder / "lib" / "x86_64-linux-gnu"
    if (libraries / "libc.so.6").exists():
        return libraries
    try:
        with urllib.request.urlopen(f"{OLD_DEBIAN}/dists/bullseye/main/binary-amd64/Packages.xz", timeout=60) as packages:
            text = lzma.decompress(packages.read()).decode()
        path = re.search(r"^Package: libc6\n(?:.+\n)*Filename: (.+)$", text, re.MULTILINE)[1]
        with tempfile.TemporaryDirectory() as temporary:
            package = os.path.join(temporary, "libc6.deb")
            with urllib.request.urlopen(f"{OLD_DEBIAN}/{path}", timeout=60) as source, open(package, "wb") as target:
                shutil.copyfileobj(source, target)
            unpacked = run(["dpkg-deb", "-x", package, folder])
            assert unpacked.returncode == 0, unpacked.stdout
    except OSError as error:
        raise unittest.SkipTest(f"Debian 11's glibc cannot be had: {error}") from error
    return libraries


class BareRoot(unittest.TestCase):
    """A root file system with the bundle and a glibc."""

    @classmethod
    def setUpClass(cls):
        cls.archive, glibc = built_archive(), cls.glibc_folder()
        holder = tempfile.TemporaryDirectory(prefix="coppice-bundle-")
        cls.addClassCleanup(holder.cleanup)
        cls.root = pathlib.Path(holder.name)
        unpacked = run(["tar", "-C", cls.root, "-xf", cls.archive])
        assert unpacked.returncode == 0, unpacked.stdout
        cls.bundle, = cls.root.iterdir()
        (cls.root / "lib64").mkdir(), (cls.root / "tmp").mkdir(), (cls.root / "proc").mkdir()
        shutil.copy(glibc / "ld-linux-x86-64.so.2", cls.root / "lib64")
        libraries = cls.root / "lib" / "x86_64-linux-gnu"
        libraries.mkdir(parents=True)
        for name in GLIBC:
            shutil.copy(glibc / name, libraries)
        (cls.root / "bin").mkdir(), (cls.root / "dev").mkdir()
        (cls.root / "dev" / "null").touch()
        (cls.root / "dev" / "fd").symlink_to("/proc/self/fd")

    @staticmethod
    def glibc_folder():
        return pathlib.Path("/lib/x86_64-linux-gnu")

    def add_tools(self, *names):
        for name in names:
            tool = shutil.which(name)
            shutil.copy(tool, self.root / "bin")
            for library in re.findall(r"=> (/\S+)", run(["ldd", tool]).stdout):
                if os.path.basename(library) not in GLIBC:
                    shutil.copy(library, self.root / "lib" / "x86_64-linux-gnu")
            self.addCleanup((self.root / "bin" / name).unlink)

    def in_bare_root(self, *command):
        """Runs a program of the bundle where only glibc, /proc and /dev/null are."""
        if not may_make_roots():
            self.skipTest("needs to be root, and to be allowed to mount: it runs the bundle in a root file system of its own")
        # A mount namespace of its own: what is mounted goes with the process.
        script = ('mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && root=$1 && shift && '
                  'exec chroot "$root" "$@"')
        inside = pathlib.Path("/") / self.bundle.name
        if command[0] == "dev":  # by `env` it would be found elsewhere
            command = ("/bin/bash", inside / command[0], *command[1:])
        return run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", self.root, inside / command[0],
                    *command[1:]], env={"HOME": "/tmp", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, timeout=300)

    def check_info(self, *command):
        done = self.in_bare_root(*command, "info")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"/{self.bundle.name}/share/coppice/assets", done.stdout)

    def check_scene(self):
        done = self.in_bare_root("bin/coppice", "run", "snow_2d", "--frames", "1", "--set", "grid.resolution=48",
                                 "--set", "output.png=false", "-o", "/tmp/frames")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((self.root / "tmp" / "frames" / "particles_0001.ply").exists(), done.stdout)

    def check_tests(self, program, cases):
        done = self.in_bare_root(f"bin/{program}", f"--gtest_filter={cases}")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\[  PASSED  \] [1-9]")


class OlderSystemTest(BareRoot):
    @staticmethod
    def glibc_folder():
        return old_glibc()

    def test_says_what_it_is(self):
        self.check_info("bin/coppice")

    def test_runs_a_scene(self):
        self.check_scene()

    def test_starts_programs_of_its_own(self):
        self.check_tests("sparse_stress_tests", "KernelStoreStressTest.*")


class BundleTest(BareRoot):
    def test_is_small_enough(self):
        self.assertLessEqual(self.archive.stat().st_size, MAX_BYTES)

    def test_carries_all_it_needs_but_glibc(self):
        for program in (self.bundle / "libexec").iterdir():
            needed = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", program]).stdout)
            for name in needed:
                is_carried = any((self.bundle / "lib" / "coppice" / folder / name).exists() for folder in (".", "runtime"))
                self.assertTrue(is_carried or name in GLIBC or name.startswith("ld-linux"), f"{program.name} needs {name}")

    def test_needs_no_newer_glibc_than_it_says(self):
        needs = r"Name: GLIBC_2\.(\d+)"
        launcher = run(["readelf", "--version-info", self.bundle / "libexec" / "launcher"]).stdout
        self.assertLessEqual(max(map(int, re.findall(needs, launcher))), OLDEST_GLIBC)
        libc = self.bundle / "lib" / "coppice" / "glibc" / "libc.so.6"
        carried = max(map(int, re.findall(needs, run(["readelf", "--version-info", libc]).stdout)))
        for file in [*(self.bundle / "libexec").iterdir(), *(self.bundle / "lib" / "coppice").glob("**/*.so*")]:
            versions = re.findall(needs, run(["readelf", "--version-info", file]).stdout)
            self.assertLessEqual(max(map(int, versions), default=0), carried, file.name)

    def test_names_no_folder_of_the_machine_it_was_built_on(self):
        for file in [*(self.bundle / "libexec").iterdir(), *(self.bundle / "lib" / "coppice").glob("**/*.so*")]:
            for path in re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", run(["readelf", "-d", file]).stdout):
                self.assertTrue(all(part.startswith("$ORIGIN") for part in path.split(":")), f"{file.name}: {path}")

    def test_says_what_it_is_where_there_is_nothing_else(self):
        self.check_info("bin/coppice")

    def test_carries_a_glibc_that_needs_nothing_of_the_systems(self):
        for folder in ("lib", "lib64"):
            (self.root / folder).rename(self.root / f"no_{folder}")
            self.addCleanup((self.root / f"no_{folder}").rename, self.root / folder)
        carried = pathlib.Path("/") / self.bundle.name / "lib" / "coppice"
        self.check_info("lib/coppice/glibc/ld-linux-x86-64.so.2", "--library-path", f"{carried}/glibc:{carried}/runtime",
                        f"/{self.bundle.name}/libexec/coppice")

    def test_runs_a_scene_where_there_is_nothing_else(self):
        self.check_scene()

    def test_says_in_one_line_that_there_is_no_gpu(self):
        self.add_tools("bash")
        done = self.in_bare_root("dev", "gpu")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, r"^coppice: error: device cuda: no NVIDIA driver: [^\n]*\n$")
        self.assertEqual(list(self.bundle.glob("gpu-report*")), [])

    def test_rehearses_a_gpu_report_where_there_is_nothing_else(self):
        self.add_tools("bash", "timeout", "mkdir")
        done = self.in_bare_root("dev", "gpu", "--device", "simt", "--seconds", "1800", "/tmp/report")
        self.assertEqual(done.returncode, 0, done.stdout)
        table = (self.root / "tmp" / "report" / "summary.md").read_text()
        for step in ("ladder: mpm", "scene", "tests: sparse_conformance_tests"):
            self.assertIn(f"| {step} | passed: ", table)
        if not (self.bundle / "bin" / "coppice-bench").exists():
            return
        self.assertIn("| benchmarks | passed: ", table)
        commit = (self.bundle / "share" / "doc" / "coppice" / "commit").read_text()
        self.assertIn(commit, (self.root / "tmp" / "report" / "machine.txt").read_text())
        self.assertIn(commit.strip(), (self.root / "tmp" / "report" / "bench.txt").read_text())

    def test_runs_tests_of_every_kind_where_there_is_nothing_else(self):
        for program, cases in (("gpu_unit_tests", "SimtMachine*"), ("sparse_conformance_tests", "*C01*:*C05*")):
            self.check_tests(program, cases)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
