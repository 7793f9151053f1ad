#!/usr/bin/env python3
"""Compiles every device-clean header alone, and to bitcode, as kernel files are.

    compile_device_headers.py ROOT -- COMPILER FLAGS...
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor


def compile_alone(header, command):
    """The compiler's complaint; empty when there is none."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "alone.cc")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#include "{header}"\n')
        result = subprocess.run(command + ["-Werror", source, "-o", os.path.join(folder, "alone.bc")], capture_output=True, text=True)
        return result.stderr if result.returncode != 0 else ""


def main(arguments):
    at = arguments.index("--")
    root, command = arguments[0], arguments[at + 1:]
    script = os.path.join(root, "scripts", "check_includes.py")
    listed = subprocess.run([sys.executable, script, "--device-clean", root], capture_output=True, text=True, check=True)
    headers = listed.stdout.split()
    with ThreadPoolExecutor(max_workers=2) as pool:
        complaints = list(pool.map(lambda header: compile_alone(header, command), headers))
    failed = [header for header, complaint in zip(headers, complaints) if complaint]
    for header, complaint in zip(headers, complaints):
        if complaint:
            print(f"{header} does not compile alone to bitcode:\n{complaint}")
    print(f"device-clean headers: {len(headers)} compiled alone, {len(failed)} failed")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
