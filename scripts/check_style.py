#!/usr/bin/env python3
"""Checks the include rule: core <- gpu <- executor <- sparse <- apps, each includes only what stands to its left.

    scripts/check_style.py [ROOT]       prints `file:line: what is wrong`, one a line; exit code 1 when there is any
    scripts/check_style.py --device-clean [ROOT]    lists the device-clean headers instead

Also checked: who may include LLVM, CUDA, OpenGL, TBB, MPI, Thrust and OpenVDB; that device-clean headers and kernel files
include nothing of the host; that every header has `#pragma once`, every source includes its own header first (which
shows that the header compiles alone), every quoted path exists, and no headers include each other in a circle;
that some parts do not know of others (KEPT_APART), that coppice/ holds includes only, and that comments end in time (WIDTH)
and do not open with a word that makes a fragment of them (OPENING). A file that is larger than MOST_LINES says why in its
head comment, "The file is long because ...", and a function of more than MOST_FUNCTION lines in the comment above it, "The
function is long because ...".
A header is device-clean when its head comment says "Device-clean".
"""
import os
import re
import sys

LAYERS = ["core", "gpu", "executor", "sparse", "apps"]
# Folders and files that stand outside the chain: what layer they count as.
OUTSIDE = {"remote": "executor", "coppice": "sparse", "coppice/output.h": "apps", "coppice/viewer.h": "apps", "coppice/solver.h": "apps", "benchmarks": "apps"}
FOLDERS = LAYERS + ["coppice", "benchmarks", "tests"]

# System headers that only some files may include: (what, pattern of the include, pattern of the files, in words).
RESTRICTED = [
    ("LLVM", r"(llvm|llvm-c|clang|clang-c)/", r"gpu/jit/([^/]+\.cc|(llvm_module|marked_functions)\.h)$", "gpu/jit/*.cc, llvm_module.h and marked_functions.h there,"),
    ("CUDA", r"(cuda|cublas|cufft|curand|cusparse|cupti|nvrtc|nvJitLink|nvml|nvtx)\w*(\.h|/)", r"gpu/cuda/", "gpu/cuda/"),
    ("OpenGL", r"(EGL|GL|GLES\d?|KHR)/", r"apps/(render|viewer)/", "apps/render/ and apps/viewer/"),
    ("window and GUI", r"(GLFW/|imgui|X11/)", r"apps/viewer/", "apps/viewer/"),
    ("TBB", r"(tbb|oneapi)/", r"(gpu|executor|apps|benchmarks/peers)/", "gpu/, executor/, apps/ and benchmarks/peers/"),
    ("MPI", r"mpi(\.h|cxx\.h|/)", r"(executor/)?remote/mpi/|benchmarks/remote_ranks", "executor/remote/mpi/ and benchmarks/remote_ranks*"),
    ("Thrust and CUB", r"(thrust|cub)/", r"gpu/", "gpu/"),
    ("OpenVDB", r"(openvdb|nanovdb)/", r"((apps/output|sparse)/vdb|benchmarks/peers)/", "apps/output/vdb/ and benchmarks/peers/"),
]
DEVICE_SYSTEM = {"cstdint", "cstddef", "cmath", "type_traits", "tuple", "utility", "limits", "stdint.h", "stddef.h"}
# Besides, device code may use Eigen, and a kernel file the C math and memory functions (gpu/jit/library_symbols.h).
KERNEL_SYSTEM = re.compile(r"(math\.h|string\.h|cstring)$")
# Device-clean without saying so: what kernel files include first.
DEVICE_PUBLIC = {"coppice/kernel.h"}
# Folders and files that must be device-clean, so that a lost marker is noticed.
DEVICE_REQUIRED = re.compile(r"sparse/device/.*\.h$|gpu/(launch_block|device_intrinsics)\.h$")

# What the headers of one part may not include, in words of their own: (pattern of the files, pattern of the path, why).
KEPT_APART = [
    (r"gpu/(device|stream|in_stream|buffer|host_access|launch_uses|codegen_options)\.h$", r"gpu/jit/",
     "who uses a device need not know how kernels are compiled"),
    (r"apps/scene/", r"apps/mpm/", "a scene is read without the solver that simulates it"),
]
# A comment's last column. Tables and listings in comments, which have runs of blanks, may be wider.
WIDTH = 110
PROSE = re.compile(r"^\s*// (?!.*\S {3,}\S)\S")
# A comment has a subject and a verb, and reads without the line that it stands on; one that opens so seldom does.
OPENING = re.compile(r"^\s*// (Of|What|Whose|Those|That|Which|Whether)\b")
COMMENT = re.compile(r"^\s*//\s*\S")
# More lines than these need a reason (CONTRIBUTING.md).
MOST_LINES = {".h": 300, ".cc": 700}
MOST_FUNCTION = 80
REASON = re.compile(r"\bis long because\b")
# Folders whose comments and sizes are checked, too.
WRITTEN_FOLDERS = ["examples", "fuzz"]

