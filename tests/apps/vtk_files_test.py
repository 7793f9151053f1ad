#!/usr/bin/env python3
"""Reads the VTK files of a run by the offsets that their XML states, and compares them with its other files.

    vtk_files_test.py COPPICE

Particles have the bits of the PLY file of the same frame. The grid has the mass and the momentum of the table, and what is averaged is
computed anew from the particles. Seen to fail: with components in the order of PLY's, with the grid's axes exchanged, and with offsets
that left out the size in front of an array.
"""
import csv
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SCENE = """dim = {dim}
seed = 7
[grid]
resolution = 16
[time]
frames = 3
fps = 100
[output]
png = false
vtu = true
vti = true
fields = {{ pressure = true, stress = true, strain = true }}
[[emitter]]
shape = "sphere"
center = [0.5, 0.13{z}]
radius = 0.12
material = "jelly"
velocity = [0.5, -3.0{w}]
[[emitter]]
shape = "box"
center = [0.25, 0.6{z}]
half_size = [0.05, 0.1{h}]
material = "snow"
"""
FORMATS = {"Float32": "f", "Float64": "d", "UInt8": "B", "Int32": "i", "Int64": "q"}


def check(is_right, what):
    if not is_right:
        raise AssertionError(what)


class Vtk:
    """A file with raw appended data: its root element, and its arrays by name."""

    def __init__(self, path):
        data = path.read_bytes()
        end = data.index(b"<AppendedData encoding=\"raw\">")
        begin = data.index(b"_", end) + 1
        self.root = ElementTree.fromstring(data[:end] + b"</VTKFile>")
        check(self.root.get("byte_order") == "LittleEndian" and self.root.get("header_type") == "UInt64", path)
        check(data.endswith(b"\n</AppendedData>\n</VTKFile>\n"), f"{path}: no end")
        self.arrays, self.elements, last = {}, {}, begin
        for element in self.root.iter("DataArray"):
            if element.get("format") != "appended":
                continue
            at = begin + int(element.get("offset"))
            check(at == last, f"{path}: {element.get('Name')} begins at {at}, the one before ends at {last}")
            size, = struct.unpack_from("<Q", data, at)
            last = at + 8 + size
            self.arrays[element.get("Name")] = data[at + 8:last]
            self.elements[element.get("Name")] = element
        check(data[last:] == b"\n</AppendedData>\n</VTKFile>\n", f"{path}: bytes behind the last array")
        self.time = float(self.root.find(".//FieldData/DataArray[@Name='TimeValue']").text)

    def values(self, name):
        kind = FORMATS[self.elements[name].get("type")]
        return struct.unpack(f"<{len(self.arrays[name]) // struct.calcsize(kind)}{kind}", self.arrays[name])


def read_ply(path):
    """Returns the number of particles, and the bytes of each property."""
    data = path.read_bytes()
    end = data.index(b"end_header\n") + len(b"end_header\n")
    names, kinds, n = [], "<", 0
    for line in data[:end].decode().splitlines():
        words = line.split()
        if words[0] == "element":
            n = int(words[2])
        elif words[0] == "property":
            names.append(words[2])
            kinds += {"float": "4s", "uchar": "1s", "int": "4s"}[words[1]]
    rows = list(struct.iter_unpack(kinds, data[end:]))
    check(len(rows) == n, f"{path}: {len(rows)} rows")
    return n, {name: [row[i] for row in rows] for i, name in enumerate(names)}


def join(columns, names):
    return b"".join(b"".join(row) for row in zip(*(columns[name] for name in names)))


def compare_particles(folder, frame, dim):
    vtu = Vtk(folder / f"particles_{frame:04}.vtu")
    n, columns = read_ply(folder / f"particles_{frame:04}.ply")
    piece = vtu.root.find("UnstructuredGrid/Piece")
    check(piece.get("NumberOfPoints") == piece.get("NumberOfCells") == str(n), "the counts")
    order = [0, 3, 5, 1, 4, 2] if dim == 3 else [0, 2, 1]
    parts = {"position": "xyz", "velocity": [f"velocity_{k}" for k in range(3)], "stress": [f"stress_{k}" for k in order],
             "strain": [f"strain_{k}" for k in order]}
    compared = 0
    for name, data in vtu.arrays.items():
        if name in ("connectivity", "offsets", "types"):
            continue
        check(data == join(columns, parts.get(name, [name])), f"{name} of frame {frame} is not that of the PLY file")
        compared += 1
    check(compared == 9, f"{sorted(vtu.arrays)} are compared")
    names = [vtu.elements["stress"].get(f"ComponentName{k}") for k in range(len(order))]
    check(names == (["xx", "yy", "zz", "xy", "yz", "xz"] if dim == 3 else ["xx", "yy", "xy"]), names)
    check(vtu.values("connectivity") == tuple(range(n)) and vtu.values("offsets") == tuple(range(1, n + 1)), "the cells")
    check(vtu.values("types") == (1,) * n, "the cells' types")
    return vtu


