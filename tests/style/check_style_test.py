#!/usr/bin/env python3
"""Tests scripts/check_style.py: small trees with one planted violation each, and one without."""
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import check_style  # noqa: E402

CLEAN = {
    "core/error.h": "// Errors.\n#pragma once\n#include <string>\n",
    "core/error.cc": '#include "core/error.h"\n',
    "gpu/launch_block.h": "// The block.\n//\n// Device-clean.\n#pragma once\n#include <cstdint>\n",
    "gpu/device.h": '// Devices.\n#pragma once\n#include "core/error.h"\n#include "gpu/launch_block.h"\n',
    "gpu/jit/compile.cc": "#include <llvm/IR/Module.h>\n",
    "sparse/device/layout.h": '// Layouts.\n//\n// Device-clean.\n#pragma once\n#include "gpu/launch_block.h"\n',
    "sparse/tree.h": '// Trees.\n#pragma once\n#include "gpu/device.h"\n#include "sparse/device/layout.h"\n',
    "coppice/kernel.h": '// For kernel files.\n#pragma once\n#include "sparse/device/layout.h"\n',
    "apps/mpm/step.kernels.cc": '#include "coppice/kernel.h"\n#include <Eigen/Core>\n#include <math.h>\n',
    "apps/mpm/solver.cc": '#include "step.kernels.h"\n#include "sparse/tree.h"\n',
    "tests/gpu/device_test.cc": '#include "gpu/device.h"\n#include <tbb/parallel_for.h>\n',
}


