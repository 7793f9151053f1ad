"""The argument lists that the fuzzer's kernels have: shared by the generator and the program that launches them.

A shape is a place (what the launch loops over) and handles. The launching program is compiled once with all of them,
so that a new kernel needs no new host code. As a script: writes them as a header's macro calls.
"""
import random
import sys
from dataclasses import dataclass

TYPES = {"i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double", "u8": "uint8_t", "i16": "int16_t"}
BYTES = {"i32": 4, "i64": 8, "f32": 4, "f64": 8, "u8": 1, "i16": 2}
# Fields that a tree has of each size (forest.cc), besides the flags; a node has room for 16.
FIELDS = {1: 2, 2: 2, 4: 6, 8: 5}
FAST_BYTES = 4096  # of a BlockTeam: an integer per cell of the largest block
# Of the trees that kernels grow (growing.cc), by the number of axes.
EXTENTS = {1: (40,), 2: (12, 10), 3: (6, 4, 8)}
REACHES = {"": 0, "Star<1>": 1, "Star<2>": 2, "Box<1>": 1, "Box<2>": 2}


@dataclass(frozen=True)
class Handle:
    role: str  # Read, Write, Update, Accumulate, Append, Grow
    type: str
    reach: str = ""  # "", "Star<R>" or "Box<R>"
    flag: bool = False  # reads which cells are active

    def text(self):
        return f"{self.role}<{TYPES[self.type]}{', ' + self.reach if self.reach else ''}>"


@dataclass(frozen=True)
class Shape:
    number: int
    place: str  # Cell, Block, BlockTeam, Entry, Item or Team
    dims: int
    table: bool  # has a pointer to 16 integers, so that it may not be blended
    handles: tuple

    def kind(self):
        """The place, or what items do to a tree."""
        roles = {h.role for h in self.handles}
        return "Append" if "Append" in roles else "Grow" if "Grow" in roles else self.place

    def place_text(self):
        if self.place == "BlockTeam":
            return f"BlockTeam<{self.dims}, {FAST_BYTES}>"
        return self.place if self.place in ("Item", "Team") else f"{self.place}{self.dims}"


def random_handles(rng, place):
    def type_of(small=True):
        return rng.choice(["i32", "i32", "i32", "f32", "f32", "i64", "f64"] + (["u8", "i16"] if small else []))

    reads = [Handle("Read", type_of()) for _ in range(rng.choice([1, 1, 2]))]
    stores = [Handle(rng.choice(["Write", "Write", "Update"]), type_of()) for _ in range(rng.choice([1, 1, 2, 3]))]
    if place != "Cell":
        return reads + stores
    if rng.random() < 0.4:  # only handles of one type, so that they can name one field
        kind = rng.choice(["i32", "f32", "i64"])
        reads = [Handle("Read", kind) for _ in reads]
        stores = [Handle(s.role, kind) for s in stores]
    if rng.random() < 0.35:
        reads.append(Handle("Read", type_of(), rng.choice(list(REACHES)[1:])))
    if rng.random() < 0.2:
        reach = rng.choice(["", "Star<1>", "Box<1>", "Box<2>"])
        stores.append(Handle("Accumulate", rng.choice(["i32", "i64", "f32", "f64"]), reach))
        reads.append(Handle("Read", "i32", reach, flag=True))
    elif rng.random() < 0.2:
        reads.append(Handle("Read", "i32", flag=True))
    return reads + stores


def fitting_handles(rng, place):
    while True:
        handles = random_handles(rng, place)
        sizes = [BYTES[h.type] for h in handles if not h.flag]
        if all(sizes.count(size) <= n for size, n in FIELDS.items()):
            return tuple(handles)


def all_shapes():
    shapes = []
    for place, count in (("Cell", 40), ("Block", 8), ("Entry", 8)):
        for dims in (1, 2, 3):
            for k in range(count):
                rng = random.Random(f"{place} {dims} {k}")
                shapes.append(Shape(len(shapes), place, dims, rng.random() < 0.15, fitting_handles(rng, place)))
    shapes.append(Shape(len(shapes), "Item", 0, True, ()))
    shapes.append(Shape(len(shapes), "Team", 0, True, ()))
    for dims in (1, 2, 3):
        for k in range(6):
            rng = random.Random(f"BlockTeam {dims} {k}")
            shapes.append(Shape(len(shapes), "BlockTeam", dims, False, fitting_handles(rng, "BlockTeam")))
    for dims in (1, 2, 3):
        for type in ("i32", "f32", "i64"):
            # The second is only looked at.
            shapes.append(Shape(len(shapes), "Item", dims, True, (Handle("Append", type), Handle("Append", "i32"))))
            shapes.append(Shape(len(shapes), "Item", dims, True, (Handle("Grow", type),)))
    return shapes


SHAPES = all_shapes()


def main():
    part, parts = int(sys.argv[1]), int(sys.argv[2])
    for shape in SHAPES[part::parts]:
        handles = "".join(", " + h.text() for h in shape.handles)
        print(f"KERNEL_FUZZ_SHAPE({shape.number}, {str(shape.table).lower()}, {shape.place_text()}{handles})")


if __name__ == "__main__":
    main()
