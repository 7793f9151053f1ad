#!/usr/bin/env python3
"""The table in docs/sparse.md, "Conformance", names a test for every behaviour, and every test it names exists.

usage: conformance_table_test.py SOURCE_DIR

A row is `| number | behaviour | tests |`. Tests are `Suite.Case`, where Case may be cut off with `*`. Every case
whose name starts with a number (C05_, B1_) is in its number's row.
Seen to fail when a row is taken out, when a test is renamed, and when a test is added without its row.
"""
import pathlib
import re
import sys

NUMBERS = [str(n) for n in range(1, 68)] + [f"B{n}" for n in range(1, 8)]


def rows_of(page):
    section = page.read_text().split("\n## Conformance\n", 1)[1].split("\n## ", 1)[0]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"B?\d+", cells[0]):
            if cells[0] in rows:
                raise SystemExit(f"{page}: row {cells[0]} stands twice")
            rows[cells[0]] = cells[2]
    return rows


def cases_of(tests):
    """Suite.Case of every C++ test."""
    found = set()
    for path in tests.rglob("*_test.cc"):
        found.update(".".join(pair) for pair in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text()))
    return found


def errors(source):
    page = source / "docs" / "sparse.md"
    rows, cases = rows_of(page), cases_of(source / "tests")
    for number in NUMBERS:
        if number not in rows:
            yield f"no row {number}"
    for number, text in rows.items():
        named = re.findall(r"`(\w+\.\w+\*?)`", text)
        if not named:
            yield f"row {number} names no test"
        for name in named:
            if name not in cases and not (name.endswith("*") and any(c.startswith(name[:-1]) for c in cases)):
                yield f"row {number}: there is no test {name}"
    for case in sorted(cases):
        match = re.search(r"\.([CB])(\d+)_", case)
        if match:
            number = str(int(match[2])) if match[1] == "C" else f"B{match[2]}"
            text = rows.get(number, "")
            prefixes = [name[:-1] for name in re.findall(r"`(\w+\.\w+\*)`", text)]
            if f"`{case}`" not in text and not any(case.startswith(prefix) for prefix in prefixes):
                yield f"{case} is not in row {number}"


def main():
    found = [f"docs/sparse.md: {error}" for error in errors(pathlib.Path(sys.argv[1]))]
    print("\n".join(found) or "the conformance table is complete")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
