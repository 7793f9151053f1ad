"""A kernel as a syntax tree, and its text."""
from dataclasses import dataclass, field, replace


class E:
    """An expression: text with a {} for each operand."""
    __slots__ = ("type", "form", "kids", "name")

    def __init__(self, type, form, kids=(), name=None):
        self.type, self.form, self.kids, self.name = type, form, list(kids), name

    def text(self):
        return self.form.format(*[k.text() for k in self.kids]) if self.kids else self.form

    def copy(self):
        return E(self.type, self.form, [k.copy() for k in self.kids], self.name)

    def size(self):
        return 1 + sum(k.size() for k in self.kids)


class S:
    """A statement: text with a {} for each expression, then bodies in braces. `name` is what it declares or uses."""
    __slots__ = ("kind", "form", "exprs", "bodies", "name", "uses")

    def __init__(self, kind, form, exprs=(), bodies=(), name=None, uses=None):
        self.kind, self.form, self.exprs, self.bodies = kind, form, list(exprs), [list(b) for b in bodies]
        self.name, self.uses = name, uses

    def lines(self, indent):
        head = self.form.format(*[e.text() for e in self.exprs]) if self.exprs else self.form
        if self.kind == "switch":
            yield indent + head + " {"
            for k, body in enumerate(self.bodies):
                label = f"case {k}:" if k + 1 < len(self.bodies) else "default:"
                yield indent + "  " + label + " {"
                for s in body:
                    yield from s.lines(indent + "    ")
                yield indent + "    break;"
                yield indent + "  }"
            yield indent + "}"
        elif self.bodies:
            yield indent + head + " {"
            for s in self.bodies[0]:
                yield from s.lines(indent + "  ")
            for body in self.bodies[1:]:
                if body:
                    yield indent + "} else {"
                    for s in body:
                        yield from s.lines(indent + "  ")
            yield indent + "}"
        else:
            yield indent + head

    def copy(self):
        return S(self.kind, self.form, [e.copy() for e in self.exprs], [[s.copy() for s in b] for b in self.bodies],
                 self.name, self.uses)


@dataclass
class Kernel:
    seed: int
    shape: object
    body: list
    fields: list  # per handle: "i32:2"
    aliased: bool = False
    fast: bool = False  # of COPPICE_KERNEL_FAST_MATH
    neighbours: bool = False  # reads blocks beside its own
    outside: bool = False  # looks outside of the domain, which the checks refuse
    features: set = field(default_factory=set)

    def parameters(self):
        shape = self.shape
        handles = [f"{h.text()} h{k}" for k, h in enumerate(shape.handles)]
        if shape.place in ("Item", "Team"):
            rest = [f"{shape.place} cell", "int32_t p0", "float p1", "const int32_t* in_i", "const float* in_f", "const double* in_d",
                    "int32_t* out_i", "float* out_f", "double* out_d"]
        else:
            rest = [f"{shape.place_text()} cell", "int32_t p0", "float p1"] + (["const int32_t* table"] if shape.table else [])
        return ", ".join(handles + rest)

    def text(self, name):
        lines = [f"COPPICE_KERNEL{'_FAST_MATH' if self.fast else ''}({name}, {self.parameters()}) {{"]
        for s in self.body:
            lines += s.lines("  ")
        return "\n".join(lines + ["}"]) + "\n"

    def copy(self, body=None):
        body = [s.copy() for s in self.body] if body is None else body
        return replace(self, body=body, fields=list(self.fields))

    def all_features(self):
        own = {"alias": self.aliased, "fast math": self.fast, "neighbour data": self.neighbours}
        return self.features | {name for name, has in own.items() if has}