# Trees and launches work without the executor; these files make them its operations, and functions of it, or
# use its planner.
OPERATIONS = re.compile(r"sparse/(cell_memory|operations|device_operations|function|function_events|function_memory|function_text|temporary_places|tracer)\.(h|cc)$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Tree:
    """The sources below a root: their lines, their includes, and what follows from their names."""

    def __init__(self, root):
        self.root = root
        self.lines = {}  # path -> lines
        self.written = {}  # the same of files that keep to no rule of includes
        self.generated = {}  # header name -> path of what it is generated from
        for folder in FOLDERS:
            for base, _, names in os.walk(os.path.join(root, folder)):
                for name in names:
                    self.add(os.path.relpath(os.path.join(base, name), root))
        for folder in WRITTEN_FOLDERS:
            for base, _, names in os.walk(os.path.join(root, folder)):
                for name in names:
                    if name.endswith((".h", ".cc")):
                        path = os.path.relpath(os.path.join(base, name), root)
                        self.written[path] = self.read(path)
        self.includes = {path: list(self.find_includes(lines)) for path, lines in self.lines.items()}
        self.device_clean = {path for path in self.lines if self.says_device_clean(path)} | (DEVICE_PUBLIC & set(self.lines))

    def add(self, path):
        if os.path.basename(path) == "CMakeLists.txt":
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                for name in re.findall(r"coppice_embed_text\(\s*\S+\s+(\w+)", file.read()):
                    self.generated[name + ".h"] = path
        if not path.endswith((".h", ".cc")):
            return
        self.lines[path] = self.read(path)
        if path.endswith(".kernels.cc"):
            self.generated[os.path.basename(path)[: -len(".cc")] + ".h"] = path

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read().splitlines()

    @staticmethod
    def find_includes(lines):
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) == "<", match.group(2)

    def says_device_clean(self, path):
        if not path.endswith(".h"):
            return False
        for line in self.lines[path]:
            if not line.startswith("//"):
                return False
            if line.startswith("// Device-clean"):
                return True
        return False


def layer_of(path):
    """The layer a file counts as; tests/<folder>/ counts as its folder. None: outside all layers."""
    parts = path.split("/")
    if parts[0] == "tests":
        parts = parts[1:-1] or ["apps"]
    name = OUTSIDE.get(path) or OUTSIDE.get(parts[0], parts[0])
    return name if name in LAYERS else None


def check_quoted(tree, path, target):
    """What is wrong with `#include "target"` in path, if anything."""
    source = tree.generated.get(target, target)
    if source not in tree.lines and target not in tree.generated:
        return f'no file "{target}" (paths start at the repository\'s root)'
    if path.startswith("sparse/") and source.startswith("executor/") and not OPERATIONS.match(path):
        return f'"{target}": of sparse/, only the files of operations, functions and plans include executor/'
    if source.startswith("tests/") and not path.startswith("tests/"):
        return f'"{target}" belongs to the tests'
    for files, kept_away, why in KEPT_APART:
        if re.match(files, path) and re.match(kept_away, source):
            return f'"{target}": {why}'
    own, other = layer_of(path), layer_of(source)
    if own and other and LAYERS.index(other) > LAYERS.index(own):
        return f'{own}/ may not include "{target}": the order is {" <- ".join(LAYERS)}'
    return None


def check_system(path, target):
    where = re.sub(r"^tests/", "", path)  # tests/gpu/ may do what gpu/ may
    for what, included, allowed, words in RESTRICTED:
        if re.match(included, target) and not re.match(allowed, where):
            return f"<{target}>: {what} headers are for {words} only"
    return None


def check_device(tree, path, is_system, target):
    """Device-clean headers and kernel files: bitcode cannot call the host's libraries."""
    is_kernel_file = path.endswith((".kernels.cc", ".device.cc"))
    if path not in tree.device_clean and not is_kernel_file:
        return None
    kind = "a kernel file" if is_kernel_file else "a device-clean header"
    if is_system:
        allowed = (target in DEVICE_SYSTEM or target.startswith("Eigen/")
                   or (is_kernel_file and KERNEL_SYSTEM.match(target)))
        return None if allowed else f"<{target}>: {kind} includes no host library"
    return None if target in tree.device_clean else f'"{target}" is not device-clean, and {kind} includes it'


