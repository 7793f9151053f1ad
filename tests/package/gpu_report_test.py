"""`./dev gpu` (scripts/gpu_report.sh) without a GPU: why it refuses, a rehearsal, and what it makes of programs that misbehave.

    gpu_report_test.py <script> <bin folder> <kernel cache> [what unittest takes]

The rehearsals climb the real ladder (tests/apps/ladder) on the emulated GPU and on the recording fake driver, with a planted
hang, a planted wrong result and a planted sticky error.

Seen to fail: when a step that hung was not ended, when a crash hid the tests behind it, when failures left exit code 0, when
the folder was made before the device was asked for, when a rung was climbed although what it needs had failed, when the
summary was written at the end only, when a child's number was written down after the child had begun, and when only `timeout`
was told to end, not its command (on one core, `taskset -c 0`, every second and every fifth interrupted report left one).
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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
  sparse_unit_tests) tests="Works Fails PassesWithChecks" ;;
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
    PassesWithChecks) [ "${COPPICE_DEBUG:-}" = checks ] || result=" FAILED " ;;
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


# The rungs' names, and what each needs.
def ladder():
    done = subprocess.run([f"{BIN}/coppice-gpu-ladder", "--list"], capture_output=True, text=True, check=True)
    return {words[0]: words[1:] for words in (line.split() for line in done.stdout.splitlines())}


PLANTS = "wrong:barrier,hang:litmus,sticky:activation"


def table_of(folder):
    rows = [line.strip("| ").split(" | ") for line in (folder / "summary.md").read_text().splitlines()
            if line.startswith("| ") and not line.startswith("| step")]
    return {row[0]: row[1] for row in rows if len(row) == 3}


# The processes that write to a file.
def writers_of(file):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "fd" / "1") == str(file):
                found.append(process.name)
        except OSError:
            pass  # it has ended, or is not ours
    return found


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
        for step in ["machine", "scene", "benchmarks", *("tests: " + p for p in programs), *("ladder: " + r for r in ladder())]:
            self.assertRegex(table[step], "^passed", step)
        for tool in ("memcheck", "racecheck", "synccheck"):
            self.assertRegex(table["sanitizer: " + tool], "^not run: no compute-sanitizer")
        self.assertIn("Nothing here ran on a GPU", (self.folder / "summary.md").read_text())
        for line in ("date ", "commit ", "device          simt: 64 threads", "glibc ", "CPU ", "nvidia-smi "):
            self.assertIn("\n" + line, "\n" + (self.folder / "machine.txt").read_text())
        self.assertEqual([row["name"] for row in json.loads((self.folder / "bench.json").read_text())][0], "gpu/copy")
        self.assertIn("gpu/mpm_7M", (self.folder / "bench.txt").read_text())
        tests = (self.folder / "tests.txt").read_text().splitlines()
        self.assertTrue(tests and all(re.search(r" OK \d+\.\d s$", line) for line in tests), tests)
        self.assertFalse((self.folder / "failures.txt").exists())
        again = report("--bin", BIN, "--device", "simt", str(self.folder))
        self.assertEqual(again.returncode, 1)
        self.assertIn("is already there", again.stderr)

    # The summary's lines are what a reader sees first: each plant is named as what it is, and costs only what needs it.
    def expect_planted(self, table, hang, sticky):
        self.assertRegex(table["ladder: barrier"], "^FAILED: wrong result: .*a barrier let a thread through$")
        self.assertRegex(table["ladder: litmus"], hang)
        self.assertRegex(table["ladder: activation"], sticky)
        needs = ladder()
        lost = {"barrier", "litmus", "activation"}
        for rung in needs:
            broken = [need for need in needs[rung] if need in lost]
            if broken:
                self.assertEqual(table["ladder: " + rung], f"not run: needs {broken[0]}")
                lost.add(rung)
            elif rung not in lost:
                self.assertRegex(table["ladder: " + rung], "^passed: ", rung)
        self.assertEqual(lost, {"barrier", "litmus", "activation", "shared", "list", "collection", "mpm"})

    def test_the_ladder_on_the_fake_driver_names_what_is_planted_and_goes_on(self):
        done = report("--bin", BIN, "--device", "fake", "--rung-seconds", "8", str(self.folder), COPPICE_LADDER_PLANT=PLANTS)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.expect_planted(table_of(self.folder), "^FAILED: hangs: no answer within 8 s$",
                            r"^FAILED: error: device cuda: kernel ladder.store_nowhere: .*CUDA_ERROR_700.*, noticed there")
        failures = (self.folder / "failures.txt").read_text().splitlines()
        self.assertEqual([line.split(": ")[0] for line in failures], ["ladder-barrier", "ladder-litmus", "ladder-activation"])
        self.assertIn("with checks: activation: error: device cuda: kernel ladder.store_nowhere: answer 700 (CUDA_ERROR_700);",
                      failures[2])
        code = [f.name for f in (self.folder / "failed" / "ladder-barrier" / "code").iterdir()]
        self.assertTrue(any(re.match(r"ladder\.add_rounds-\w+-sm_90\.ptx$", name) for name in code), code)
        summary = (self.folder / "summary.md").read_text()
        self.assertIn("| atomics | ladder.add_up | 1 | 250.0 | 250.0 to 250.0 | 255 | 0 | 32 | 16 | 100 | - | - |", summary)
        self.assertIn("== kernel ladder.add_up: loaded\nptxas info    : Used 255 registers\n",
                      (self.folder / "profile" / "atomics" / "jit.log").read_text())

    def test_the_ladder_on_the_fake_driver_is_climbed_to_the_top(self):
        done = report("--bin", BIN, "--device", "fake", "--rung-seconds", "60", str(self.folder))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        table = table_of(self.folder)
        for rung in ladder():
            self.assertRegex(table["ladder: " + rung], "^passed: ", rung)
        self.assertFalse((self.folder / "failures.txt").exists())
        # A loop over a leaf has its bytes beside the copy rung's: 64 blocks of 256 cells, read once and written once.
        rows = [line.split(" | ") for line in (self.folder / "summary.md").read_text().splitlines()]
        row, = [r for r in rows if r[:2] == ["| shared", "ladder.reverse_by_shared"]]
        self.assertEqual(row[10], "0.5")  # 2 * 64 KiB in 250 us
        self.assertRegex(row[11], r"^\d+$")
        self.assertEqual(row[12:], ["-", "- |"])  # a card that nothing is predicted for

    def test_the_ladder_on_the_emulated_gpu_names_what_is_planted_and_goes_on(self):
        done = report("--bin", BIN, "--device", "simt", "--only-ladder", "--rung-seconds", "60", str(self.folder),
                      COPPICE_LADDER_PLANT=PLANTS)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        # It sees both by itself: a launch that makes no progress, and a store to memory that is not the device's.
        self.expect_planted(table_of(self.folder), "^FAILED: error: ladder.spin_for_ever: .*no progress",
                            "^FAILED: error: ladder.store_nowhere: .*touches host memory")

    def test_a_report_that_is_cut_off_has_what_went_before(self):
        words = ["bash", SCRIPT, "--bin", BIN, "--device", "fake", "--rung-seconds", "5", str(self.folder)]  # then its child ends
        environment = dict(os.environ, COPPICE_CACHE_DIR=CACHE, COPPICE_LADDER_PLANT="hang:copy")
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            for line in running.stdout:
                if line.startswith("gpu: ladder: memory: "):
                    break
            running.send_signal(signal.SIGKILL)
        table = table_of(self.folder)
        self.assertRegex(table["ladder: driver"], "^passed: Fake GPU")
        self.assertRegex(table["ladder: memory"], "^passed: ")
        self.assertNotIn("ladder: copy", table)

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
        self.assertEqual(table["ladder"], "not run: built without tests")
        self.assertEqual(table["tests: gpu_unit_tests"], "passed: 1 of 2, 1 skipped")
        for program, passed in (("sparse_unit_tests", "1 of 3"), ("sparse_conformance_tests", "2 of 3"),
                                ("sparse_stress_tests", "0 of 1")):
            self.assertEqual(table["tests: " + program], f"FAILED: {passed}; see tests.txt and tests/{program}.txt")
        self.assertEqual(table["benchmarks"], "FAILED: exit code 3, 0 rows; see bench.log")
        self.assertEqual(table["sanitizer: memcheck"], "passed")
        self.assertRegex(table["sanitizer: racecheck"], "^FAILED: it reports errors")
        self.assertRegex(table["sanitizer: synccheck"], "^FAILED: exit code 1")
        outcomes = [re.sub(r" \d+\.\d s$", "", line) for line in (folder / "tests.txt").read_text().splitlines()]
        for name, outcome in (("sparse_conformance_tests.Crashes", "ended by signal 11"), ("sparse_unit_tests.Fails", "FAILED"),
                              ("sparse_conformance_tests.IsBehindIt", "OK"), ("gpu_unit_tests.Skips", "SKIPPED"),
                              ("sparse_stress_tests.Hangs", "killed: it took too long and did not stop, or memory was short")):
            self.assertIn(f"{name.split('.')[0]} Of/{name}/cuda {outcome}", outcomes)
        failures = {line.split(": ")[0]: line for line in (folder / "failures.txt").read_text().splitlines()}
        self.assertEqual(len(failures), 4, failures)
        self.assertIn("passes with checks; memcheck finds nothing; see failed/Of-sparse_unit_tests.PassesWithChecks-cuda",
                      failures["Of/sparse_unit_tests.PassesWithChecks/cuda"])
        self.assertRegex(failures["Of/sparse_stress_tests.Hangs/cuda"], "with checks: .*took too long")
        self.assertIn("--tool memcheck", (folder / "sanitizer" / "memcheck.txt").read_text())
        self.assertIn("out of memory", (folder / "bench.log").read_text())
        self.assertIn("compute capability 9.0", (folder / "machine.txt").read_text())

    # A kernel, a recording of two, and one that nothing is predicted of: in a table of their own, which a card's name chooses.
    def test_measured_stands_beside_predicted_for_a_card_that_is_known(self):
        head = "what\tname\tunit\tunits\tH100\tH200\tbound\n"
        predicted = head + ("launch\tgpu.a\tall: leaf\t9\t99.0\t99.0\tmemory\n"
                            "kernel\tgpu.a\tus\t64\t100.0\t80.5\t-\nkernel\tmpm.b\tus\t8\t9.5\t4.0\t-\n"
                            "row\tgpu/full\tGB/s\t-\t2000\t2500\t-\nrow\tgpu/mpm\tparticle-steps/s\t-\t4.8e+09\t6.4e+09\t-\n")
        profile = ("kernel\tlaunches\ttotal_us\tleast_us\tmost_us\tregisters\tstack_bytes\tshared_bytes\t"
                   "blocks_per_multiprocessor\toccupancy_percent\tbytes\n"
                   "gpu.a\t2\t250.0\t120.0\t130.0\t64\t0\t9600\t8\t50\t0\n"
                   "a recording of 2 launches (gpu.a, mpm.b)\t1\t219.0\t219.0\t219.0\t0\t0\t0\t0\t0\t0\n"
                   "a recording of 2 launches (gpu.a, mpm.c)\t1\t9.0\t9.0\t9.0\t0\t0\t0\t0\t0\t0\n"
                   "mpm.c\t1\t9.0\t9.0\t9.0\t64\t0\t0\t8\t50\t0\n")
        rows = ('[\n  {"name": "gpu/full", "ours": 1500.5, "peer": null, "unit": "GB/s"},\n'
                '  {"name": "gpu/mpm", "ours": 3.6e+09, "peer": null, "unit": "particle-steps/s"},\n'
                '  {"name": "gpu/other", "ours": 1, "peer": null, "unit": "us"}\n]\n')
        scripts, programs = self.root / "scripts", self.root / "bin"
        shutil.copytree(pathlib.Path(SCRIPT).parent / "gpu_report", scripts / "gpu_report")
        shutil.copy(SCRIPT, scripts)
        (scripts / "gpu_report" / "predicted.tsv").write_text(predicted)
        programs.mkdir()
        (programs / "coppice").write_text('#!/bin/bash\n[ "$2" != --device ] || echo "cuda: $CARD, compute capability 9.0"\n')
        (programs / "coppice-bench").write_text(f"""#!/bin/bash
