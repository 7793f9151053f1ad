"""Loops of NVIDIA's machine code, and what one turn of each costs a warp.

Reads `nvdisasm -c -g`'s text of one kernel that ptxas assembled with -lineinfo. A loop is a natural loop of the control flow
graph, and has the source line of the branch that closes it. A turn's cost is that of the longest way through the loop's body
by instructions, with the loops inside of it as often as they are said to turn, and without

- the slow ways of divisions and roots, which ptxas makes calls, where there is a way around them;
- what a warp does whose threads have parted (BRA.DIV).

A way's waiting is that of one warp alone: instructions are issued in order, each when its operands are there.
"""
import collections
import re

from machine_code import LABEL, LINE, Instruction, base

FILE = re.compile(r'^\s*//## File "([^"]+)", line (\d+)')
TARGET = re.compile(r"\.L_x_\w+")
FUNCTION = re.compile(r"^(\$?[A-Za-z_$][\w$]*):")
NUMBER = re.compile(r"\b(U?)R(\d+)\b")
PREDICATE = re.compile(r"\bU?P(\d)\b")

Line = collections.namedtuple("Line", "instruction file number")

# Cycles from an instruction's issue to its result's first use: dependent arithmetic 4, transcendentals and what leaves for
# another unit about 20 (Luo et al., arXiv 2402.13499; shared memory 29 cycles, L1 41). Global memory is the caller's.
ARITHMETIC, UNIT, SHARED, BARRIER = 4, 20, 29, 20
UNITS = {"MUFU", "S2R", "S2UR", "R2UR", "I2F", "F2I", "F2F", "I2FP", "F2FP", "POPC", "FLO", "BREV", "SHFL", "VOTE", "VOTEU", "LDC", "MATCH",
         "REDUX", "DADD", "DMUL", "DFMA", "DSETP"}
FP32 = {"FADD", "FMUL", "FFMA", "FSETP", "FSEL", "FMNMX", "FCHK", "FSWZADD"}
FP64 = {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"}
ENDS = {"EXIT", "RET", "BRX", "JMX", "BPT"}


class Unexpected(Exception):
    """The code is not what its description says."""


def parse(text):
    """Lines of the kernel, and {name: lines} of the functions that ptxas put behind it."""
    functions, labels, file, number = {}, [], "", 0
    current = None
    for text_line in text.splitlines():
        named = FUNCTION.match(text_line)
        label = LABEL.match(text_line)
        place = FILE.match(text_line)
        found = LINE.match(text_line)
        if named:
            current = functions.setdefault(named[1], [])
        elif label:
            labels.append(label[1])
        elif place:
            file, number = place[1], int(place[2])
        elif found and current is not None:
            current.append(Line(Instruction(tuple(labels), found[1] or "", found[2], found[3]), file, number))
            labels = []
    if not functions:
        raise Unexpected("nvdisasm printed no function")
    kernel = next(iter(functions))
    return functions.pop(kernel), functions


class Block:
    def __init__(self, lines):
        self.lines = lines
        self.next = []
        self.calls = [line.instruction for line in lines if base(line.instruction) == "CALL"]


def is_conditional(i):
    """A branch that may not be taken: by its predicate, or by one among its operands (BRA.U !UP0, ...)."""
    return bool(i.predicate) or bool(re.match(r"!?U?P\d", i.operands))


def blocks_of(lines):
    """The graph's blocks, from the entry on, in order."""
    starts, targets = {0}, set()
    for at, line in enumerate(lines):
        i = line.instruction
        if base(i) in ("BRA", "BRX", "JMX"):
            targets |= set(TARGET.findall(i.operands))
        if base(i) in ENDS | {"BRA"}:
            starts.add(at + 1)
    place = {}
    for at, line in enumerate(lines):
        for label in line.instruction.labels:
            place[label] = at
            if label in targets:
                starts.add(at)
    order = sorted(at for at in starts if at < len(lines))
    blocks = [Block(lines[at:end]) for at, end in zip(order, order[1:] + [len(lines)])]
    number = {at: n for n, at in enumerate(order)}
    for n, block in enumerate(blocks):
        last = block.lines[-1].instruction
        kind = base(last)
        if kind in ("BRA", "BRX", "JMX") and not last.operation.startswith("BRA.DIV"):
            block.next += [number[place[label]] for label in TARGET.findall(last.operands)]
        falls = kind not in ENDS | {"BRA"} or is_conditional(last) or last.operation.startswith("BRA.DIV")
        if falls and n + 1 < len(blocks):
            block.next.append(n + 1)
        block.next = list(dict.fromkeys(block.next))
    return blocks


def reverse_order(blocks):
    """Blocks that can be reached, each before those that follow it but for loops."""
    seen, order, stack = {0}, [], [(0, iter(blocks[0].next))]
    while stack:
        block, rest = stack[-1]
        following = next((n for n in rest if n not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following].next)))
    return order[::-1]


