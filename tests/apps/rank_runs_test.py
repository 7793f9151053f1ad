"""`coppice run` over ranks: the same files as one process writes, whatever happens on the way.

    rank_runs_test.py COPPICE [unittest's arguments]

COPPICE_KILLS says how often a rank is killed, 4 times unless it is set.
"""
import contextlib
import csv
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COPPICE = sys.argv.pop(1)
KILLS = int(os.environ.get("COPPICE_KILLS", "4"))
FRAMES = 6
SCENE = """
dim = 2
[grid]
resolution = 48
[time]
frames = 6
frame_dt_s = 0.02
[output]
png = false
[[emitter]]
shape = "box"
center = [0.3, 0.6]
half_size = [0.15, 0.15]
velocity = [2, -1]
material = "jelly"
[[emitter]]
shape = "box"
center = [0.5, 0.15]
half_size = [0.4, 0.1]
material = "water"
[[collider]]
shape = "sphere"
center = [0.7, 0.4]
radius = 0.1
"""

# All kinds of files with all that they may have; pictures show a value that each rank computes of its particles.
ALL_FILES = """
[output]
width = 160
height = 100
color = "von_mises"
vtu = true
vti = true
vdb = true
[output.fields]
velocity = true
pressure = true
von_mises = true
stress = true
strain = true
"""
SCENE_2D = SCENE.replace("frames = 6", "frames = 3").replace("[output]\npng = false\n", ALL_FILES)
SCENE_3D = ALL_FILES + """
[domain]
max = [1, 0.5, 0.5]
[grid]
resolution = 24
[time]
frames = 3
frame_dt_s = 0.03
[[emitter]]
shape = "box"
center = [0.2, 0.25, 0.25]
half_size = [0.12, 0.1, 0.15]
velocity = [4, 0.5, 0]
material = "jelly"
[[emitter]]
shape = "box"
center = [0.5, 0.08, 0.25]
half_size = [0.4, 0.05, 0.2]
material = "water"
"""
# Water comes in and goes out, so that ids are missing; all of it is gone in the end but what has just come in.
SCENE_FLOW = ALL_FILES + """
dim = 2
gravity = [0, 0]
[domain]
max = [2, 1]
[grid]
resolution = 32
[time]
frames = 9
frame_dt_s = 0.06
[[emitter]]
shape = "box"
center = [0.25, 0.5]
half_size = [0.125, 0.2]
velocity = [6.0, 0.0]
material = "water"
[emitter.inflow]
from_s = 0.01
until_s = 0.1
[[outflow]]
center = [1.4, 0.5]
half_size = [0.4, 0.6]
"""


class RankRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.scene = os.path.join(cls.folder.name, "scene.toml")
        pathlib.Path(cls.scene).write_text(SCENE)
        cls.reference = os.path.join(cls.folder.name, "reference")
        done = cls.run_program("-o", cls.reference)
        assert done.returncode == 0, done.stderr

    def write_scene(self, text):
        # Keys of no table come first.
        head = "".join(line for line in text.splitlines(True) if re.match(r"(dim|gravity) =", line))
        rest = "".join(line for line in text.splitlines(True) if not re.match(r"(dim|gravity) =", line))
        path = self.output() + ".toml"
        pathlib.Path(path).write_text(head + rest)
        return path

    def run_scene(self, scene, *options, **more):
        return subprocess.run([COPPICE, "run", scene, "--device", "cpu", *options], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=240, **more)

    # OpenVDB gives each of its files another name of 36 letters.
    def bytes_of(self, path):
        content = path.read_bytes()
        return content[:21] + content[57:] if path.suffix == ".vdb" else content

    def check_same_files(self, folder, expected):
        names = sorted(path.name for path in pathlib.Path(expected).iterdir())
        self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), names)
        for name in names:
            if name not in ("stats.csv", "state.checkpoint"):
                self.assertEqual(self.bytes_of(pathlib.Path(folder, name)),
                                 self.bytes_of(pathlib.Path(expected, name)), name)
        return names

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def command(cls, *options):
        return [COPPICE, "run", cls.scene, "--device", "cpu", *options]

    @classmethod
    def run_program(cls, *options, **more):
        return subprocess.run(cls.command(*options), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=240, **more)

    def output(self):
        return os.path.join(self.folder.name, self.id().rsplit(".", 1)[-1])

    def check_success(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)

    def particles(self, folder, frame):
        return pathlib.Path(folder, f"particles_{frame:04}.ply").read_bytes()

    def rows(self, folder):
        with open(os.path.join(folder, "stats.csv"), newline="") as file:
            return list(csv.DictReader(file))

    # Particles to the bit; sums, which ranks add up in another order, to rounding.
    def check_equal(self, folder):
        for frame in range(FRAMES + 1):
            self.assertEqual(self.particles(folder, frame), self.particles(self.reference, frame), f"frame {frame}")
        ours, expected = self.rows(folder), self.rows(self.reference)
        self.assertEqual(len(ours), len(expected))
        for ours, expected in zip(ours, expected):
            for name, value in expected.items():
                if name != "milliseconds":
                    size = max(abs(float(value)), 100)
                    self.assertAlmostEqual(float(ours[name]), float(value), delta=1e-9 * size, msg=name)
        self.assertFalse(list(pathlib.Path(folder).glob("*.tmp*")))

    def test_give_the_files_of_one(self):
        for ranks in 2, 3:
            done = self.run_program("-o", self.output(), "--overwrite", "--ranks", str(ranks))
            self.check_success(done)
            self.assertIn(f", {ranks} ranks", done.stderr)
            self.assertEqual(done.stderr.count("particles, 48 cells"), 1, "the first rank alone speaks")
            self.check_equal(self.output())

    def test_go_on_from_a_checkpoint_with_other_ranks(self):
        folder = self.output()
        self.check_success(self.run_program("-o", folder, "--checkpoint", "2", "--frames", "3", "--ranks", "3"))
        state = pathlib.Path(folder, "state.checkpoint").read_bytes()
        self.check_success(self.run_program("-o", folder, "--resume", "--frames", "4", "--checkpoint", "1"))
        self.check_success(self.run_program("-o", folder, "--resume", "--ranks", "2"))
        self.check_equal(folder)
        alone = folder + "_alone"
        self.check_success(self.run_program("-o", alone, "--checkpoint", "3", "--frames", "3"))
        self.assertEqual(pathlib.Path(alone, "state.checkpoint").read_bytes(), state)

    def check_all_files(self, text, kinds):
        scene, one = self.write_scene(text), self.output() + "_one"
        self.check_success(self.run_scene(scene, "-o", one))
        for ranks in "2", "3", "4":
            folder = f"{self.output()}_{ranks}"
            self.check_success(self.run_scene(scene, "-o", folder, "--ranks", ranks))
            names = self.check_same_files(folder, one)
            for kind in kinds:
                self.assertTrue([name for name in names if name.endswith(kind)], kind)
        return scene, one

    def test_all_files_in_2d_are_those_of_one(self):
        self.check_all_files(SCENE_2D, [".ply", ".vtu", ".vti"])

    def test_all_files_in_3d_are_those_of_one(self):
        scene, one = self.check_all_files(SCENE_3D, [".ply", ".vtu", ".vti"])
        parts = self.output() + "_parts"
        self.check_success(self.run_scene(scene, "-o", parts, "--ranks", "2", "--frames", "1", "--checkpoint", "1"))
        self.check_success(self.run_scene(scene, "-o", parts, "--ranks", "3", "--resume"))
        os.remove(os.path.join(parts, "state.checkpoint"))
        self.check_same_files(parts, one)
        # Without pictures the first rank writes the volume, too.
        more = ["--set", "output.png=false", "--set", "output.particles=false"]
        self.check_success(self.run_scene(scene, "-o", one, "--overwrite", *more))
        self.check_success(self.run_scene(scene, "-o", parts, "--overwrite", "--ranks", "2", *more))
        self.check_same_files(parts, one)

    def test_all_files_are_those_of_one_where_particles_leave(self):
        scene, one = self.check_all_files(SCENE_FLOW, [".ply", ".vtu", ".vti"])
        counts = [int(row["particles"]) for row in self.rows(one)]
        self.assertEqual(counts[-1], 0, counts)
        self.assertGreater(max(counts), counts[0], "some have come in")

    # A few particles in a corner, which is one block's, beside ranks that have none.
    def test_ranks_without_particles_write_their_share(self):
        few = SCENE_2D[:SCENE_2D.index("[[emitter]]")] + """
[[emitter]]
shape = "box"
center = [0.05, 0.05]
half_size = [0.02, 0.02]
material = "jelly"
"""
        self.check_all_files(few, [".ply", ".vtu", ".vti"])

    # The second rank is started by another command, `prefix`.
    def run_beside(self, folder, scene, prefix, *options):
        self.check_success(self.run_scene(scene, "--frames", "0"))  # fills the kernel cache
        program = [COPPICE, "run", scene, "-o", folder, "--device", "cpu", *options]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run(["mpiexec", "--oversubscribe", "-n", "1", *program, ":", "-n", "1", *prefix, *program],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, env=environment)

    def check_one_error(self, done, line):
        self.assertEqual(done.returncode, 1, done.stderr)
        errors = [text for text in done.stderr.splitlines() if "coppice: error: " in text]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(line, errors[0])

    def test_a_rank_that_cannot_write_is_named_and_ends_all(self):
        scene = self.write_scene(SCENE_3D)
        folder = self.output()
        limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 200; exec \"$@\"", "sh"]
        line = f"rank 1: {folder}/particles_0000.ply cannot be written: File too large"
        self.check_one_error(self.run_beside(folder, scene, limited), line)
        self.assertEqual(sorted(os.listdir(folder)), ["grid.pvd", "particles.pvd", "stats.csv"])
        self.assertFalse(self.rows(folder))
        # What an earlier run has left comes back.
        self.check_success(self.run_scene(scene, "-o", folder, "--overwrite", "--frames", "1"))
        before = sorted(os.listdir(folder))
        self.check_one_error(self.run_beside(folder, scene, limited, "--overwrite"), line)
        self.assertEqual(sorted(os.listdir(folder)), before)
        self.assertEqual(len(self.rows(folder)), 2)

    def test_a_folder_that_another_rank_does_not_have_is_one_error(self):
        folder = self.output()
        os.mkdir(folder)
        hide = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs none '{folder}' && exec \"$@\"", "sh"]
        if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine lets nobody mount a file system")
        done = self.run_beside(folder, self.write_scene(SCENE_3D), hide)
        self.check_one_error(done, f"rank 1: {folder}/particles_0000.ply cannot be opened to write a part of it: "
                                   "No such file or directory")
        self.assertFalse([name for name in os.listdir(folder) if "tmp" in name])

    # A file system of so many KiB that all ranks share, copied out before it vanishes.
    def test_a_full_disk_leaves_whole_frames(self):
        scene, one = self.write_scene(SCENE_3D), self.output() + "_one"
        self.check_success(self.run_scene(scene, "-o", one))
        disk = self.output() + "_disk"
        os.mkdir(disk)
        if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", disk], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("this machine lets nobody mount a file system")
        whole = sum(path.stat().st_size for path in pathlib.Path(one).iterdir()) // 1024
        rows = []
        for kib in whole // 12, whole // 6, whole // 3, whole * 2 // 3, whole * 9 // 10:
            copy = f"{self.output()}_{kib}"
            os.mkdir(copy)
            script = (f"mount -t tmpfs -o size={kib}k none '{disk}' && \"$@\"; result=$?; "
                      f"cp -r '{disk}'/. '{copy}'; exit $result")
            done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", COPPICE, "run", scene, "--device", "cpu",
                                   "-o", disk, "--ranks", "3"], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=240, check=False)
            self.check_one_error(done, "No space left on device")
            self.assertFalse(list(pathlib.Path(copy).glob("*.tmp*")))
            rows.append(len(self.rows(copy)) if os.path.exists(os.path.join(copy, "stats.csv")) else 0)
            for path in pathlib.Path(one).glob("*_[0-9]*"):
                if int(re.search(r"_(\d+)", path.name)[1]) < rows[-1]:
                    self.assertEqual(self.bytes_of(pathlib.Path(copy, path.name)), self.bytes_of(path), path.name)
                elif not re.search(r"stats\.csv|\.pvd", done.stderr):  # a frame whose files are whole, but for its row
                    self.assertFalse(os.path.exists(os.path.join(copy, path.name)), path.name)
        self.assertEqual(rows[0], 0)
        self.assertEqual(rows, sorted(rows))
        self.assertGreater(rows[-1], 1)

    # Nothing that a message says is lost when the folder has frames beyond the checkpoint.
    def test_frames_behind_the_checkpoint_are_made_again(self):
        folder = self.output()
        self.check_success(self.run_program("-o", folder, "--checkpoint", "2", "--frames", "2"))
        state = pathlib.Path(folder, "state.checkpoint").read_bytes()
        self.check_success(self.run_program("-o", folder, "--resume"))
        self.assertEqual(len(self.rows(folder)), FRAMES + 1)
        self.assertEqual(pathlib.Path(folder, "state.checkpoint").read_bytes(), state)
        self.check_success(self.run_program("-o", folder, "--resume"))
        self.check_equal(folder)

    def start(self, *options):
        return subprocess.Popen(self.command(*options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def wait_for_frame(self, folder, frame):
        path = pathlib.Path(folder, f"particles_{frame:04}.ply")
        end = time.monotonic() + 120
        while not path.exists():
            self.assertLess(time.monotonic(), end, f"frame {frame} has not come")
            time.sleep(0.005)

    def test_interrupted_ones_leave_a_checkpoint(self):
        folder = self.output()
        started = self.start("-o", folder, "--checkpoint", "1000", "--ranks", "2", "--frames", "1000")
        self.wait_for_frame(folder, 2)
        started.send_signal(signal.SIGINT)
        text, _ = started.communicate(timeout=120)
        self.assertEqual(started.returncode, 130, text)
        self.assertIn("interrupted after frame", text)
        last = int(re.search(r"interrupted after frame (\d+)", text)[1])
        self.assertEqual(len(self.rows(folder)), last + 1)
        self.check_success(self.run_program("-o", folder, "--resume", "--frames", str(last + 1)))
        self.assertEqual(len(self.rows(folder)), last + 2)

    # A signal that comes while the launcher starts its ranks is heard all the same.
    def test_interrupted_at_once_they_end(self):
        chance = random.Random(3)
        for turn in range(8):
            folder = f"{self.output()}_{turn}"
            started = self.start("-o", folder, "--checkpoint", "5", "--frames", "1000", "--ranks", "2")
            time.sleep(chance.uniform(0.01, 0.5))
            started.send_signal(signal.SIGINT)
            text, _ = started.communicate(timeout=60)
            # Before the program's first line the system ends it.
            self.assertIn(started.returncode, (130, -signal.SIGINT), text)
            self.assertNotIn("Forwarding", text)
            if os.path.exists(os.path.join(folder, "stats.csv")):
                self.check_success(self.run_program("-o", folder, "--resume", "--frames", str(len(self.rows(folder)))))

    # Batch systems send SIGUSR1; one process and several end in the same way, also behind frame 0.
    def test_told_to_end_they_leave_a_checkpoint_at_any_frame(self):
        for ranks in [], ["--ranks", "2"]:
            folder = f"{self.output()}_{len(ranks)}"
            started = self.start("-o", folder, "--checkpoint", "1000", "--frames", "1000", *ranks)
            self.wait_for_frame(folder, 0)
            started.send_signal(signal.SIGUSR1)
            text, _ = started.communicate(timeout=120)
            self.assertEqual(started.returncode, 130, text)
            rows = len(self.rows(folder))
            self.check_success(self.run_program("-o", folder, "--resume", "--frames", str(rows)))
            self.assertEqual(len(self.rows(folder)), rows + 1)

    def test_series_go_on(self):
        files = ["--set", "output.vtu=true", "--set", "output.vti=true"]
        whole, parts = self.output() + "_whole", self.output() + "_parts"
        self.check_success(self.run_program("-o", whole, *files))
        self.check_success(self.run_program("-o", parts, *files, "--checkpoint", "2", "--frames", "3"))
        # Entries behind the checkpoint are there, and none is double.
        self.check_success(self.run_program("-o", parts, *files, "--resume", "--frames", "4"))
        self.check_success(self.run_program("-o", parts, *files, "--resume", "--ranks", "2"))
        for name in "particles.pvd", "grid.pvd", "grid_0006.vti", "particles_0006.vtu":
            self.assertEqual(pathlib.Path(parts, name).read_bytes(), pathlib.Path(whole, name).read_bytes(), name)
        self.assertEqual([row["frame"] for row in self.rows(parts)], [str(i) for i in range(FRAMES + 1)])

    def ranks_of(self, job):
        # The ranks are children of mpiexec, which is the program's.
        found = []
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rsplit(")", 1)
                words = pathlib.Path(status.parent, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            parent = int(fields[1].split()[1])
            found.append((int(status.parent.name), parent, words[0].decode()))
        launchers = [pid for pid, parent, _ in found if parent == job.pid]
        return [pid for pid, parent, _ in found if parent in launchers]

    def test_killed_ones_lose_the_running_frame_at_most(self):
        chance = random.Random(1)
        for turn in range(KILLS):
            folder = f"{self.output()}_{turn}"
            started = self.start("-o", folder, "--checkpoint", "1", "--ranks", "3")
            self.wait_for_frame(folder, chance.randrange(0, FRAMES - 1))
            time.sleep(chance.uniform(0, 0.1))
            ranks = self.ranks_of(started)
            if started.poll() is None and ranks:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(chance.choice(ranks), signal.SIGKILL)
            text, _ = started.communicate(timeout=60)
            if started.returncode != 0:
                self.assertRegex(text, r"process rank \d.*Killed")
            rows = len(self.rows(folder))
            for frame in range(rows):
                self.assertEqual(self.particles(folder, frame), self.particles(self.reference, frame))
            if os.path.exists(os.path.join(folder, "state.checkpoint")):
                done = self.run_program("-o", folder, "--resume", "--ranks", str(chance.randrange(1, 4)))
                self.check_success(done)
                # The checkpoint of a frame is written behind its row.
                behind = int((re.search(r"going on behind frame (\d+)", done.stderr) or [0, FRAMES])[1])
                self.assertGreaterEqual(behind, rows - 2)
            else:
                self.assertLessEqual(rows, 2)
                self.check_success(self.run_program("-o", folder, "--overwrite"))
            self.check_equal(folder)

    def check_refused(self, done, line):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(line, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_bad_input_is_one_line(self):
        bad = os.path.join(self.folder.name, "bad.toml")
        pathlib.Path(bad).write_text(SCENE.replace("resolution", "resolutoin"))
        for _ in range(5):
            done = subprocess.run([COPPICE, "run", bad, "--ranks", "4"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120)
            self.check_refused(done, "resolutoin")
        self.check_refused(self.run_program("-o", self.reference, "--ranks", "2"), "--overwrite replaces them")
        self.check_refused(self.run_program("-o", self.reference, "--resume"), "there is no checkpoint")
        self.check_refused(self.run_program("--resume", "--overwrite"), "--overwrite excludes --resume")
        self.check_refused(self.run_program("--ranks", "0"), "--ranks")
        done = self.run_program("-o", self.output(), "--ranks", "2", env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot start mpiexec", done.stderr)

    def test_damaged_and_other_checkpoints_are_refused(self):
        folder = self.output()
        self.check_success(self.run_program("-o", folder, "--checkpoint", "1", "--frames", "1"))
        path = pathlib.Path(folder, "state.checkpoint")
        whole = path.read_bytes()
        before = sorted(p.name for p in pathlib.Path(folder).iterdir())
        chance = random.Random(2)
        for _ in range(20):
            damaged = bytearray(whole)
            at = chance.randrange(len(whole))
            if chance.random() < 0.5:
                damaged = damaged[:at]
            else:
                damaged[at] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            done = self.run_program("-o", folder, "--resume")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, "damaged|no checkpoint|another|is of coppice")
        path.write_bytes(whole)
        self.check_refused(self.run_program("-o", folder, "--resume", "--set", "grid.resolution=32"), "another scene")
        self.assertEqual(sorted(p.name for p in pathlib.Path(folder).iterdir()), before)
        self.assertEqual(len(self.rows(folder)), 2)


if __name__ == "__main__":
    unittest.main()