for word; do [ "$last" != --json ] || printf %s '{rows}' >"$word"; last=$word; done
[ -z "$COPPICE_GPU_PROFILE" ] || printf %s '{profile}' >"$COPPICE_GPU_PROFILE/kernels.tsv"
""")
        for program in programs.iterdir():
            program.chmod(0o755)
        for card, a, both, full, mpm in (("NVIDIA H100 80GB HBM3", "100.0 | 1.25", "109.5 | 2.00", "2000 | 0.75", "4.8e+09 | 0.75"),
                                         ("NVIDIA H200", "80.5 | 1.55", "84.5 | 2.59", "2500 | 0.60", "6.4e+09 | 0.56"),
                                         ("NVIDIA H100 PCIe", "- | -", "- | -", None, None), ("NVIDIA GH200 480GB", "- | -", "- | -", None, None)):
            with self.subTest(card=card):
                folder = self.root / card.replace(" ", "-")
                done = subprocess.run(["bash", scripts / "gpu_report.sh", "--bin", programs, folder], capture_output=True, text=True,
                                      env=dict(os.environ, CARD=card, CUDA_HOME="/nowhere"), check=False, timeout=60)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                summary = (folder / "summary.md").read_text()
                self.assertIn(f"| bench | gpu.a | 2 | 125.0 | 120.0 to 130.0 | 64 | 0 | 9600 | 8 | 50 | - | - | {a} |\n", summary)
                self.assertRegex(summary, rf"\| a recording of 2 launches \(gpu.a, mpm.b\) .* \| {re.escape(both)} \|\n")
                self.assertRegex(summary, r"\| a recording of 2 launches \(gpu.a, mpm.c\) .* \| - \| - \|\n")
                self.assertRegex(summary, r"\| mpm.c .* \| - \| - \|\n")
                found = re.findall(r"^\| (gpu/\w+) \| (.*) \|$", summary, re.MULTILINE)
                wanted = [("gpu/full", f"GB/s | 1500.5 | {full}"), ("gpu/mpm", f"particle-steps/s | 3.6e+09 | {mpm}")] if full else []
                self.assertEqual(found, wanted)

    def test_an_interrupted_report_ends_its_children_and_says_where_it_was(self):
        words = ["bash", SCRIPT, "--bin", BIN, "--device", "fake", "--rung-seconds", "200", str(self.folder)]
        environment = dict(os.environ, COPPICE_CACHE_DIR=CACHE, COPPICE_LADDER_PLANT="hang:memory")
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            for line in running.stdout:
                if line.startswith("gpu: ladder: driver: "):
                    break
            while not (self.folder / "ladder" / "memory.txt").exists():
                pass
            running.send_signal(signal.SIGTERM)
            _, errors = running.communicate(timeout=60)  # its child holds no pipe that would keep this waiting
        self.assertEqual(running.returncode, 130)
        end = time.monotonic() + 30
        while (left := writers_of(self.folder / "ladder" / "memory.txt")) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(left, [])
        self.assertEqual(errors, f"gpu: error: interrupted; {self.folder}/summary.md has the steps before\n")
        self.assertIn("\n**Interrupted in the step ladder: memory.**\n", (self.folder / "summary.md").read_text())
        self.assertEqual(table_of(self.folder)["ladder: driver"][:6], "passed")

    def test_mistakes_are_one_line(self):
        for words, text in ((["--bin", "/nowhere"], "no program 'coppice'"), (["--bin", BIN, "--fast"], "unknown option '--fast'"),
                            (["--bin", BIN, "--seconds", "ten"], "--seconds needs a number"),
                            (["--bin", BIN, "--rung-seconds", "0"], "--rung-seconds needs a number"),
                            (["--bin", BIN, "a", "b"], "one report folder")):
            done = report(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, f"^gpu: error: .*{text}.*\n$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[4:]])
