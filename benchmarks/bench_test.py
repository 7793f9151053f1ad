#!/usr/bin/env python3
"""Runs the benchmarks in their smallest sizes and checks what they print, not how fast they are.

    bench_test.py COPPICE_BENCH KERNEL_CACHE
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, CACHE = sys.argv[1], sys.argv[2]
PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
KEYS = {"name", "ours", "peer", "unit", "ratio", "floor", "peer_name", "target", "instructions", "peer_instructions",
        "detail"}
ROWS = ["mpm/taichi_24", "mpm/water_2d"]
ROWS += ["port/" + name for name in ("mpm88_1_thread", "mpm88_lists_1_thread", *(("mpm88", "mpm88_lists") if len(os.sched_getaffinity(0)) > 1 else ()))]
ROWS += ["lookup/cube", "lookup/cube_masked", "lookup/cube_openvdb", "lookup/shell", "lookup/shell_runs",
        "lookup/shell_openvdb"]
ROWS += ["sparse/" + name for name in (
    "bytes_fill", "fill_active", "fill_empty", "fill_clear_gc", "fill_clear_gc_block", "activate_clear_gc",
    "activate_clear_gc_block", "list", "fill_empty_threads", "fill_empty_shared", "activate_clear_gc_threads",
    "activate_clear_gc_shared", "fill_active_box", "fill_empty_box", "struct_for", "bytes_struct_for", "struct_for_leaves",
    "bytes_struct_for_leaves", "dense_line", "dense_image", "append_one", "append_one_threads",
    "append_one_shared", "append_many", "append_many_bulk",
    "laplacian", "laplacian_raw",
    "laplacian_openvdb", "bytes_laplacian")]
ROWS += ["memory/block", "start/warm", "start/cold"]
ROWS += ["executor/" + name for name in (
    "make_destroy", "and_then_ready", "map_ready", "fan_out_1", "fan_out_16", "fan_out_256",
    "chain_1", "chain_16", "chain_256", "chain_1000000", "count_down_8", "count_down_32", "ref_copy_drop",
    "ref_copy_drop_boost", "ref_make_destroy", "ref_make_destroy_boost", "ref_array", "ref_array_boost",
    "ref_weak_lock", *(f"graph_{shape}/{what}" for shape in ("chain", "fan_out", "random")
                       for what in ("run", "planned", "per_run", "build_run")),
    "graph_random/2_threads", "call", "repeat_iteration", "call/planned", "repeat_iteration/planned")]
ROWS += [f"plan/{case}_fits" for case in "ABCDEF"] + ["plan/A_to_F_fit"]
ROWS += [f"plan/{case}_{planner}" for case in "ABCDEF" for planner in ("by_size", "greedy", "search")] + ["plan/greedy_large"]
ROWS += ["poisson/" + name for name in ("eigen", "openvdb", "openvdb_threads")]
GPU_ROWS = ["gpu/" + name for name in (
    "copy", "laplacian_full", "laplacian_full_warp", "laplacian_tenth_leaves", "laplacian_tenth_leaves_warp",
    "laplacian_tenth_cells", "activate_clear_gc", "fill_clear_gc",
    "activations_coherent", "activations_random", "list", "mpm_1M", "mpm_7M", "taichi_24")]
VIEWER_ROWS = ["viewer/" + name for name in (
    "packing_water_2d", "points_1M_moving", "points_1M_complete", "points_10M_moving", "points_10M_complete", "volume_pack",
    "volume_upload", "fog_draft", "fog_complete", "surface_draft", "surface_complete", "slices_draft", "slices_complete")]
REMOTE_ROWS = ["remote/" + way + name for way in ("", "driven_") for name in (
    "remote_to_here", "rpc_async", "share", "calls", "bytes_1MB")]
REMOTE_ROWS += ["remote/tcp_" + name for name in ("remote_to_here", "rpc_async", "driven_remote_to_here", "driven_rpc_async")]
REMOTE_ROWS += [f"remote/mpm_{scaling}_{ranks}" for ranks in (2, 4) for scaling in ("strong", "weak")]


def run(*words, **more):
    environment = dict(os.environ, COPPICE_CACHE_DIR=CACHE, **more)
    for name in ("COPPICE_LOG", "COPPICE_PROFILE"):
        environment.pop(name, None)
    return subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True, check=False)


class Bench(unittest.TestCase):
    def test_all_rows_in_table_and_json(self):
        self.check_table_and_json(ROWS)

    # The stencil's results are compared with the host's: seen to fail when a launch left the poison in one leaf.
    def test_rows_of_a_gpu_on_other_devices(self):
        for device in ("simt", "cpu"):
            with self.subTest(device):
                self.check_table_and_json(GPU_ROWS, "gpu", "--device", device)

    def test_rows_of_the_viewer(self):
        if "cannot draw" in run("viewer", "--tiny").stderr:
            self.skipTest("this machine has no OpenGL")
        self.check_table_and_json(VIEWER_ROWS, "viewer")

    def test_rows_of_remote_references(self):
        if "built without MPI" in run("remote", "--tiny").stderr:
            self.skipTest("the build has no MPI (Debian packages libopenmpi-dev and openmpi-bin)")
        self.check_table_and_json(REMOTE_ROWS, "remote")

    def test_without_mpiexec_one_line_says_why_there_are_no_rows(self):
        result = run("remote", "--tiny", PATH="/nowhere")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "bench: remote: no rows, since .*\\(.*openmpi-bin\\)\n")

    def check_table_and_json(self, names, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            result = run("--tiny", "--json", path, *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)
        self.assertEqual([row["name"] for row in rows], names)
        for row in rows:
            with self.subTest(row["name"]):
                self.check_row(row)
                self.assertIn("\n" + row["name"] + "  ", result.stdout)
        self.assertIn("\nmachine: ", "\n" + result.stdout)

    def check_row(self, row):
        self.assertEqual(set(row), KEYS)
        self.assertGreater(row["ours"], 0)
        # A count and a share, which nothing bounds from below, and what stands beside bare MPI, its bound.
        if row["name"].endswith("_shared") or "/packing_" in row["name"] or row["name"].startswith("remote/"):
            self.assertIsNone(row["floor"])
        else:
            self.assertGreater(row["floor"], 0)
        self.assertIsInstance(row["unit"], str)
        if row["peer"] is None:
            self.assertIsNone(row["ratio"])
        else:
            self.assertIsInstance(row["peer_name"], str)
            self.assertAlmostEqual(row["ratio"], row["ours"] / row["peer"], delta=1e-4 * row["ratio"])
        if row["target"] is not None:
            self.assertRegex(row["target"], r"^(ratio|ours) [<>]= [0-9.]+( M)?$")
        if row["name"].startswith(("mpm/taichi", "port/")) or row["name"] in ("sparse/fill_empty", "sparse/laplacian"):
            self.assertIn("taichi left out", row["peer_name"])
        if row["name"] == "start/warm":
            self.assertRegex(row["detail"], r" [1-9][0-9]* kernels from the cache, 0 compiled$")
        if row["name"] == "start/cold":
            self.assertRegex(row["detail"], r" [1-9][0-9]* kernels compiled$")

    def test_one_benchmark_by_name(self):
        result = run("memory", "--tiny")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("memory/block", result.stdout)
        self.assertNotIn("lookup/", result.stdout)

    def test_mistakes_are_one_line(self):
        for words, text in ((["fluid"], "no benchmark 'fluid'"), (["--fast"], "usage: coppice-bench"),
                            (["memory", "--device", "simt"], "--device is for the benchmark gpu"),
                            (["gpu", "--device", "abacus"], "device 'abacus' is not known"),
                            (["--work", "lookup"], "expected BENCHMARK/CASE/NUMBER")):
            result = run(*words)
            self.assertEqual(result.returncode, 2, words)
            self.assertRegex(result.stderr, "^coppice-bench: error: .*" + text + ".*\n$")

    def test_a_folder_that_is_not_there_is_told_before_the_work(self):
        result = run("--tiny", "--json", "/nowhere/rows.json")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("bench: ", result.stderr.replace("coppice-bench: ", ""))

    def test_workload_for_valgrind_tells_its_units(self):
        for name, units in (("lookup/cube/0", 8 * 32**3), ("lookup/cube_peer/0", 8 * 32**3),
                            ("executor/fan_out_16/0", 8 * 100 * 16), ("sparse/activate_clear_gc/0", 4 * 128**2)):
            result = run("--work", name)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(float(result.stdout), units)

    def test_the_peers_programs_are_python(self):
        for name in ("laplacian_warp.py", "mpm3d_taichi.py", "mpm88_taichi.py", "sparse_taichi.py", "taichi_mpm.py"):
            path = os.path.join(PEERS, name)
            with open(path, encoding="utf-8") as file:
                compile(file.read(), path, "exec")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
