#!/usr/bin/env python3
"""No object of the libraries is destroyed when the process ends, since a user's threads may still call them.

Usage: static_objects_test.py NM LIBRARY...

What registers a destructor for that time calls __cxa_atexit. Seen to fail for a function's static std::map,
which a thread read that was tracing while exit() ran.
"""
import subprocess
import sys

# nvcc registers the kernels of a library so; nobody else calls into that.
ALLOWED = ("cub_primitives.o",)


def registering(nm, library):
    listed = subprocess.run([nm, "-A", library], capture_output=True, text=True, check=True).stdout
    return [line.split(":")[1] for line in listed.splitlines() if line.split()[-1] == "__cxa_atexit"]


def main():
    nm, libraries = sys.argv[1], sys.argv[2:]
    found = [f"{library}: {member}" for library in libraries for member in registering(nm, library)
             if member not in ALLOWED]
    for line in found:
        print(f"{line} has an object with static storage and a destructor; make it one that is never destroyed")
    print(f"{len(libraries)} libraries, {len(found)} violations")
    return 1 if found or not libraries else 0


if __name__ == "__main__":
    sys.exit(main())
