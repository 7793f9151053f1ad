"""Random kernels as syntax trees, from a seed.

Every expression is defined for all values of its operands (prelude.h), so that any part of a kernel may be dropped or
replaced by another of its type and what is left is a kernel again: that is what the reducer does.
"""
import random
from dataclasses import dataclass

from shapes import BYTES, EXTENTS, REACHES, SHAPES
from syntax import E, Kernel, S

# Types of expressions: i, l (integers of 32 and 64 bits), f, d (floats of 32 and 64 bits).
C_TYPES = {"i": "int32_t", "l": "int64_t", "f": "float", "d": "double"}
HANDLE_TO_TYPE = {"u8": "i", "i16": "i", "i32": "i", "i64": "l", "f32": "f", "f64": "d"}
HANDLE_C_TYPES = {"u8": "uint8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}
CONSTANTS = {
    "i": ["0", "1", "-1", "2", "3", "7", "31", "255", "-5", "INT32_MIN", "INT32_MAX", "0x55555555"],
    "l": ["int64_t{0}", "int64_t{1}", "int64_t{-1}", "int64_t{3}", "INT64_MIN", "INT64_MAX", "(int64_t{1} << 33)"],
    "f": ["0.0f", "-0.0f", "1.0f", "-1.0f", "0.5f", "3.0f", "1e-3f", "INFINITY", "NAN", "1e-42f", "3e38f", "-2.75f"],
    "d": ["0.0", "-0.0", "1.0", "-1.0", "0.5", "3.0", "1e-3", "(double)INFINITY", "(double)NAN", "5e-320", "1e300", "-2.75"],
}
WHOLE_CONSTANTS = {"f": ["0.0f", "1.0f", "-1.0f", "3.0f", "-5.0f"], "d": ["0.0", "1.0", "-1.0", "3.0", "-5.0"]}
ZERO = {"i": "0", "l": "int64_t{0}", "f": "0.0f", "d": "0.0"}

INTEGER_CALLS = ["add", "add", "sub", "sub", "mul", "div", "rem", "udiv", "shl", "sar", "shr", "min", "max", "mulhi"]
LIBM_1 = ["sin", "cos", "tan", "exp", "log", "exp2", "log2", "log10", "sqrt", "floor", "ceil", "trunc", "round", "fabs",
          "cbrt", "tanh", "sinh", "cosh", "atan", "asin", "acos", "expm1", "log1p", "erf", "rint", "nearbyint"]
LIBM_2 = ["fmod", "hypot", "atan2", "remainder", "fdim"]
# Functions that the runtime lacked once.
LIBM_LATE_1 = ["frexp_sum", "modf_sum", "logb"]
LIBM_LATE_2 = ["nextafter"]
POWERS = ["pow_2", "pow_minus_1", "pow_1", "pow_0", "pow_half", "pow_3", "pow_third"]


@dataclass
class Options:
    """What kernels may hold."""
    fast_math: bool = True
    powers: bool = True
    neighbours: bool = True
    arrays: bool = True
    libm: bool = True
    late_libm: bool = True
    aliases: bool = True
    # Sums of products compared bit by bit: the compiler must keep to `#pragma clang fp contract(off)`.
    sums_of_products: bool = True
    early_exits: bool = True


# So many seeds in a row share a few shapes: clang then makes the templates of their handles once.
KERNELS_PER_SHAPES = 100


def shapes_of(group):
    rng = random.Random(f"shapes {group}")
    kinds = ["Cell"] * 6 + ["Item", "Team", "Block", "BlockTeam", "Entry", "Append", "Grow"]
    return [rng.choice([s for s in SHAPES if s.kind() == kind]) for kind in kinds]


class Scope:
    def __init__(self, parent=None):
        self.vars, self.arrays, self.structs = [], [], []
        self.fixed = []
        self.parent = parent

    def collect(self, what):
        found = list(getattr(self, what))
        return found + (self.parent.collect(what) if self.parent else [])


class Generator:
    def __init__(self, seed, options):
        self.rng = random.Random(seed)
        self.seed, self.options = seed, options
        self.names = 0
        self.features = set()
        rng = self.rng
        self.shape = rng.choice(shapes_of(seed // KERNELS_PER_SHAPES))
        self.has_products = options.sums_of_products or rng.random() < 0.5
        self.has_sums = options.sums_of_products or not self.has_products
        self.uses_libm = options.libm and rng.random() < 0.35
        self.uses_arrays = options.arrays and rng.random() < 0.5
        self.uses_structs = rng.random() < 0.3
        # Every access of a handle is much code for the inliner, so that kernels that have many are slow to compile.
        self.reads_again = rng.choice([0.05, 0.05, 0.3])
        self.size = rng.choice([1, 1, 1, 1, 1, 2])
        stores = {h.type for h in self.shape.handles if h.role in ("Write", "Update")}
        self.fast = options.fast_math and bool(stores & {"f32", "f64"}) and rng.random() < 0.15
        self.uses_powers = options.powers and not self.fast and rng.random() < 0.1
        self.uses_neighbours = options.neighbours and "Block" in self.shape.place and rng.random() < 0.5
        self.neighbours = self.outside = False
        self.kind = self.shape.kind()
        self.sets_elements = rng.random() < 0.3  # by their index, each by one item, instead of appending
        # Of a team: before or behind its barrier, and the variable that tells its items apart.
        self.phase, self.team_index = 0, None
        self.block_index = None  # of a Block kernel's loop over its values

    def new_name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # Expressions.

    def constant(self, type):
        return E(type, self.rng.choice(CONSTANTS[type]))

    def leaves(self, type, scope):
        """Ways to name a value of a type, each a function that makes the expression."""
        rng, found = self.rng, []
        for name, t in scope.collect("vars") + scope.collect("fixed"):
            if t == type:
                found.append(lambda name=name: E(type, name, name=name))
        for name, t, n in scope.collect("arrays"):
            if t == type:
                found += [lambda name=name, n=n: self.element(name, type, n, scope)] * 2
        for name in scope.collect("structs"):
            member = {"i": ".a", "f": ".b", "d": ".d"}.get(type)
            if member:
                found.append(lambda name=name: E(type, name + member, name=name))
            if type == "i":
                found.append(lambda name=name: E("i", name + ".c[m::at({}, 3)]", [self.index(scope)], name))
        if not found or rng.random() < self.reads_again:
            found += [lambda r=r: r for r in self.reads(type)]
        return found

    def element(self, name, type, n, scope):
        return E(type, name + "[m::at({}, " + str(n) + ")]", [self.index(scope)], name)

    def index(self, scope):
        """An integer, not of an array, or indices would never end."""
        names = [name for name, t in scope.collect("vars") + scope.collect("fixed") if t == "i"]
        if names and self.rng.random() < 0.8:
            name = self.rng.choice(names)
            return E("i", name, name=name)
        return self.rng.choice(self.reads("i") or [self.constant("i")])

    def reads(self, type):
        """What handles and arguments give."""
        shape, found = self.shape, []
        if shape.place in ("Item", "Team"):
            found += self.array_reads(type)
        elif type == "i":
            found += self.coordinate_reads()
        if type == "i" and "Block" not in shape.place:
            found.append(E("i", "p0"))
        if type == "f":
            found.append(E("f", "p1"))
        for k, h in enumerate(shape.handles):
            if HANDLE_TO_TYPE[h.type] == type and h.role in ("Read", "Update"):
                found += self.block_reads(k, h) if "Block" in shape.place else [self.handle_read(k, h)] * 3
        return found

    def item(self):
        """The index into the arrays, and the name that it uses."""
        if self.shape.place == "Item":
            return "cell", None
        return f"m::kTeamItems * cell.index + {self.team_index}", self.team_index

    def array_reads(self, type):
        if type == "l" or (self.shape.place == "Team" and self.team_index is None):
            return []
        at, name = self.item()
        found = [E(type, f"in_{type}[{at} + {self.rng.randint(0, 2)}]", name=name)] * 3
        if type == "i":
            found.append(E("i", f"(int32_t)({at})", name=name))
        if type == "i" and self.phase == 2:  # what another lane stored
            other = f"m::at({self.team_index} + {self.rng.randint(1, 3)}, m::kTeamItems)"
            return found + [E("i", f"out_i[m::kTeamItems * cell.index + {other}]", name=name)] * 3
        if self.kind == "Append" and type == "i":
            found += self.list_reads()
        if self.kind == "Grow" and type == "i":
            found += [E("i", f"(int32_t)h0.is_active(cell, {{{self.own_cell()}}})")] * 2
        if self.kind in ("Append", "Grow"):
            return found  # a launch that runs out of memory is repeated
        return found + [E(type, f"out_{type}[{at}]", name=name)]

    def own_cell(self):
        """A cell that no other item has."""
        extents, parts, stride = EXTENTS[self.shape.dims], [], 1
        for extent in reversed(extents):
            parts.insert(0, f"(int32_t)cell / {stride} % {extent}")
            stride *= extent
        return ", ".join(parts)

    def any_cell(self):
        """The text of a cell's coordinate, and the expressions in it."""
        extents = EXTENTS[self.shape.dims]
        return ", ".join(f"(int32_t)m::at({{}}, {extent})" for extent in extents), [self.small_integer() for _ in extents]

    def small_integer(self):
        rng = self.rng
        return E("i", rng.choice(["(int32_t)cell", "p0", f"in_i[cell + {rng.randint(0, 2)}]", f"{rng.randint(0, 3)}"]))

    def list_reads(self):
        self.outside = True  # elements that a list does not have are zeros, and the checks refuse them
        text, kids = self.any_cell()
        length = E("i", f"(int32_t)h1.length(cell, {{{{{text}}}}})", kids)
        text, kids = self.any_cell()
        return [length] + [E("i", f"h1.at(cell, {{{{{text}}}}}, m::at({{}}, 9))", kids + [self.small_integer()])] * 2

    def change_tree(self, depth, scope, in_loop):
        rng = self.rng
        value = self.expr(HANDLE_TO_TYPE[self.shape.handles[0].type], 2, scope)
        if self.kind == "Append":
            if self.sets_elements:
                lists = EXTENTS[self.shape.dims][-1]
                own = ", ".join(["0"] * (self.shape.dims - 1) + [f"(int32_t)cell % {lists}"])
                return [S("assign", f"h0.set(cell, {{{{{own}}}}}, cell / {lists}, {{}});", [value])]
            text, kids = self.any_cell()
            return [S("assign", f"h0.append(cell, {{{{{text}}}}}, {{}});", kids + [value])]
        way = rng.random()
        if way < 0.5:
            return [S("assign", f"h0.set(cell, {{{{{self.own_cell()}}}}}, {{}});", [value])]
        word = "activate" if way < 0.7 else "deactivate"
        return [S("assign", f"h0.{word}(cell, {{{self.own_cell()}}});")]

    def coordinate_reads(self):
        rng, shape = self.rng, self.shape
        found = [E("i", f"cell.coord({rng.randrange(shape.dims)})")]
        if shape.table:
            found.append(E("i", "table[m::at({}, 16)]", [E("i", f"cell.coord({rng.randrange(shape.dims)})")]))
        if shape.place == "Entry":
            found.append(E("i", "(int32_t)cell.index"))
        if self.phase == 2 and self.block_index:
            near = f"m::at({self.block_index} + {rng.randint(0, 9)}, p0)"
            found += [E("i", f"m::fast(cell)[{near}]", name=self.block_index)] * 4
        return found

    def block_reads(self, k, h):
        if not self.block_index:
            return []
        type = HANDLE_TO_TYPE[h.type]
        data = f"h{k}.data(cell)"
        if self.uses_neighbours and h.role == "Read" and self.rng.random() < 0.6:
            self.neighbours = True
            away = ", ".join(str(self.rng.choice([-1, 0, 1, 1])) for _ in range(self.shape.dims))
            data = f"h{k}.neighbour_data(cell, {{{away}}})"
        return [E(type, f"(({C_TYPES[type]}){data}[{self.block_index}])", name=self.block_index)] * 3

    def handle_read(self, k, h):
        type, text = HANDLE_TO_TYPE[h.type], f"h{k}[cell]"
        if h.reach and not (h.flag and self.rng.random() < 0.5):
            text = f"h{k}(cell, {', '.join(map(str, self.offset(h.reach)))})"
        return E(type, f"(({C_TYPES[type]}){text})" if h.type in ("u8", "i16") else text)

    def offset(self, reach):
        radius, dims = REACHES[reach], self.shape.dims
        if reach.startswith("Star"):
            at = [0] * dims
            at[self.rng.randrange(dims)] = self.rng.randint(-radius, radius)
            return at
        return [self.rng.randint(-radius, radius) for _ in range(dims)]

    def leaf(self, type, scope):
        rng = self.rng
        ways = self.leaves(type, scope)
        if ways and rng.random() < 0.85:
            found = rng.choice(ways)()
            return E(type, "m::whole({})", [found]) if self.fast and type in "fd" else found
        if self.fast and type in "fd":
            return E(type, rng.choice(WHOLE_CONSTANTS[type]))
        return self.constant(type)

    def expr(self, type, depth, scope):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2:
            return self.leaf(type, scope)
        sub = lambda t: self.expr(t, depth - 1, scope)
        way = rng.random()
        if way < 0.08:
            return E(type, "({} ? {} : {})", [self.condition(depth - 1, scope), sub(type), sub(type)])
        if way < 0.2:
            return self.conversion(type, sub)
        if type in "il":
            return self.integer(type, sub)
        return self.floating(type, sub)

    def conversion(self, type, sub):
        rng = self.rng
        if self.fast:
            return self.whole_conversion(type, sub)
        other = rng.choice([t for t in "ilfd" if t != type])
        if type == "i":
            if other == "l":
                return E("i", "(int32_t){}", [sub("l")])
            return E("i", "m::bits({})" if other == "f" and rng.random() < 0.4 else "m::to_i32({})", [sub(other)])
        if type == "l":
            if other == "i":
                return E("l", "(int64_t){}", [sub("i")])
            return E("l", "m::bits({})" if other == "d" and rng.random() < 0.4 else "m::to_i64({})", [sub(other)])
        if (type, other) == ("f", "i") and rng.random() < 0.3:
            return E("f", "m::from_bits({})", [sub("i")])
        if (type, other) == ("d", "l") and rng.random() < 0.3:
            return E("d", "m::from_bits({})", [sub("l")])
        return E(type, "(float){}" if type == "f" else "(double){}", [sub(other)])

    def whole_conversion(self, type, sub):
        """What is whole stays so, and nothing tells the zeros apart."""
        if type in "il":
            return E(type, f"({C_TYPES[type]})m::to_i32({{}})", [sub(self.rng.choice("fd"))])
        if self.rng.random() < 0.5:
            return E(type, f"({C_TYPES[type]})({{}} & 7)", [sub("i")])
        return E(type, f"({C_TYPES[type]}){{}}", [sub("d" if type == "f" else "f")])

    def whole_floating(self, type, sub):
        """Exact in any order: of two levels of operations, on small whole numbers."""
        way = self.rng.random()
        if way < 0.7:
            return E(type, f"m::{self.rng.choice(['add', 'add', 'sub', 'mul'])}({{}}, {{}})", [sub(type), sub(type)])
        if way < 0.85:
            return E(type, f"m::{self.rng.choice(['min', 'max'])}({{}}, {{}})", [sub(type), sub(type)])
        return E(type, self.rng.choice(["m::neg({})", "std::fabs({})"]), [sub(type)])

    def integer(self, type, sub):
        rng = self.rng
        way = rng.random()
        if way < 0.62:
            return E(type, f"m::{rng.choice(INTEGER_CALLS)}({{}}, {{}})", [sub(type), sub(type)])
        if way < 0.8:
            return E(type, "({} " + rng.choice("&|^") + " {})", [sub(type), sub(type)])
        if type == "i" and way < 0.9:
            name = rng.choice(["popcount", "clz", "ctz", "neg", "abs", "add_overflows"])
            two = name == "add_overflows"
            return E("i", f"m::{name}({{}}{', {}' if two else ''})", [sub("i")] + ([sub("i")] if two else []))
        if type == "i" and way < 0.95:
            return E("i", "(int32_t)(" + rng.choice(["int8_t", "uint8_t", "int16_t", "uint16_t"]) + "){}", [sub("i")])
        return E(type, "(" + rng.choice(["~", "-"]) + "({} >> 1))", [sub(type)])

    def floating(self, type, sub):
        rng = self.rng
        if self.fast:
            return self.whole_floating(type, sub)
        if self.uses_powers and rng.random() < 0.3:
            self.features.add("pow")
            return E(type, f"m::{rng.choice(POWERS)}({{}})", [sub(type)])
        way = rng.random()
        if self.uses_libm and way < 0.3:
            return self.library_call(type, sub)
        if way < 0.75:
            names = (["add", "sub"] if self.has_sums else []) + (["mul", "div"] if self.has_products else [])
            return E(type, f"m::{rng.choice(names)}({{}}, {{}})", [sub(type), sub(type)])
        if way < 0.9:
            return E(type, f"m::{rng.choice(['min', 'max', 'copysign'])}({{}}, {{}})", [sub(type), sub(type)])
        return E(type, rng.choice(["m::neg({})", "std::fabs({})", "std::sqrt({})"]), [sub(type)])

    def library_call(self, type, sub):
        rng = self.rng
        self.features.add("libm")
        one, two = list(LIBM_1), list(LIBM_2)
        if self.options.late_libm:
            one, two = one + LIBM_LATE_1, two + LIBM_LATE_2
        way = rng.random()
        if way < 0.7:
            name = rng.choice(one)
            prefix = "m::" if name.endswith("_sum") else "std::"
            return E(type, f"{prefix}{name}({{}})", [sub(type)])
        if way < 0.9:
            name = rng.choice(two)
            return E(type, f"{'m' if name == 'nextafter' else 'std'}::{name}({{}}, {{}})", [sub(type), sub(type)])
        if not self.options.late_libm:
            return E(type, "std::fma({}, {}, {})", [sub(type), sub(type), sub(type)])
        if way < 0.93:
            return E(type, "std::fma({}, {}, {})", [sub(type), sub(type), sub(type)])
        if way < 0.97:
            return E(type, f"m::{rng.choice(['scalbn', 'ldexp'])}({{}}, {{}})", [sub(type), sub("i")])
        return E(type, "(" + C_TYPES[type] + ")m::ilogb({})", [sub(type)])

    def condition(self, depth, scope):
        rng = self.rng
        type = rng.choice("iiilfd")
        a, b = self.expr(type, depth, scope), self.expr(type, min(depth, 1), scope)
        return E("i", "({} " + rng.choice(["<", "<=", ">", ">=", "==", "!="]) + " {})", [a, b])

    # Statements.

    def statements(self, count, depth, scope, in_loop=False):
        return [s for _ in range(count) for s in self.statement(depth, scope, in_loop)]

    def statement(self, depth, scope, in_loop):
        rng = self.rng
        ways = [(4, self.declare), (4, self.assign), (5, self.store)]
        if depth > 0:
            ways += [(2, self.branch), (2, self.loop), (0.7, self.switch)]
        if self.uses_arrays:
            ways += [(3, self.declare_array), (2, self.store_element), (0.8, self.copy_array), (0.8, self.swap)]
        if self.uses_structs:
            ways += [(1.5, self.declare_struct), (1.5, self.store_member)]
        if self.kind in ("Append", "Grow"):
            ways += [(5, self.change_tree)]
        if in_loop and self.options.early_exits:
            ways += [(0.5, self.leave_loop)]
        if self.options.early_exits and "Team" not in self.shape.place:  # all lanes come to a barrier
            ways += [(0.15, self.leave)]
        if self.own_flag() is not None:
            ways += [(2, self.need_activity)]
        way = rng.choices([f for _, f in ways], [w for w, _ in ways])[0]
        return way(depth, scope, in_loop)

    def declare(self, depth, scope, in_loop):
        type = self.rng.choice("iiilffd")
        value = self.expr(type, 2, scope)
        name = self.new_name("v")
        scope.vars.append((name, type))
        return [S("decl", f"{C_TYPES[type]} {name} = {{}};", [value], name=name)]

    def assign(self, depth, scope, in_loop):
        found = scope.collect("vars")
        if not found:
            return self.declare(depth, scope, in_loop)
        name, type = self.rng.choice(found)
        return [S("assign", f"{name} = {{}};", [self.expr(type, 2, scope)], uses=name)]

    def declare_array(self, depth, scope, in_loop):
        rng = self.rng
        type, n = rng.choice("iifld"), rng.randint(2, 5)
        values = [self.expr(type, 1, scope) for _ in range(n)]
        name = self.new_name("a")
        scope.arrays.append((name, type, n))
        self.features.add("array")
        return [S("decl", f"{C_TYPES[type]} {name}[{n}] = {{{{" + ", ".join(["{}"] * n) + "}};", values, name=name)]

    def store_element(self, depth, scope, in_loop):
        found = scope.collect("arrays")
        if not found:
            return self.declare_array(depth, scope, in_loop)
        name, type, n = self.rng.choice(found)
        return [S("assign", name + "[m::at({}, " + str(n) + ")] = {};", [self.expr("i", 2, scope), self.expr(type, 2, scope)],
                  uses=name)]

    def copy_array(self, depth, scope, in_loop):
        found = scope.collect("arrays")
        pairs = [(a, b) for a in found for b in found if a[0] != b[0] and a[1:] == b[1:]]
        made = []
        if not pairs and found:
            b = self.rng.choice(found)
            name = self.new_name("a")
            values = [self.constant(b[1]) for _ in range(b[2])]
            made = [S("decl", f"{C_TYPES[b[1]]} {name}[{b[2]}] = {{{{" + ", ".join(["{}"] * b[2]) + "}};", values, name=name)]
            pairs = [((name, b[1], b[2]), b)]
            scope.arrays.append(pairs[0][0])
        if not pairs:
            return self.store_element(depth, scope, in_loop)
        a, b = self.rng.choice(pairs)
        return made + [S("copy", f"std::memcpy({a[0]}, {b[0]}, sizeof {a[0]});", uses=(a[0], b[0]))]

    def swap(self, depth, scope, in_loop):
        found = scope.collect("arrays")
        if not found:
            return self.declare_array(depth, scope, in_loop)
        name, type, n = self.rng.choice(found)
        if self.rng.random() < 0.5:
            return [S("assign", f"m::swap({name}[m::at({{}}, {n})], {name}[m::at({{}}, {n})]);",
                      [self.index(scope), self.index(scope)], uses=name)]
        return [S("assign", f"*m::pick(&{name}[0], &{name}[{n - 1}], {{}}) = {{}};",
                  [self.condition(1, scope), self.expr(type, 1, scope)], uses=name)]

    def declare_struct(self, depth, scope, in_loop):
        values = [self.expr(t, 1, scope) for t in "ifiiid"]
        name = self.new_name("s")
        scope.structs.append(name)
        self.features.add("struct")
        return [S("decl", f"m::Mixed {name} = {{{{{{}}, {{}}, {{{{{{}}, {{}}, {{}}}}}}, {{}}}}}};", values, name=name)]

    def store_member(self, depth, scope, in_loop):
        found = scope.collect("structs")
        if not found:
            return self.declare_struct(depth, scope, in_loop)
        rng = self.rng
        name = rng.choice(found)
        if len(found) > 1 and rng.random() < 0.3:
            other = rng.choice(found)
            return [S("copy", f"{name} = {other};", uses=(name, other))]
        type, member = rng.choice([("i", ".a"), ("f", ".b"), ("d", ".d"), ("i", ".c[m::at({}, 3)]")])
        index = [self.expr("i", 1, scope)] if "{}" in member else []
        return [S("assign", name + member + " = {};", index + [self.expr(type, 2, scope)], uses=name)]

    def branch(self, depth, scope, in_loop):
        rng = self.rng
        then = self.statements(rng.randint(1, 2), depth - 1, Scope(scope), in_loop)
        other = self.statements(rng.randint(1, 2), depth - 1, Scope(scope), in_loop) if rng.random() < 0.5 else []
        return [S("if", "if {}", [self.condition(2, scope)], [then, other])]

    def loop(self, depth, scope, in_loop):
        rng = self.rng
        name = self.new_name("k")
        if rng.random() < 0.5:
            limit = E("i", str(rng.randint(1, 9)))
        else:
            limit = E("i", "({} & 7)", [self.expr("i", 2, scope)])
        inner = Scope(scope)
        inner.fixed.append((name, "i"))
        body = self.statements(rng.randint(1, 2), depth - 1, inner, True)
        if rng.random() < 0.3:
            form, exprs = f"for (int32_t {name} = 0; {name} < {{}} && {{}}; ++{name})", [limit, self.condition(1, scope)]
        else:
            form, exprs = f"for (int32_t {name} = 0; {name} < {{}}; ++{name})", [limit]
        return [S("loop", form, exprs, [body], name=name)]

    def switch(self, depth, scope, in_loop):
        n = self.rng.randint(2, 4)
        bodies = [self.statements(1, depth - 1, Scope(scope), False) for _ in range(n)]
        return [S("switch", f"switch (m::at({{}}, {n}))", [self.expr("i", 2, scope)], bodies)]

    def leave_loop(self, depth, scope, in_loop):
        word = S("jump", self.rng.choice(["break;", "continue;"]))
        return [S("if", "if {}", [self.condition(1, scope)], [[word], []])]

    def leave(self, depth, scope, in_loop):
        return [S("if", "if {}", [self.condition(1, scope)], [[S("jump", "return;")], []])]

    def own_flag(self):
        """The handle that is 1 in every active cell, if there is one that reads the own cell."""
        flags = [k for k, h in enumerate(self.shape.handles) if h.flag and not h.reach]
        return flags[0] if flags else None

    def need_activity(self, depth, scope, in_loop):
        """What traps or never ends where it runs for a cell that is not active."""
        rng, flag = self.rng, f"h{self.own_flag()}[cell]"
        self.features.add("active cells only")
        way = rng.randrange(3 if depth > 0 else 2)
        name = self.new_name("v" if way < 2 else "k")
        if way == 0:
            value = S("decl", f"int32_t {name} = {{}} / {flag};", [self.leaf("i", scope)], name=name)
            scope.vars.append((name, "i"))
            return [value]
        if way == 1:
            return [S("assign", f"if ({flag} == 0) *(volatile int32_t*)8 = 0;")]
        inner = Scope(scope)
        inner.fixed.append((name, "i"))
        body = self.statements(1, depth - 1, inner, False)
        return [S("loop", f"for (int32_t {name} = 0; {name} < 5; {name} += {flag})", [], [body], name=name)]

    def store(self, depth, scope, in_loop):
        """A value to a handle or an argument's array."""
        rng, shape = self.rng, self.shape
        if shape.place in ("Item", "Team"):
            type = rng.choice("ifd" if self.phase == 0 else "i" if self.phase == 1 else "fd")
            at, name = self.item()
            return [S("assign", f"out_{type}[{at}] = {{}};", [self.expr(type, 2, scope)], uses=name)]
        if self.phase == 1:
            return [S("assign", f"m::fast(cell)[{self.block_index}] = {{}};", [self.expr("i", 2, scope)],
                      uses=self.block_index)]
        if shape.place == "Block" and self.block_index is None:
            return self.loop_over_block(depth, scope)
        k, h = rng.choice([(k, h) for k, h in enumerate(shape.handles) if h.role != "Read"])
        type = HANDLE_TO_TYPE[h.type]
        if h.role == "Accumulate":
            return self.accumulate(k, h, scope)
        value = self.expr(type, 2, scope)
        to = f"h{k}.data(cell)[{self.block_index}]" if "Block" in shape.place else f"h{k}[cell]"
        cast = f"({HANDLE_C_TYPES[h.type]})" if h.type in ("u8", "i16") else ""
        return [S("assign", f"{to} = {cast}({{}});" if cast else f"{to} = {{}};", [value], uses=self.block_index)]

    def loop_over_block(self, depth, scope):
        name = self.new_name("b")
        inner = Scope(scope)
        inner.fixed.append((name, "i"))
        self.block_index = name
        body = self.store(depth, inner, True) + self.statements(self.rng.randint(0, 2), max(depth - 1, 0), inner, True)
        self.block_index = None
        return [S("loop", f"for (int32_t {name} = 0; {name} < p0; ++{name})", [], [body], name=name)]

    def accumulate(self, k, h, scope):
        rng, dims = self.rng, self.shape.dims
        flag = next(j for j, other in enumerate(self.shape.handles) if other.flag)
        exact = h.type in ("f32", "f64")
        value = E("i", "({} & 15)", [self.expr("i", 2, scope)]) if exact else self.expr(HANDLE_TO_TYPE[h.type], 2, scope)
        text = f"({HANDLE_C_TYPES[h.type]}){{}}" if exact else "{}"
        self.features.add("accumulate")
        if h.reach:
            offset = ", ".join(map(str, self.offset(h.reach)))
            guard, to = f"h{flag}(cell, {offset}) != 0", f"{{{{{offset}}}}}"
        else:
            shift = [rng.choice([0, 0, 1, -1]) for _ in range(dims)]
            self.outside |= any(shift)
            to = "{{" + ", ".join(f"cell.coord({d})" + (f" + {s}" if s else "") for d, s in enumerate(shift)) + "}}"
            guard = f"h{flag}.at(cell, {to}) != 0"
        return [S("assign", f"if ({guard}) h{k}.add(cell, {to}, {text});", [value])]

    def kernel(self):
        rng = self.rng
        scope = Scope()
        body = self.load_values(scope)
        if "Team" in self.shape.place:
            scope.fixed, scope.vars = scope.vars, []  # which items a lane had before must not tell
            return self.finished(body + self.team_phases(scope))
        body += self.statements(rng.choice([1, 1, 2, 3]) * self.size, self.size, scope)
        if self.kind in ("Append", "Grow"):
            body += self.change_tree(1, scope, False)
        return self.finished(body + self.store(1, scope, False))

    def finished(self, body):
        fields, aliased = self.choose_fields()
        return Kernel(self.seed, self.shape, body, fields, aliased, self.fast, self.neighbours, self.outside,
                      self.features)

    def team_phases(self, scope):
        """Lanes store their items, meet, and read what others stored."""
        rng, body = self.rng, []
        for self.phase in (1, 2):
            name = self.new_name("t")
            inner = Scope(scope)
            inner.fixed.append((name, "i"))
            self.team_index = self.block_index = name
            one = self.load_values(inner) + self.statements(rng.choice([0, 1, 1, 2]), 1, inner)
            one += self.store(1, inner, False)
            limit = "m::kTeamItems" if self.shape.place == "Team" else "p0"
            body.append(S("loop", f"for (int32_t {name} = cell.lane(); {name} < {limit}; {name} += cell.lanes())", [], [one],
                          name=name))
            if self.phase == 1:
                body.append(S("barrier", "cell.barrier();"))
        return body

    def load_values(self, scope):
        """Variables of some types, of what the kernel is given."""
        loaded = []
        for type in self.rng.sample("ilfd", 2):
            values = self.reads(type)
            if not values:
                continue
            name = self.new_name("v")
            scope.vars.append((name, type))
            loaded.append(S("decl", f"{C_TYPES[type]} {name} = {{}};", [self.rng.choice(values)], name=name))
        return loaded

    def choose_fields(self):
        rng, counts, fields = self.rng, {}, []
        for h in self.shape.handles:
            if h.flag:
                fields.append("i32:99")
                continue
            number = counts.get(BYTES[h.type], 0)
            counts[BYTES[h.type]] = number + 1
            exact = h.type in ("f32", "f64") and (h.role == "Accumulate" or self.fast)
            fields.append(f"{h.type}:{number + (50 if exact else 0)}")
        handles = self.shape.handles
        own = [k for k, h in enumerate(handles) if not h.reach and not h.flag and h.role != "Accumulate"]
        pairs = [(a, b) for a in own for b in own if a < b and handles[a].type == handles[b].type and handles[b].role != "Read"]
        aliased = bool(self.options.aliases and pairs and not self.neighbours and rng.random() < 0.4)
        if aliased:
            a, b = rng.choice(pairs)
            fields[b] = fields[a]
        return fields, aliased


def generate(seed, options):
    return Generator(seed, options).kernel()
