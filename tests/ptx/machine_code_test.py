#!/usr/bin/env python3
"""The rules of machine code see what breaks them: kernels written for that are assembled, and read.

    machine_code_test.py BUILD PTXAS

Without ptxas or nvdisasm the exit code is 77: skipped, with the reason.
"""
import os
import sys
import unittest

import machine_code
from kernel_table_test import assemble, code_faults, Budget

SKIPPED = 77
BUILD, PTXAS = sys.argv[1:3]
NVDISASM = None
HEAD = """.version 7.8
.target sm_75
.address_size 64
"""


def kernel(body, declarations=""):
    return f"""{HEAD}{declarations}
.visible .entry k(.param .u64 in, .param .u64 out)
{{
  .reg .b64 %rd<40>; .reg .f32 %f<40>; .reg .b32 %r<40>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
{body}
  ret;
}}
"""


def independent_loads(n):
    loads = "".join(f"  ld.global.f32 %f{k}, [%rd3+{16 * k}];\n" for k in range(n))
    sums = "".join(f"  add.f32 %f0, %f0, %f{k};\n" for k in range(1, n))
    return kernel(loads + sums + "  st.global.f32 [%rd4], %f0;\n")


# Each address is what the load before has read.
CHAIN = kernel("".join(f"  ld.global.u64 %rd{k + 1}, [%rd{k}];\n" for k in range(3, 13)) + "  st.global.u64 [%rd4], %rd13;\n")
GENERIC_LOAD = kernel("  ld.f32 %f1, [%rd1];\n  st.global.f32 [%rd4], %f1;\n")
GENERIC_STORE = kernel("  mov.u32 %r1, 7;\n  st.u32 [%rd2], %r1;\n")
GENERIC_ATOMIC = kernel("  mov.u32 %r1, 1;\n  atom.add.u32 %r2, [%rd1], %r1;\n  st.global.u32 [%rd4], %r2;\n")
QUESTION = kernel("  isspacep.shared %p1, %rd1;\n  selp.u32 %r1, 1, 2, %p1;\n  st.global.u32 [%rd4], %r1;\n")
STACK = kernel("""  ld.global.u32 %r1, [%rd3];
  and.b32 %r1, %r1, 12;
  cvt.u64.u32 %rd5, %r1;
  mov.u64 %rd6, depot;
  add.s64 %rd7, %rd6, %rd5;
  st.local.u32 [%rd7], %r1;
  ld.local.u32 %r2, [depot+8];
  st.global.u32 [%rd4], %r2;
""").replace("  ld.param.u64 %rd1", "  .local .align 16 .b8 depot[64];\n  ld.param.u64 %rd1", 1)
SHARED = kernel("""  ld.global.u32 %r1, [%rd3];
  st.shared.u32 [tile], %r1;
  ld.shared.u32 %r2, [tile+512];
  st.global.u32 [%rd4], %r2;
""", ".shared .align 4 .b8 tile[1024];")


class Rules(unittest.TestCase):
    def faults(self, text, budget=Budget()):
        for gpu in (75, 80, 90, 120):
            usage, code = assemble(PTXAS, text, gpu, NVDISASM)
            self.assertEqual(usage.error, "")
            yield gpu, " | ".join(code_faults(usage, code, budget))

    def expect(self, text, words, budget=Budget()):
        for gpu, found in self.faults(text, budget):
            with self.subTest(gpu=gpu):
                self.assertIn(words, found)

    def expect_none(self, text, budget=Budget()):
        for gpu, found in self.faults(text, budget):
            with self.subTest(gpu=gpu):
                self.assertEqual(found, "")

    def test_generic_addresses(self):
        for text in (GENERIC_LOAD, GENERIC_STORE, GENERIC_ATOMIC):
            self.expect(text, "generic addresses")

    def test_questions_what_memory_an_address_is_of(self):
        self.expect(QUESTION, "generic addresses: QSPC")

    def test_stack(self):
        self.expect(STACK, "of stack")
        self.expect_none(STACK, Budget(stack=64))

    def test_registers(self):
        self.expect(independent_loads(30), "registers, and may have 16", Budget(registers=16))
        self.expect_none(independent_loads(30))

    def test_shared_memory(self):
        self.expect(SHARED, "1024 bytes of shared memory, and may have 512", Budget(shared=512))
        self.expect_none(SHARED, Budget(shared=2048))

    def test_loads_that_wait_for_each_other(self):
        self.expect(CHAIN, "1 load at most is under way, and 4 should be", Budget(loads=4))
        self.expect_none(independent_loads(12), Budget(loads=8))

    def test_a_store_ends_a_run_of_loads(self):
        pairs = "".join(f"  ld.global.f32 %f{k}, [%rd3+{16 * k}];\n  st.shared.f32 [tile+{4 * k}], %f{k};\n  bar.sync 0;\n" for k in range(9))
        self.expect(kernel(pairs, ".shared .align 4 .b8 tile[64];"), "1 load at most is under way", Budget(shared=64, loads=2))


if __name__ == "__main__":
    if not os.access(PTXAS, os.X_OK):
        print("skipped: CMake found no ptxas (of a CUDA toolkit; on PATH, in $CUDA_HOME or in $CUDA_PATH)")
        sys.exit(SKIPPED)
    NVDISASM, why_not = machine_code.find_nvdisasm(PTXAS, BUILD)
    if NVDISASM is None:
        print(f"skipped: {why_not}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
