#!/usr/bin/env python3
"""Checks the model of the protocol (docs/remote/protocol.pml) exhaustively with spin, and that it finds planted breaks.

    model_test.py <source folder> <compiler>        exit code 77 where there is no spin (Debian package spin)
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, COMPILER = pathlib.Path(sys.argv[1]), sys.argv[2]
MODEL = SOURCE / "docs/remote/protocol.pml"
# Defines, and how many states there are: None, where an error ends the search.
RUNS = [(["OWN"], 652650), ([], 4967367), (["NO_HOLDS"], None), (["NO_EARLY"], None), (["NO_NUMBERS"], None)]


def check(defines, folder):
    """(errors, states) of one search."""
    flags = ["-D" + d for d in defines]
    subprocess.run(["spin", *flags, "-a", MODEL], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([COMPILER, "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=folder, check=True)
    told = subprocess.run(["./pan", "-m100000"], cwd=folder, check=True, capture_output=True, text=True).stdout
    if "max search depth too small" in told or "out of memory" in told:
        sys.exit(f"model_test: {defines}: the search is not exhaustive:\n{told}")
    return int(re.search(r"errors: (\d+)", told).group(1)), int(re.search(r"(\d+) states, stored", told).group(1))


def main():
    if shutil.which("spin") is None:
        print("skipped: there is no spin (Debian package spin)")
        return 77
    wrong = 0
    for defines, n_states in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            errors, states = check(defines, folder)
        name = " ".join(defines) or "as it is"
        print(f"{name:12} {errors} errors, {states} states", flush=True)
        if n_states is None:
            wrong += errors == 0
        else:
            wrong += errors != 0 or states != n_states
    if wrong:
        print(f"model_test: {wrong} of {len(RUNS)} runs are not as expected: {RUNS}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
