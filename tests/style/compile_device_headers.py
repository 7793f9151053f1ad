#!/usr/bin/env python3
"""Compiles every device-clean header alone, and to bitcode: as kernel files are, or for NVIDIA GPUs.

    compile_device_headers.py ROOT [--nvptx] -- COMPILER FLAGS...

Kernel files themselves are compiled for the CPU and their bitcode is retargeted; a header that compiles for NVPTX, too,
has nothing that only a CPU has: assembly, vector registers, thread-local data, headers of its intrinsics.
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TARGET = ["--target=nvptx64-nvidia-cuda", "-march=sm_75", "--cuda-feature=+ptx70", "-nogpulib", "-nogpuinc",
          "-Wno-unused-command-line-argument"]
# clang has no C++ library for this target: the host's is taken, as it is for kernel files, and told what it asks the
# compiler for. It and Eigen have assembly of the CPU in what no kernel can use; Eigen takes __CUDA_ARCH__ for nvcc.
LIBRARY = ["-D__x86_64__", "-D_GNU_SOURCE", "-U__CUDA_ARCH__", "-DEIGEN_NO_CPUID", "-DEIGEN_OPTIMIZATION_BARRIER(X)=",
           "-D__builtin_ia32_pause()="]


def library_folders(compiler):
    """Where this compiler looks for the host's system headers."""
    words = subprocess.run([compiler, "-x", "c++", os.devnull, "-fsyntax-only", "-v"], capture_output=True, text=True, check=True).stderr
    folders = words[words.index("#include <...>"):words.index("End of search list.")].splitlines()[1:]
    return [flag for folder in folders for flag in ("-isystem", folder.strip())]


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
    if "--nvptx" in arguments[:at]:
        command += TARGET + library_folders(command[0]) + LIBRARY
    script = os.path.join(root, "scripts", "check_style.py")
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