def check_file(tree, path):
    if path.endswith(".h") and "#pragma once" not in (line.strip() for line in tree.lines[path]):
        yield 1, "a header needs #pragma once"
    if DEVICE_REQUIRED.match(path) and path not in tree.device_clean:
        yield 1, 'bitcode reads this header: its head comment must say "Device-clean"'
    for number, line in enumerate(tree.lines[path], 1):
        if len(line) > WIDTH and PROSE.match(line):
            yield number, f"a comment of {len(line)} columns: it ends at column {WIDTH}"
        if path.startswith("coppice/") and line.strip() and not line.startswith("//") and not line.startswith("#"):
            yield number, "headers of coppice/ hold includes only"
    includes = tree.includes[path]
    own_header = re.sub(r"\.cc$", ".h", path)
    if path.endswith(".cc") and own_header in tree.lines and (not includes or includes[0][2] != own_header):
        yield includes[0][0] if includes else 1, f'its own header "{own_header}" must be the first include'
    for number, is_system, target in includes:
        found = check_system(path, target) if is_system else check_quoted(tree, path, target)
        found = found or check_device(tree, path, is_system, target)
        if found:
            yield number, found


def comment_before(lines, end):
    """The text of the comment that ends above a line."""
    begin = end
    while begin > 0 and lines[begin - 1].startswith("//"):
        begin -= 1
    return " ".join(line[2:].strip() for line in lines[begin:end])


def head_comment(lines):
    end = next((number for number, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return comment_before(lines, end)


def find_functions(lines):
    """Where functions at a file's or namespace's outermost level begin and end. A formatted one begins in the first column
    and ends with a brace alone there; types and tables end with a semicolon, namespaces with a comment."""
    begin, is_open = None, False
    for number, line in enumerate(lines):
        if begin is None:
            if re.match(r"[A-Za-z_:\[{]", line) and not line.startswith("namespace"):
                begin, is_open = number, line.endswith("{")
        elif line.startswith("}"):
            if line == "}" and is_open:
                yield begin, number
            begin = None
        elif line.endswith("{"):
            is_open = True
        if begin is not None and not is_open and (not line or line.endswith((";", "}"))):
            begin = None


def check_written(path, lines):
    """Comments and sizes."""
    for number, line in enumerate(lines, 1):
        opening = OPENING.match(line)
        if opening and not (number > 1 and COMMENT.match(lines[number - 2])):
            yield number, f'a comment that opens with "{opening.group(1)}": give it a subject and a verb'
    most = MOST_LINES[os.path.splitext(path)[1]]
    if len(lines) > most and not REASON.search(head_comment(lines)):
        yield 1, f'{len(lines)} lines, above {most}: split the file, or say in its head comment "The file is long because ..."'
    for begin, end in find_functions(lines):
        length = end - begin + 1
        if length > MOST_FUNCTION and not REASON.search(comment_before(lines, begin)):
            yield begin + 1, (f"a function of {length} lines, above {MOST_FUNCTION}: split it, or say above it "
                              '"The function is long because ..."')


def find_circles(tree):
    """Headers that include each other, each circle once: (path, line, text)."""
    done, circles = set(), []

    def visit(path, trail):
        done.add(path)
        for number, is_system, target in tree.includes[path]:
            # x.h ends with x_inl.h, which includes x.h so that it compiles alone.
            if is_system or target not in tree.lines or path == re.sub(r"\.h$", "_inl.h", target):
                continue
            if target in trail:
                circle = trail[trail.index(target):] + [target]
                circles.append((path, number, "headers include each other: " + " -> ".join(circle)))
            elif target not in done:
                visit(target, trail + [target])

    for path in sorted(tree.lines):
        if path not in done:
            visit(path, [path])
    return circles


def check(root):
    tree = Tree(root)
    found = [(path, number, text) for path in tree.lines for number, text in check_file(tree, path)]
    for path, lines in {**tree.lines, **tree.written}.items():
        found += [(path, number, text) for number, text in check_written(path, lines)]
    return tree, sorted(found + find_circles(tree))


def main(arguments):
    list_device_clean = "--device-clean" in arguments
    roots = [word for word in arguments if word != "--device-clean"]
    root = roots[0] if roots else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if len(roots) > 1 or not os.path.isdir(root):
        print("usage: check_style.py [--device-clean] [ROOT]", file=sys.stderr)
        return 2
    tree, found = check(root)
    if list_device_clean:
        print("\n".join(sorted(tree.device_clean)))
        return 0
    if not tree.lines:
        print(f"check_style: error: no sources below {root}", file=sys.stderr)
        return 1
    for path, number, text in found:
        print(f"{path}:{number}: {text}")
    print(f"style: {len(tree.lines)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