def dominators(blocks, order):
    """{block: the next above it that every way to it passes} (Cooper, Harvey and Kennedy), and {block: those before it}."""
    before = collections.defaultdict(list)
    for n in order:
        for following in blocks[n].next:
            before[following].append(n)
    rank = {n: at for at, n in enumerate(order)}
    above = {order[0]: order[0]}

    def meet(a, b):
        while a != b:
            while rank[a] > rank[b]:
                a = above[a]
            while rank[b] > rank[a]:
                b = above[b]
        return a

    changed = True
    while changed:
        changed = False
        for n in order[1:]:
            known = [b for b in before[n] if b in above]
            new = known[0]
            for other in known[1:]:
                new = meet(new, other)
            if above.get(n) != new:
                above[n], changed = new, True
    return above, before


class Loop:
    """A loop, or with header 0 and no parent the whole kernel."""

    def __init__(self, header, body, place):
        self.header, self.body, self.place = header, body, place
        self.inner = []

    def walk(self):
        yield self
        for loop in self.inner:
            yield from loop.walk()


def loops_of(blocks):
    """The kernel's whole as a loop, with all loops in it."""
    order = reverse_order(blocks)
    above, before = dominators(blocks, order)
    bodies, closing = {}, {}
    rank = {n: at for at, n in enumerate(order)}

    def is_above(header, n):
        while rank[n] > rank[header]:
            n = above[n]
        return n == header

    for n in order:
        for header in blocks[n].next:
            if rank[header] > rank[n]:
                continue
            if not is_above(header, n):
                raise Unexpected("a loop that is entered at two places")
            body, stack = bodies.setdefault(header, {header}), [n]
            while stack:
                block = stack.pop()
                if block not in body:
                    body.add(block)
                    stack += before[block]
            last = blocks[n].lines[-1]
            closing.setdefault(header, (last.file, last.number))
    whole = Loop(0, set(order), ("", 0))
    for header in sorted(bodies, key=lambda h: (-len(bodies[h]), rank[h])):
        loop, parent = Loop(header, bodies[header], closing[header]), whole
        while (inside := next((inner for inner in parent.inner if header in inner.body), None)) is not None:
            parent = inside
        parent.inner.append(loop)
    for loop in whole.walk():
        loop.inner.sort(key=lambda inner: min(inner.body))
    return whole


