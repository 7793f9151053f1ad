"""`./dev gpu` (scripts/gpu_report.sh) without a GPU: why it refuses, a rehearsal, and what it makes of programs that misbehave.

    gpu_report_test.py <script> <bin folder> <kernel cache>

Seen to fail: when a step that hung was not ended, when a crash hid the tests behind it, when failures left exit code 0, and
when the folder was made before the device was asked for.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT, BIN, CACHE = map(os.path.abspath, sys.argv[1:4])

# Stands for the programs of bin/: GoogleTest's words, and each way to fail.
PROGRAM = r"""#!/bin/bash
program=${0##*/} tests= filter='*'
case $program in
  coppice)
    [ "$1 $2" != "info --device" ] || { echo "cuda: Fake Card (TM), compute capability 9.0"; exit 0; }
    echo "version 0"; exit 0 ;;
  coppice-bench) echo "a table that is not whole"; echo "bench: out of memory" >&2; exit 3 ;;
  gpu_unit_tests) tests="Works Skips" ;;
  sparse_unit_tests) tests="Works Fails FailsBehindOthers" ;;
  sparse_conformance_tests) tests="Works Crashes IsBehindIt" ;;
  sparse_stress_tests) tests="Hangs" ;;
esac
for word; do
  case $word in
    --gtest_list_tests) echo "Of/$program."; for t in $tests; do echo "  $t/cuda  # GetParam() = \"cuda\""; done; exit 0 ;;
    --gtest_filter=*) filter=${word#*=} ;;
  esac
done
status=0
for t in $tests; do
  name=Of/$program.$t/cuda
  [[ $filter != Of/* || $filter = "$name" ]] || continue
  echo "[ RUN      ] $name"
  result="      OK"
  case $t in
    Skips) result=" SKIPPED" ;;
    Fails) result=" FAILED " ;;
    FailsBehindOthers) [ "$filter" = "$name" ] || result=" FAILED " ;;
    Crashes) kill -SEGV $$ ;;
    Hangs) trap '' TERM; while :; do sleep 1; done ;;
  esac
  [ "$result" != " FAILED " ] || { status=1; name+=", where GetParam() = \"cuda\""; }
  echo "[${result:0:9} ] $name (7 ms)"
done
exit $status
"""
SANITIZER = r"""#!/bin/bash
echo "$@"
case $2 in memcheck) exit 0 ;; racecheck) exit 86 ;; *) exit 1 ;; esac
"""


def report(*words, **environment):
    values = dict(os.environ, COPPICE_CACHE_DIR=CACHE, CUDA_HOME="/nowhere", **environment)
    return subprocess.run(["bash", SCRIPT, *words], env=values, capture_output=True, text=True, check=False, timeout=280)


def table_of(folder):
    rows = [line.strip("| ").split(" | ") for line in (folder / "summary.md").read_text().splitlines()
            if line.startswith("| ") and not line.startswith("| step")]
    return {step: result for step, result, _ in rows}


class GpuReportTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="coppice-gpu-report-")
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        self.folder = self.root / "report"

    def test_one_line_and_no_folder_where_no_driver_answers(self):
        if subprocess.run([f"{BIN}/coppice", "info", "--device", "cuda"], capture_output=True, check=False).returncode == 0:
            self.skipTest("there is a GPU here")
        done = report("--bin", BIN, str(self.folder))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^coppice: error: device cuda: [^\n]+\n$")
        self.assertEqual(done.stdout, "")
        self.assertFalse(self.folder.exists())

    def test_a_rehearsal_on_the_emulated_gpu_leaves_a_whole_folder(self):
        # On a busy machine it may take its time.
        done = report("--bin", BIN, "--device", "simt", "--seconds", "1800", str(self.folder))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        table = table_of(self.folder)
        programs = ["gpu_unit_tests", "sparse_unit_tests", "sparse_conformance_tests", "sparse_stress_tests"]
        programs = [p for p in programs if os.path.exists(f"{BIN}/{p}")]
        for step in ["machine", "scene", "benchmarks", *("tests: " + p for p in programs)]:
            self.assertRegex(table[step], "^passed", step)
        for tool in ("memcheck", "racecheck", "synccheck"):
            self.assertRegex(table["sanitizer: " + tool], "^not run: no compute-sanitizer")
        self.assertIn("Nothing here ran on a GPU", (self.folder / "summary.md").read_text())
        for line in ("date ", "commit ", "device          simt: 64 threads", "glibc ", "CPU ", "nvidia-smi "):
            self.assertIn("\n" + line, "\n" + (self.folder / "machine.txt").read_text())
        self.assertEqual([row["name"] for row in json.loads((self.folder / "bench.json").read_text())][0], "gpu/copy")
        self.assertIn("gpu/mpm_7M", (self.folder / "bench.txt").read_text())
        tests = (self.folder / "tests.txt").read_text().splitlines()
        self.assertTrue(tests and all(line.endswith(" OK") for line in tests), tests)
        for program in programs:
            self.assertGreater((self.folder / "tests" / f"{program}.xml").stat().st_size, 0)
        again = report("--bin", BIN, "--device", "simt", str(self.folder))
        self.assertEqual(again.returncode, 1)
        self.assertIn("is already there", again.stderr)

    def make_programs(self):
        programs = self.root / "bin"
        programs.mkdir()
        for name in ("coppice", "coppice-bench", "gpu_unit_tests", "sparse_unit_tests", "sparse_conformance_tests",
                     "sparse_stress_tests"):
            (programs / name).write_text(PROGRAM)
            (programs / name).chmod(0o755)
        (self.root / "cuda" / "bin").mkdir(parents=True)
        tool = self.root / "cuda" / "bin" / "compute-sanitizer"
        tool.write_text(SANITIZER)
        tool.chmod(0o755)
        return programs

    def test_what_fails_crashes_or_hangs_does_not_stop_the_rest(self):
        programs = self.make_programs()
        done = subprocess.run(["bash", SCRIPT, "--bin", programs, "--seconds", "40"], capture_output=True, text=True, cwd=self.root,
                              env=dict(os.environ, CUDA_HOME=str(self.root / "cuda")), check=False, timeout=280)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        folder, = self.root.glob("gpu-report-20*-Fake-Card*")
        table = table_of(folder)
        self.assertEqual(table["tests: gpu_unit_tests"], "passed: 1 of 2, 1 skipped")
        self.assertEqual(table["tests: sparse_unit_tests"],
                         "FAILED: 1 of 3, 1 passed alone only; see tests/sparse_unit_tests.txt")
        self.assertEqual(table["tests: sparse_conformance_tests"],
                         "FAILED: 1 of 3, ended by signal 11, 1 passed alone only; see tests/sparse_conformance_tests.txt")
        self.assertRegex(table["tests: sparse_stress_tests"], "^FAILED: 0 of 1, killed: it took too long")
        self.assertEqual(table["benchmarks"], "FAILED: exit code 3, 0 rows; see bench.log")
        self.assertEqual(table["sanitizer: memcheck"], "passed")
        self.assertRegex(table["sanitizer: racecheck"], "^FAILED: it reports errors")
        self.assertRegex(table["sanitizer: synccheck"], "^FAILED: exit code 1")
        failures = (folder / "failures.txt").read_text().splitlines()
        self.assertEqual(len(failures), 5, failures)
        self.assertIn("Of/sparse_conformance_tests.Crashes/cuda (ended by signal 11 alone)", failures)
        self.assertIn("Of/sparse_unit_tests.FailsBehindOthers/cuda (FAILED behind others, passed alone)", failures)
        self.assertIn("sparse_unit_tests Of/sparse_unit_tests.FailsBehindOthers/cuda passed alone",
                      (folder / "tests.txt").read_text().splitlines())
        self.assertIn("--tool memcheck", (folder / "sanitizer" / "memcheck.txt").read_text())
        self.assertIn("out of memory", (folder / "bench.log").read_text())
        self.assertIn("compute capability 9.0", (folder / "machine.txt").read_text())

    def test_mistakes_are_one_line(self):
        for words, text in ((["--bin", "/nowhere"], "no program 'coppice'"), (["--bin", BIN, "--fast"], "unknown option '--fast'"),
                            (["--bin", BIN, "--seconds", "ten"], "--seconds needs a number"),
                            (["--bin", BIN, "a", "b"], "one report folder")):
            done = report(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, f"^gpu: error: .*{text}.*\n$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
