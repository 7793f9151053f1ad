#!/usr/bin/env python3
"""Plants breaks in a copy of the sources, and sees whether the tests find them: `./dev mutate [name...]`.

    mutate.py [--source FOLDER] [--jobs N] [--list] [--check] [name...]

Each NAME.patch beside this file is one break (docs/building.md, "Planted breaks"). Its lines before the first diff are its
head: what it breaks, and how that is seen, by lines that begin with one of these words:

    test: PROGRAM FILTER      a test program and its --gtest_filter: it must fail. Several such lines: one of them must.
                              `ctest NAME` is a test of ctest's
    kernels: STEM...          kernel files of that program which coppice-kernelgen looks at again, with the break on
    environment: NAME=VALUE   for the tests
    limit: SECONDS            for each of its tests (120 unless given)
    hangs                     the limit counts as a failure
    equivalent: WHY           nobody can see it, and it is not run

All patches are applied to one copy, build/mutate/source, each under COPPICE_BREAK(its name) (break_switch.h), which is off
unless the environment says COPPICE_BREAK=name. So one build serves all: first every test runs without a break and must pass,
then each break's tests with it. The exit code is 1 when a break was not seen.
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SWITCH = '#include "tests/mutations/break_switch.h"\n'


class Fault(Exception):
    """What a person must mend, in one line."""


class Patch:
    def __init__(self, path):
        self.path, self.name = path, path.name.removesuffix(".patch")
        text = path.read_text()
        head, self.diff = text[: text.index("--- a/")], text[text.index("--- a/") :]
        self.files = re.findall(r"^\+\+\+ b/(\S+)", self.diff, re.MULTILINE)
        self.tests, self.kernels, self.environment = [], [], {}
        self.limit, self.hangs, self.equivalent, about = 120.0, False, "", []
        for line in head.splitlines():
            word, _, rest = line.partition(": ")
            if word == "test":
                program, _, chosen = rest.partition(" ")
                self.tests.append((program, chosen))
            elif word == "kernels":
                self.kernels = rest.split()
            elif word == "environment":
                self.environment.update(pair.split("=", 1) for pair in rest.split())
            elif word == "limit":
                self.limit = float(rest)
            elif line == "hangs":
                self.hangs = True
            elif word == "equivalent":
                self.equivalent = rest
            else:
                about.append(line)
        self.about = " ".join(about)
        # Whether kernels come out as without it, so that those kept on disk do.
        self.is_of_host = all(name.endswith(".cc") and ".kernels." not in name and not name.startswith(("gpu/jit/", "gpu/device/"))
                              for name in self.files)
        if not self.about.strip():
            raise Fault(f"{path.name}: its head says nothing of what it breaks")
        if bool(self.tests) == bool(self.equivalent):
            raise Fault(f"{path.name}: its head has neither, or both, of 'test:' and 'equivalent:'")
        if any(not chosen for _, chosen in self.tests):
            raise Fault(f"{path.name}: 'test:' needs a program and a filter")
        names = set(re.findall(r"COPPICE_BREAK\((\w+)\)", self.diff))
        if names != {self.name}:
            raise Fault(f"{path.name}: its switch is not COPPICE_BREAK({self.name}), but {sorted(names)}")


def read_patches(folder):
    return [Patch(path) for path in sorted(folder.glob("*.patch"))]


def edits_of(diff, name, lines_of):
    """What a diff changes, as [(file, first line, end, new lines)] of the sources as they are: patches are neighbours, of
    which git would apply only one."""
    edits, file = [], None
    for part in re.split(r"^(?=--- a/|@@ )", diff, flags=re.MULTILINE):
        if part.startswith("--- a/"):
            file = re.search(r"^\+\+\+ b/(\S+)", part, re.MULTILINE)[1]
        if not part.startswith("@@ "):
            continue
        head, *hunk = part.splitlines()
        stated = int(re.match(r"@@ -(\d+)", head)[1]) - 1
        old, lines = [line[1:] for line in hunk if line[0] in " -"], lines_of(file)
        places = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
        if not places:
            raise Fault(f"{name} does not apply to the sources: {file} has no such lines as its hunk {head}")
        at = min(places, key=lambda place: abs(place - stated))
        for kept, changed in itertools.groupby(hunk, lambda line: line[0] == " "):
            changed = list(changed)
            removed = sum(line[0] in " -" for line in changed)
            if not kept:
                edits.append((file, at, at + removed, [line[1:] for line in changed if line[0] == "+"]))
            at += removed
    return edits


def patched_sources(source, patches):
    """{file: its text} of the files that patches change, with all of them applied."""
    originals, edits = {}, {}

    def lines_of(file):
        if file not in originals:
            originals[file] = (source / file).read_text().splitlines() if (source / file).is_file() else []
        return originals[file]

    switch = HERE / "switch.diff"
    for name, diff in [(switch.name, switch.read_text())] + [(p.path.name, p.diff) for p in patches]:
        for file, *edit in edits_of(diff, name, lines_of):
            edits.setdefault(file, []).append((*edit, name))
    texts = {}
    for file, changes in edits.items():
        lines, before = list(lines_of(file)), None
        for first, end, new, name in sorted(changes, key=lambda change: change[:2], reverse=True):
            if before is not None and end > before[0]:
                raise Fault(f"{name} and {before[1]} change the same line of {file}")
            lines[first:end], before = new, (first, name)
        texts[file] = SWITCH + "\n".join(lines) + "\n"
    return texts


def listed_sources(source):
    """What git knows or would know."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=source,
                            capture_output=True, check=True).stdout.decode()
    return [name for name in listed.split("\0") if name and (source / name).is_file()]


