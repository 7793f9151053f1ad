"""Reads NVIDIA's machine code: what a kernel does that no expert would have written.

The text is `nvdisasm -c`'s, of one kernel. nvdisasm comes with a CUDA toolkit, or with NVIDIA's wheel on PyPI.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

WHEEL = "nvidia-cuda-nvdisasm"

# labels: names that others may jump to; operation: "LDG.E.64"; operands: text
Instruction = collections.namedtuple("Instruction", "labels predicate operation operands")

LINE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_\w+):")
# Reads and writes through an address of which only the GPU finds out what memory it is of, and the question itself.
GENERIC = {"LD", "ST", "ATOM", "QSPC"}
LOCAL = {"LDL", "STL"}  # the thread's stack
STORES = {"ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG"}
BRANCHES = {"BRA", "BRX", "JMP", "CALL", "RET", "EXIT", "BREAK", "BAR", "MEMBAR"}


def find_nvdisasm(ptxas, build):
    """Returns nvdisasm's path, and the reason where there is none. A wheel is installed into a folder of the build."""
    names = [os.environ.get("COPPICE_NVDISASM"), str(pathlib.Path(ptxas).with_name("nvdisasm")), shutil.which("nvdisasm")]
    for name in names:
        if name and os.access(name, os.X_OK):
            return name, ""
    folder = pathlib.Path(build) / "nvdisasm"
    found = sorted(folder.rglob("bin/nvdisasm"))
    if not found:
        why = fetch_wheel(folder)
        if why:
            return None, f"no nvdisasm beside ptxas, on PATH or in $COPPICE_NVDISASM, and {why}"
        found = sorted(folder.rglob("bin/nvdisasm"))
    if not found:
        return None, f"the wheel {WHEEL} in {folder} has no bin/nvdisasm"
    found[0].chmod(0o755)
    return str(found[0]), ""


def fetch_wheel(folder):
    """Unpacks NVIDIA's wheel into a folder; returns what went wrong."""
    pip = folder / "venv" / "bin" / "pip"
    for command in [[sys.executable, "-m", "venv", folder / "venv"],
                    [pip, "download", "--quiet", "--timeout", "20", "--retries", "1", "--no-deps", "--dest", folder, WHEEL]]:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return str(error)
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()[-1]
            return f"{' '.join(map(str, command[:3]))} failed: {last}"
    shutil.unpack_archive(sorted(folder.glob("*.whl"))[-1], folder, "zip")
    return ""


def parse(text):
    instructions, labels = [], []
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            labels.append(label[1])
            continue
        found = LINE.match(line)
        if found:
            instructions.append(Instruction(tuple(labels), found[1] or "", found[2], found[3]))
            labels = []
    return instructions


def disassemble(nvdisasm, cubin):
    done = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"nvdisasm: {(done.stderr or done.stdout).strip()}")
    code = parse(done.stdout)
    if not code:
        raise RuntimeError("nvdisasm printed no instruction")
    return code


def base(instruction):
    return instruction.operation.split(".")[0]


def with_opcodes(code, opcodes):
    return sorted({i.operation for i in code if base(i) in opcodes})


def width(operation):
    """Registers that an access moves."""
    for part in operation.split("."):
        if part in ("64", "128"):
            return int(part) // 32
    return 1


def registers(text):
    return {int(number) for number in re.findall(r"\bR(\d+)\b", text)}


def wide_registers(operands):
    """What an operand like R2.64 reads."""
    return {int(n) + 1 for n in re.findall(r"\bR(\d+)\.64\b", operands)}


def longest_load_run(code):
    """Returns how many loads from global memory are under way at most before anything waits for one of them, or stores."""
    longest, pending, count = 0, set(), 0
    for i in code:
        opcode = base(i)
        if i.labels or opcode in STORES or opcode in BRANCHES:
            pending, count = set(), 0
        if opcode in BRANCHES or opcode in STORES:
            continue
        target, _, rest = i.operands.partition(",")
        read = registers(rest) | wide_registers(rest)
        if read & pending:
            pending, count = set(), 0
        if opcode != "LDG":
            continue
        first = re.match(r"R(\d+)", target)
        if not first:
            continue
        count += 1
        pending |= {int(first[1]) + k for k in range(width(i.operation))}
        longest = max(longest, count)
    return longest