def check(changes):
    """What the checker says of the clean tree with some files changed, as "path:line: text" lines."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**CLEAN, **changes}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return [f"{path}:{line}: {text}" for path, line, text in check_style.check(root)[1]]


class IncludeRule(unittest.TestCase):
    def expect(self, changes, start):
        found = check(changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found[0])

    def test_accepts_a_tree_that_keeps_the_rule(self):
        self.assertEqual(check({}), [])

    def test_refuses_an_include_from_the_right(self):
        self.expect({"core/log.cc": '\n#include "gpu/device.h"\n'}, 'core/log.cc:2: core/ may not include "gpu/device.h"')
        self.expect({"gpu/queue.cc": '#include "coppice/kernel.h"\n'}, 'gpu/queue.cc:1: gpu/ may not include')
        self.expect({"sparse/a.cc": '#include "step.kernels.h"\n'}, 'sparse/a.cc:1: sparse/ may not include')
        apps = {"apps/viewer.h": "// A viewer.\n#pragma once\n"}
        for name in ("output", "solver", "viewer"):
            self.assertEqual(check({**apps, f"coppice/{name}.h": '#pragma once\n#include "apps/viewer.h"\n'}), [])
        self.expect({**apps, "coppice/coppice.h": '#pragma once\n#include "apps/viewer.h"\n'}, 'coppice/coppice.h:2: sparse/ may not include')
        self.expect({"tests/core/a_test.cc": '#include "gpu/device.h"\n'}, 'tests/core/a_test.cc:1: core/ may not include')

    def test_refuses_the_executor_in_sparse_but_for_its_operations(self):
        executor = {"executor/registry.h": "// Operations.\n#pragma once\n"}
        include = '#include "executor/registry.h"\n'
        self.expect({**executor, "sparse/tree.cc": f'#include "sparse/tree.h"\n{include}'}, "sparse/tree.cc:2: ")
        self.expect({**executor, "sparse/a.h": f"#pragma once\n{include}"}, "sparse/a.h:2: ")
        operations = {"sparse/operations.h": f"#pragma once\n{include}", "sparse/operations.cc": f'#include "sparse/operations.h"\n{include}',
                      "tests/sparse/a_test.cc": include}
        self.assertEqual(check({**executor, **operations}), [])

    def test_keeps_parts_apart(self):
        types = {"apps/mpm/mpm_types.h": "#pragma once\n", "gpu/jit/specializer.h": "#pragma once\n"}
        self.expect({**types, "apps/scene/material.h": '#pragma once\n#include "apps/mpm/mpm_types.h"\n'},
                    'apps/scene/material.h:2: "apps/mpm/mpm_types.h": a scene is read without')
        self.expect({**types, "gpu/stream.h": '#pragma once\n#include "gpu/jit/specializer.h"\n'}, 'gpu/stream.h:2: "gpu/jit/specializer.h": who uses')
        self.assertEqual(check({**types, "gpu/kernel_store.h": '#pragma once\n#include "gpu/jit/specializer.h"\n'}), [])

    def test_refuses_more_than_includes_in_the_public_folder(self):
        self.expect({"coppice/kernel.h": "// For kernel files.\n#pragma once\n\nint f();\n"}, "coppice/kernel.h:4: headers of coppice/ hold includes only")

    def test_refuses_wide_comments_but_for_tables(self):
        wide = "word " * 22
        self.expect({"core/error.h": f"// Errors.\n#pragma once\n  // {wide}s\n"}, "core/error.h:3: a comment of 116 columns")
        self.assertEqual(check({"core/error.h": f"// Errors.\n#pragma once\n// name     {wide}\n"}), [])

    def test_refuses_comments_that_open_as_fragments(self):
        self.expect({"core/error.cc": '#include "core/error.h"\n\n  // Of the first one.\n'},
                    'core/error.cc:3: a comment that opens with "Of"')
        for word in ("What", "Whose", "Those", "That", "Which", "Whether"):
            self.expect({"apps/a.cc": f"// {word} is there.\n"}, f'apps/a.cc:1: a comment that opens with "{word}"')
        self.expect({"examples/a/a.kernels.cc": "// Kernels.\n//\n// What they do.\n"}, "examples/a/a.kernels.cc:3: a comment that opens")
        self.assertEqual(check({"core/a.cc": "// A line goes on with\n// What begins another.\nint x;  // of a line\n// Offered: whatever.\n"}), [])

    def test_refuses_long_files_and_functions_without_a_reason(self):
        rows = "int x;\n"
        self.expect({"core/a.cc": "// A.\n" + rows * 700}, "core/a.cc:1: 701 lines, above 700")
        self.expect({"core/a.h": "// A.\n#pragma once\n" + rows * 299}, "core/a.h:1: 301 lines, above 300")
        self.assertEqual(check({"core/a.cc": "// A. The file is long\n// because it is a test.\n" + rows * 700}), [])
        self.assertEqual(check({"core/a.cc": "// A.\n" + rows * 699, "core/b.h": "#pragma once\n" + rows * 299}), [])
        body = "  f();\n" * 79 + "}\n"
        for begin in ("void f() {\n", "template <class T>\nvoid f(int x,\n       int y) {\n", "COPPICE_KERNEL(f, Item i)\n{\n"):
            self.expect({"core/a.cc": f"// A.\n\nnamespace a {{\n{begin}{body}\n}}  // namespace a\n"}, "core/a.cc:4: a function of 8")
            reason = "// The function is long because it is a test.\n"
            self.assertEqual(check({"core/a.cc": f"// A.\n\n{reason}{begin}{body}"}), [])
        self.assertEqual(check({"core/a.cc": "void f() {\n" + "  f();\n" * 78 + "}\n"}), [])
        self.assertEqual(check({"core/a.cc": "MACRO(X)\n\nstruct S {\n" + rows * 90 + "};\nint t[] = {\n" + "  1,\n" * 90 + "};\n"}), [])

    def test_refuses_libraries_outside_their_folders(self):
        for path, header in [("gpu/device.cc", "llvm/IR/Module.h"), ("gpu/jit/a.h", "llvm/IR/Module.h"), ("sparse/a.cc", "cuda.h"),
                             ("gpu/a.cc", "cuda_runtime.h"), ("apps/cli/a.cc", "EGL/egl.h"), ("apps/render/a.cc", "GLFW/glfw3.h"),
                             ("core/a.cc", "tbb/parallel_for.h"), ("sparse/a.cc", "thrust/sort.h"), ("apps/mpm/a.cc", "openvdb/openvdb.h")]:
            own = '#include "gpu/device.h"\n' if path == "gpu/device.cc" else "#pragma once\n"
            self.expect({path: f"{own}#include <{header}>\n"}, f"{path}:2: <{header}>: ")

    def test_refuses_host_headers_in_device_clean_ones(self):
        head = "// Walks.\n//\n// Device-clean.\n#pragma once\n"
        self.expect({"sparse/device/walk.h": head + "#include <vector>\n"}, "sparse/device/walk.h:5: <vector>: ")
        self.expect({"sparse/device/walk.h": head + '#include "core/error.h"\n'}, 'sparse/device/walk.h:5: "core/error.h" is not device-clean')
        self.expect({"apps/mpm/a.kernels.cc": '#include "sparse/tree.h"\n'}, 'apps/mpm/a.kernels.cc:1: "sparse/tree.h" is not device-clean')
        self.expect({"apps/mpm/a.kernels.cc": "#include <vector>\n"}, "apps/mpm/a.kernels.cc:1: <vector>: ")
        self.expect({"sparse/device/walk.h": "// Walks.\n#pragma once\n"}, "sparse/device/walk.h:1: bitcode reads this header")

    def test_refuses_headers_that_may_not_compile_alone(self):
        self.expect({"core/a.h": "// A.\n"}, "core/a.h:1: a header needs #pragma once")
        self.expect({"core/error.cc": '#include <string>\n#include "core/error.h"\n'}, "core/error.cc:1: its own header")

    def test_refuses_paths_that_do_not_start_at_the_root(self):
        self.expect({"gpu/a.cc": '#include "launch_block.h"\n'}, 'gpu/a.cc:1: no file "launch_block.h"')
        self.expect({"apps/a.cc": '#include "tests/util.h"\n', "tests/util.h": "#pragma once\n"}, 'apps/a.cc:1: "tests/util.h" belongs to the tests')

    def test_refuses_headers_that_include_each_other(self):
        self.expect({"core/a.h": '#pragma once\n#include "core/b.h"\n', "core/b.h": '#pragma once\n#include "core/a.h"\n'},
                    "core/b.h:2: headers include each other: core/a.h -> core/b.h -> core/a.h")

    def test_knows_generated_headers(self):
        text = "coppice_embed_text(coppice_apps my_shaders a.frag)\n"
        self.assertEqual(check({"apps/CMakeLists.txt": text, "apps/render/a.cc": '#include "my_shaders.h"\n'}), [])


if __name__ == "__main__":
    unittest.main()
