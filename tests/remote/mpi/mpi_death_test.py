"""What becomes of a job of which a rank is killed, or does not come to the end.

    mpi_death_test.py MPIEXEC PROGRAM
"""
import subprocess
import sys
import unittest

MPIEXEC, PROGRAM = sys.argv[1:3]


def run(*words):
    return subprocess.run([MPIEXEC, *words], capture_output=True, text=True, timeout=120, check=False)


class Death(unittest.TestCase):
    def test_the_launcher_ends_the_job_and_names_the_rank(self):
        result = run("-n", "3", PROGRAM, "kill")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"rank 1 .*signal 9")
        self.assertEqual(sorted(result.stdout.splitlines()), [f"rank {r}: before 3" for r in range(3)])

    # Where the launcher is told to let the others live, they hear of it from the protocol, and go on with each other.
    def test_the_others_hear_that_it_is_lost_where_they_live_on(self):
        version = run("--version").stdout
        if "Open MPI" not in version or "(Open MPI) 5" in version:
            self.skipTest("only Open MPI 4 and older have --enable-recovery")
        result = run("--enable-recovery", "-n", "3", PROGRAM, "kill")
        for rank in (0, 2):
            lines = [line for line in result.stdout.splitlines() if line.startswith(f"rank {rank}: ")]
            self.assertEqual(len(lines), 5, result.stdout + result.stderr)
            for line in lines[1:4]:
                self.assertRegex(line, r": unavailable: worker 1 is lost")
            self.assertEqual(lines[4], f"rank {rank}: after 23")
            self.assertIn(f"worker {rank}: the other ranks did not end their transports within 1 s", result.stderr)

    # Seen to hang without the limit of time.
    def test_a_transport_ends_though_others_take_nothing(self):
        result = run("-n", "3", PROGRAM, "stuck")
        for rank in (1, 2):
            self.assertIn(f"rank {rank}: lost 1\n", result.stdout)
            self.assertIn(f"rank {rank}: abandoned 1\n", result.stdout)
            self.assertIn(f"MPI: rank {rank} does not finalise it", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