def weights(x):
    """Returns the first of the nodes that a particle at x, in cells, has a share in, and the shares."""
    base = int((x - 0.5) // 1)
    f = x - base
    return base, (0.5 * (1.5 - f)**2, 0.75 - (f - 1)**2, 0.5 * (f - 0.5)**2)


def averages_of(vtu, name, origin, dx, dim):
    """Returns the particles' average at each node, weighted by mass."""
    components = int(vtu.elements[name].get("NumberOfComponents"))
    values, x, mass = vtu.values(name), vtu.values("position"), vtu.values("mass")
    sums = {}
    for i, m in enumerate(mass):
        axes = [weights((x[3 * i + k] - origin[k]) / dx) if k < dim else (0, (1.0, 0.0, 0.0)) for k in range(3)]
        for a, wx in enumerate(axes[0][1]):
            for b, wy in enumerate(axes[1][1]):
                for c, wz in enumerate(axes[2][1]):
                    w = m * wx * wy * wz
                    if w == 0:
                        continue
                    node = sums.setdefault((axes[0][0] + a, axes[1][0] + b, axes[2][0] + c), [0.0] * (components + 1))
                    node[-1] += w
                    for k in range(components):
                        node[k] += w * values[components * i + k]
    return {node: [v / s[-1] for v in s[:-1]] for node, s in sums.items()}


def compare_grid(folder, frame, dim, row, vtu):
    vti = Vtk(folder / f"grid_{frame:04}.vti")
    image = vti.root.find("ImageData")
    extent = [int(v) for v in image.get("WholeExtent").split()]
    check(vti.root.find("ImageData/Piece").get("Extent") == image.get("WholeExtent"), "the extents")
    origin = [float(v) for v in image.get("Origin").split()]
    dx = float(image.get("Spacing").split()[0])
    check(abs(dx - 1 / 16) < 1e-7, dx)
    size = [extent[2 * k + 1] - extent[2 * k] + 1 for k in range(3)]
    check((size[2] == 1) == (dim == 2), size)
    check(dim == 3 or origin[2] == 0, "the plane is where the particles are")
    density, velocity = vti.values("density"), vti.values("velocity")
    check(len(density) == size[0] * size[1] * size[2] and len(velocity) == 3 * len(density), "the sizes")
    # The box is as small as it can be.
    at = [(n % size[0], n // size[0] % size[1], n // size[0] // size[1]) for n, d in enumerate(density) if d != 0]
    for k in range(dim):
        check(min(p[k] for p in at) == 0 and max(p[k] for p in at) == size[k] - 1, f"axis {k} of the box")
    mass = sum(density) * dx**dim
    check(abs(mass - row["mass_kg"]) < 1e-4 * mass, f"{mass} kg, expected {row['mass_kg']}")
    speed = max(abs(v) for v in velocity)
    for k in range(dim):
        momentum = sum(d * velocity[3 * n + k] for n, d in enumerate(density)) * dx**dim
        expected = row["momentum_" + "xyz"[k] + "_kg_m_s"]
        check(abs(momentum - expected) < 2e-3 * mass * speed, f"momentum {momentum} along {k}, expected {expected}")
    for name in ["pressure", "stress", "strain"]:
        components = int(vti.elements[name].get("NumberOfComponents"))
        expected, values = averages_of(vtu, name, origin, dx, dim), vti.values(name)
        largest = max(abs(v) for node in expected.values() for v in node)
        compared = 0
        for n, d in enumerate(density):
            here = values[components * n:components * (n + 1)]
            node = (n % size[0] + extent[0], n // size[0] % size[1] + extent[2], n // size[0] // size[1] + extent[4])
            if d == 0 or node not in expected:
                check(not any(here), f"{name} at {node}, where nothing is")
                continue
            compared += 1
            check(max(abs(a - b) for a, b in zip(here, expected[node])) < 1e-4 * largest,
                  f"{name} at {node} is {here}, expected {expected[node]}")
        check(compared > 20 and largest > 0, f"{name}: {compared} nodes, up to {largest}")
    return vti


def compare_run(coppice, folder, dim):
    scene = folder / f"scene_{dim}.toml"
    scene.write_text(SCENE.format(dim=dim, z=", 0.5" if dim == 3 else "", w=", 0.2" if dim == 3 else "",
                                  h=", 0.07" if dim == 3 else ""))
    out = folder / f"out_{dim}"
    done = subprocess.run([coppice, "run", scene, "-o", out, "--quiet"], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stdout == done.stderr == "", done.stderr)
    with open(out / "stats.csv", encoding="utf-8") as table:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(table)]
    series = {}
    for name in ["particles", "grid"]:
        sets = ElementTree.parse(out / f"{name}.pvd").getroot().findall("Collection/DataSet")
        series[name] = [(s.get("file"), float(s.get("timestep"))) for s in sets]
    check(series["particles"] == [(f"particles_{f:04}.vtu", rows[f]["time_s"]) for f in range(4)], series)
    check(series["grid"] == [(f"grid_{f:04}.vti", rows[f]["time_s"]) for f in range(1, 4)], series)
    for frame in range(4):
        vtu = compare_particles(out, frame, dim)
        check(vtu.time == rows[frame]["time_s"], vtu.time)
        if frame > 0:
            check(compare_grid(out, frame, dim, rows[frame], vtu).time == vtu.time, "the grid's time")


def main(coppice):
    os.environ.setdefault("COPPICE_CACHE_DIR", str(pathlib.Path(coppice).resolve().parents[1] / "test-kernel-cache"))
    with tempfile.TemporaryDirectory() as folder:
        for dim in [2, 3]:
            compare_run(coppice, pathlib.Path(folder), dim)
    print("VTK files of particles and grid are right in 2-D and 3-D")


if __name__ == "__main__":
    main(sys.argv[1])
