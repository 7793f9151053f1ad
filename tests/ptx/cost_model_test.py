#!/usr/bin/env python3
"""Loops of machine code are found as they are, and a description that is of other code is an error: on code written for that.

    cost_model_test.py

Needs neither ptxas nor nvdisasm.
"""
import unittest

import code_loops
import cost_model
from kernel_costs import Case, Kernel, Turns

CARD = cost_model.CARDS[0]


def listing(*lines):
    """nvdisasm's text: instructions, labels (".L_x_1:") and source lines (a number)."""
    text = ["k:"]
    for at, line in enumerate(lines):
        if isinstance(line, int):
            text.append(f'\t//## File "/code/k.cc", line {line}')
        elif line.startswith((".", "$")):
            text.append(line)
        else:
            text.append(f"        /*{at:04x}*/                   {line} ;")
    return "\n".join(text) + "\n"


# Line 1 closes the loop over items, line 2 the one inside, which ptxas has unrolled four times; a root's slow way lies between.
NEST = listing("S2R R0, SR_TID.X", ".L_x_0:", "LDG.E R1, desc[UR4][R2.64]", "MUFU.RSQ R3, R1", "@P1 BRA `(.L_x_2)",
               "CALL.REL.NOINC `($slow)", ".L_x_2:", "FADD R6, R1, R3", ".L_x_1:", 2, "LDS R4, [R5]", "LDS R7, [R5+0x4]", "LDS R8, [R5+0x8]",
               "LDS R9, [R5+0xc]", "@P0 BRA `(.L_x_1)", 1, "STG.E desc[UR4][R2.64], R4", "@P2 BRA `(.L_x_0)", "EXIT",
               "$slow:", "FADD R3, R3, R3", "FADD R3, R3, R3", "RET.REL.NODEC R10 `(k)")
SOURCE = {1: "for each item", 2: "for each slot"}


class Texts:
    def line(self, file, number):
        return SOURCE.get(number, "") if file == "/code/k.cc" else ""


def counted(turns, loop="for each item", units=1000):
    kernel = Kernel("k", "32 items", loop, "", 1, lambda n: 256, turns, [Case("all", units)])
    code = cost_model.Assembled(32, 0, NEST)
    return cost_model.Counted(kernel, kernel.cases[0], code, code_loops.Graph(NEST), 0, Texts())


class Loops(unittest.TestCase):
    def test_a_nest_is_found_with_the_lines_that_close_it(self):
        whole = code_loops.Graph(NEST).whole
        outer, = whole.inner
        inner, = outer.inner
        self.assertEqual([outer.place, inner.place], [("/code/k.cc", 1), ("/code/k.cc", 2)])
        self.assertEqual(inner.inner, [])

    def test_a_turn_has_its_inner_loops_turns_and_no_slow_way(self):
        c = counted([Turns("for each slot", 3)])
        self.assertEqual(c.cost["shared"], 12)
        self.assertEqual(c.cost["issue"], 4 + 3 * 5 + 2 - 0)  # of the way around the call one instruction is the branch
        self.assertEqual((c.cost["loads"], c.cost["stores"], c.cost["sectors"]), (1, 1, 8))
        # The load's value is waited for, and then the root's.
        self.assertGreater(c.waiting, cost_model.L2_LATENCY + code_loops.UNIT - 5)

    def test_turns_may_be_given_by_what_they_run(self):
        self.assertEqual(counted([Turns("for each slot", 12, of="LDS")]).cost["shared"], 12)

    def test_a_loop_that_is_entered_at_two_places_is_refused(self):
        code = listing("@P0 BRA `(.L_x_1)", ".L_x_0:", "FADD R0, R0, R1", ".L_x_1:", "FADD R2, R2, R1", "@P1 BRA `(.L_x_0)", "EXIT")
        with self.assertRaisesRegex(code_loops.Unexpected, "entered at two places"):
            code_loops.Graph(code)


class Descriptions(unittest.TestCase):
    def refused(self, words, *turns, **more):
        with self.assertRaisesRegex(code_loops.Unexpected, words):
            counted(list(turns), **more)

    def test_a_loop_that_nothing_is_said_of_is_an_error(self):
        self.refused("a loop that nothing is said of: 'for each slot'")

    def test_so_is_a_description_without_its_loop(self):
        self.refused("there is no loop 'for each cell'", Turns("for each slot", 1), Turns("for each cell", 1))
        self.refused("there is no loop 'for each slot' with jelly", Turns("for each slot", 1, "jelly"))
        self.refused("has no ATOMS", Turns("for each slot", 1, of="ATOMS"))
        self.refused("0 loops are a unit's: 'for each leaf'", Turns("for each slot", 1), loop="for each leaf")
        self.refused("1 loops 'for each slot' and not 2", Turns("for each slot", (1, 2)))


class Model(unittest.TestCase):
    def test_thread_blocks_of_a_multiprocessor(self):
        # As an H100 said of the benchmark's kernels (docs/gpu, h100-after): registers, shared bytes, thread blocks.
        for registers, shared, blocks in ((64, 9600, 8), (40, 0, 12), (104, 0, 4), (47, 1088, 10), (30, 0, 16), (78, 0, 6), (54, 0, 9)):
            self.assertEqual(cost_model.blocks_per_multiprocessor(registers, shared), blocks)

    def test_a_launch_takes_its_longest_queue_and_what_its_warps_wait(self):
        c = counted([Turns("for each slot", 3)])
        parts = c.resources(CARD)
        self.assertAlmostEqual(parts["memory"], 256 * 1000 / CARD.copy_bytes_per_s)
        self.assertAlmostEqual(c.seconds(CARD), cost_model.LAUNCH_S + max(parts.values()) + c.waiting_s())
        self.assertAlmostEqual(c.waiting_s(), c.waiting / cost_model.CLOCK_HZ)  # all are resident at once
        resident = 132 * 16 * 4
        many = counted([Turns("for each slot", 3)], units=1.5 * resident)
        self.assertAlmostEqual(many.waiting_s(), 2 * many.waiting / cost_model.CLOCK_HZ)
        self.assertAlmostEqual(many.uneven(), 2 / 1.5)

    def test_a_tenth_off_is_seen(self):
        head = "what\tname\tunit\tunits\tH100\tH200\tbound"
        now = [head, "launch\tk\tall: 32 items\t1000\t10.0\t9.0\tmemory"]
        self.assertEqual(cost_model.differences(now, [head, "launch\tk\tall: 32 items\t1000\t10.9\t9.0\tmemory"]), [])
        found = cost_model.differences(now, [head, "launch\tk\tall: 32 items\t1000\t11.3\t9.0\tmemory"])
        self.assertEqual(found, ["launch k all: 32 items: H100 is 11.3 in the file, and the code gives 10.0"])
        self.assertEqual(cost_model.differences(now, [head]), ["launch k all: 32 items is not in the file"])


if __name__ == "__main__":
    unittest.main()