def shared_wavefronts(i):
    """What an access of a warp to shared memory takes, without conflicts: 128 bytes at a time."""
    width = 4
    for part in i.operation.split("."):
        if part in ("64", "128"):
            width = int(part) // 8
        elif part in ("U8", "S8", "U16", "S16"):
            width = 4
    return max(1, width // 4)


def bytes_of(i):
    for part in i.operation.split("."):
        if part in ("64", "128"):
            return int(part) // 8
        if part in ("U8", "S8"):
            return 1
        if part in ("U16", "S16"):
            return 2
    return 4


def cost_of(line, lines_and_sectors):
    """What one instruction of a warp takes of each resource. `lines_and_sectors` says how many lines of 128 bytes and sectors of
    32 an access to global memory touches, where threads that are neighbours do not have values side by side."""
    i = line.instruction
    kind, cost = base(i), collections.Counter(issue=1)
    if kind in FP32 or kind in FP64:
        cost["fp32" if kind in FP32 else "fp64"] += 1
    elif kind == "MUFU":
        cost["mufu"] += 1
    elif kind in ("LDG", "LD", "STG", "ST"):
        of = "loads" if kind in ("LDG", "LD") else "stores"
        lines, sectors = lines_and_sectors(line) or (max(1, bytes_of(i) // 4), bytes_of(i))
        cost[of] += 1
        cost[of + "_bytes"] += 32 * bytes_of(i)
        cost["lines"] += lines
        cost["sectors"] += sectors
    elif kind in ("LDL", "STL"):
        cost["stack"] += 1
        cost["lines"] += 1
    elif kind in ("LDS", "STS"):
        cost["shared"] += shared_wavefronts(i)
    elif kind == "ATOMS":
        cost["shared"] += 2
        cost["shared_atomics"] += 1
    elif kind in ("ATOMG", "ATOM", "RED", "REDG"):
        cost["atomics"] += 1
        cost["sectors"] += 1
    elif kind == "SHFL":
        cost["shared"] += 1
    elif kind == "BAR":
        cost["barriers"] += 1
    return cost


class Waiting:
    """One warp alone, in order: when each register is there."""

    def __init__(self, latency_of):
        self.now, self.ready, self.latency_of = 0, {}, latency_of

    def issue(self, line):
        i = line.instruction
        kind = base(i)
        stores = kind in ("STG", "ST", "STS", "STL", "RED", "REDG", "BAR", "BRA", "BRX", "EXIT", "CALL", "RET", "WARPSYNC")
        target, _, rest = i.operands.partition(",")
        read = i.operands if stores else rest
        numbers = set(NUMBER.findall(read)) | {("P", p) for p in PREDICATE.findall(i.predicate + " " + rest)}
        # A register pair's second half.
        numbers |= {(u, str(int(n) + 1)) for u, n in re.findall(r"\b(U?)R(\d+)\.64\b", read)}
        begin = max([self.now + 1] + [self.ready.get(n, 0) for n in numbers])
        self.now = begin
        if stores:
            if kind == "BAR":
                self.now += BARRIER
            return
        ready = begin + self.latency_of(line)
        for u, n in NUMBER.findall(target):
            for k in range(max(1, bytes_of(i) // 4 if kind in ("LDG", "LD", "LDS", "LDL", "LDC") else 2 if ".WIDE" in i.operation else 1)):
                self.ready[u, str(int(n) + k)] = ready
        for p in PREDICATE.findall(target):
            self.ready["P", p] = ready


class Graph:
    """A kernel's blocks and loops, which are the same for all cases."""

    def __init__(self, text):
        lines, self.functions = parse(text)
        self.blocks = blocks_of(lines)
        self.whole = loops_of(self.blocks)
        self.headers = {loop.header for loop in self.whole.walk() if loop is not self.whole}


class Costs:
    """What turns of loops cost. `lines_and_sectors` and `memory_latency` are asked of lines that access global memory; blocks with
    instructions `rarely` run are passed where there is a way around them."""

    def __init__(self, graph, lines_and_sectors, memory_latency, rarely=()):
        self.graph, self.blocks, self.whole, self.rarely = graph, graph.blocks, graph.whole, rarely
        self.lines_and_sectors, self.memory_latency = lines_and_sectors, memory_latency

    def latency_of(self, line):
        kind = base(line.instruction)
        if kind in ("LDG", "LD", "ATOMG", "ATOM"):
            return self.memory_latency(line)
        if kind in ("LDS", "ATOMS"):
            return SHARED
        if kind in ("LDL",):
            return 41
        return UNIT if kind in UNITS else ARITHMETIC

    def block_cost(self, n):
        total = collections.Counter()
        for line in self.blocks[n].lines:
            total += cost_of(line, self.lines_and_sectors)
            if base(line.instruction) == "CALL":
                called = next((body for name, body in self.graph.functions.items() if name in line.instruction.operands), [])
                for inner in called:
                    total += cost_of(inner, self.lines_and_sectors)
        return total

    def turn(self, loop, turns):
        """(cost, waiting) of one turn: the longest way from the loop's header to a branch back, or of the whole to its end.
        `turns(inner loop)` says how often that turns meanwhile."""
        inner_of, costs, waits = {}, {}, {}
        for inner in loop.inner:
            cost, wait = self.turn(inner, turns)
            n = turns(inner)
            costs[inner.header] = collections.Counter({key: n * value for key, value in cost.items()})
            waits[inner.header] = n * wait
            for block in inner.body:
                inner_of[block] = inner
        for block in loop.body:
            if block not in inner_of:
                costs[block], waits[block] = self.block_cost(block), None
        node = {block: inner_of[block].header if block in inner_of else block for block in loop.body}
        following = collections.defaultdict(set)
        for block in loop.body:
            for n in self.blocks[block].next:
                if n in loop.body and n != loop.header and node[n] != node[block]:
                    following[node[block]].add(node[n])
        if loop is self.whole:
            ends = {block for block in node.values() if not following[block]}
        else:
            ends = {node[block] for block in loop.body if loop.header in self.blocks[block].next}
        best = self.longest(node[loop.header], following, ends, costs)
        total = collections.Counter()
        waiting = Waiting(self.latency_of)
        waited = 0
        for n in best:
            total += costs[n]
            if waits[n] is None:
                for line in self.blocks[n].lines:
                    waiting.issue(line)
            else:
                waited += waits[n]
        waited += max(0, waiting.now - sum(len(self.blocks[n].lines) for n in best if waits[n] is None))
        return total, waited

    def longest(self, first, following, ends, costs):
        def weight(n):
            # A slow way is taken only where there is no other.
            return costs[n]["issue"] - (1e9 if n not in self.graph.headers and self.is_avoided(n) else 0)

        best = {}

        def visit(start):
            stack = [start]
            while stack:
                n = stack[-1]
                missing = [m for m in following[n] if m not in best]
                if missing:
                    stack += missing
                    continue
                stack.pop()
                if n in best:
                    continue
                options = [best[m] for m in following[n] if best[m] is not None]
                behind = max(options, key=lambda way: way[0]) if options else None
                if n in ends and (behind is None or behind[0] < 0):
                    behind = (0, ())
                best[n] = None if behind is None else (behind[0] + weight(n), (n, behind[1]))

        visit(first)
        if best[first] is None:
            raise Unexpected("no way through a loop")
        way, links = [], best[first][1]
        while links:
            way.append(links[0])
            links = links[1]
        return way

    def is_avoided(self, n):
        block = self.blocks[n]
        return bool(block.calls) or any(base(line.instruction) in self.rarely for line in block.lines)