def update(path, content):
    """Leaves a file that is right as it is, so that nothing is built again for it."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy_sources(source, patches, copy):
    changed = patched_sources(source, patches)
    listed = listed_sources(source)
    for name in listed:
        update(copy / name, changed[name].encode() if name in changed else (source / name).read_bytes())
        shutil.copymode(source / name, copy / name)
    kept = set(listed)
    for path in copy.rglob("*"):
        name = path.relative_to(copy)
        if name.parts[0] != "build" and path.is_file() and str(name) not in kept:
            path.unlink()


def build(copy, targets, jobs):
    def step(command):
        done = subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout, file=sys.stderr)
            raise Fault(f"building the copy failed, see above: {' '.join(command)}")

    step(["cmake", "--preset", "release", "-DCOPPICE_BUILD_TESTS=ON", "-DCOPPICE_BUILD_BENCHMARKS=OFF"])
    step(["cmake", "--build", "build/release", "--parallel", str(jobs), "--target", *sorted(targets), "--", "-k", "0"])


class Runner:
    def __init__(self, copy, caches):
        self.copy, self.build, self.caches = copy, copy / "build/release", caches

    def run(self, name, program, chosen, limit, extra):
        """(exit code, 124 where the limit ended it; what it wrote)"""
        command = [self.build / "bin" / program, f"--gtest_filter={chosen}", "--gtest_brief=1"]
        if program == "ctest":
            command = ["ctest", "--test-dir", self.build, "-R", f"^{chosen}$", "--no-tests=error", "--output-on-failure"]
        environment = {**os.environ, "COPPICE_CACHE_DIR": str(self.caches / name), **extra}
        try:
            done = subprocess.run(["timeout", "-k", "5", str(limit), *map(str, command)], cwd=self.copy, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                                  check=False)
        except OSError as error:
            raise Fault(f"{program}: {error}") from error
        if done.returncode in (126, 127):
            raise Fault(f"{program} does not run: {done.stdout.strip()}")
        return done.returncode, done.stdout

    def check_without(self, patches):
        """Every test passes where no break is on, and every filter is that of a test."""
        together, nameless = {}, []
        for patch in patches:
            for program, chosen in patch.tests:
                key = (program, chosen if program == "ctest" else "", tuple(sorted(patch.environment.items())))
                together.setdefault(key, []).append(chosen)
                if program == "ctest":
                    continue
                listed = subprocess.run([self.build / "bin" / program, f"--gtest_filter={chosen}", "--gtest_list_tests"],
                                        capture_output=True, text=True, check=True).stdout
                if "\n  " not in listed:
                    nameless.append(f"{patch.path.name}: no test of {program} is called {chosen}")
        if nameless:
            raise Fault("; ".join(nameless))
        for (program, _, extra), chosen in together.items():
            status, words = self.run("none", program, ":".join(dict.fromkeys(chosen)), 1800, dict(extra))
            if status != 0:
                raise Fault(f"{program} fails without a break:\n{words}")

    def tell_anew(self, patch, folder):
        """Headers of the kernel files that a break of coppice-kernelgen is to be seen in."""
        headers = []
        program = patch.tests[0][0]
        for stem in patch.kernels:
            kernels = self.build / "tests/kernels"
            raw, shipped = kernels / f"{stem}.kernels.cc.debug.bc", kernels / f"{stem}.kernels.cc.bc"
            headers.append(folder / f"{stem}.h")
            done = subprocess.run([self.build / "bin/coppice-kernelgen", raw, shipped, stem, self.copy, "/usr/include/eigen3",
                                   headers[-1], folder / f"{stem}.cc"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "COPPICE_BREAK": patch.name})
            if done.returncode != 0:
                raise Fault(f"{patch.path.name}: {program}: {done.stderr.strip()}")
        return {"COPPICE_TOLD": " ".join(map(str, headers))} if headers else {}

    def judge(self, patch):
        """(what saw the break, or nothing; seconds; what the tests wrote)"""
        began, words = time.monotonic(), ""
        with tempfile.TemporaryDirectory() as folder:
            extra = {"COPPICE_BREAK": patch.name, **patch.environment, **self.tell_anew(patch, pathlib.Path(folder))}
            for program, chosen in patch.tests:
                status, written = self.run("none" if patch.is_of_host else patch.name, program, chosen, patch.limit, extra)
                words += written
                if status != 0 and (status not in (124, 137) or patch.hangs):
                    failed = re.findall(r"\[  FAILED  \] (\S+?),? ", written + " ")
                    what = failed[0] if failed else "hangs" if status in (124, 137) else f"exit code {status}"
                    return f"{program} {chosen if what[0] in 'he' else what}", time.monotonic() - began, words
        return "", time.monotonic() - began, words


def main():
    parser = argparse.ArgumentParser(prog="mutate", description="plants breaks and sees whether the tests find them")
    parser.add_argument("names", nargs="*", help="breaks; all unless given")
    parser.add_argument("--source", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers, and test programs, at once")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--check", action="store_true", help="see whether all patches apply, and run nothing")
    options = parser.parse_args()
    patches = read_patches(HERE)
    unknown = sorted(set(options.names) - {p.name for p in patches})
    if unknown:
        raise Fault(f"there is no {', '.join(name + '.patch' for name in unknown)} in {HERE}")
    if options.list:
        for patch in patches:
            print(f"{patch.name:34} {patch.about}")
        return 0
    if options.check:
        patched_sources(options.source.resolve(), patches)
        print(f"{len(patches)} patches apply")
        return 0
    chosen = [p for p in patches if not options.names or p.name in options.names]
    copy = options.source.resolve() / "build/mutate/source"
    copy_sources(options.source.resolve(), patches, copy)
    targets = {program for p in chosen for program, _ in p.tests if program != "ctest"} | {"coppice-kernelgen"}
    build(copy, targets, options.jobs)
    runner = Runner(copy, copy.parent / "cache")
    runner.check_without([p for p in chosen if p.tests])
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        judged = [(patch, pool.submit(runner.judge, patch)) for patch in chosen if not patch.equivalent]
        for patch, judgement in judged:
            by, seconds, words = judgement.result()
            print(f"{patch.name:34} {seconds:6.1f} s  {by or 'NOT SEEN'}", flush=True)
            if not by:
                missed += 1
                (copy.parent / f"{patch.name}.log").write_text(words)
    for patch in chosen:
        if patch.equivalent:
            print(f"{patch.name:34}      -    equivalent: {patch.equivalent}")
    print(f"{len(chosen)} breaks, {missed} not seen" + (f"; see {copy.parent}/NAME.log" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Fault as fault:
        print(f"mutate: error: {fault}", file=sys.stderr)
        sys.exit(2)
