"""Makes a failing kernel small: drops statements and replaces expressions while it still fails in the same way."""
import time

from generator import ZERO
from syntax import E


def copies(body):
    return [s.copy() for s in body]


def size(body):
    return sum(2 + sum(e.size() for e in s.exprs) + sum(size(b) for b in s.bodies) for s in body)


def is_valid(body, names=frozenset(), in_loop=False):
    """Whether all names are declared where they are used, and jumps leave a loop."""
    names = set(names)
    for s in body:
        if s.kind == "jump" and not in_loop and not s.form.startswith("return"):
            return False
        own = names | {s.name} if s.kind == "loop" else names
        uses = s.uses if isinstance(s.uses, tuple) else (s.uses,) if s.uses else ()
        if any(u not in names for u in uses) or not all(expression_is_valid(e, own) for e in s.exprs):
            return False
        if not all(is_valid(b, own, s.kind == "loop" or (in_loop and s.kind != "switch")) for b in s.bodies):
            return False
        if s.kind == "decl":
            names.add(s.name)
    return True


def expression_is_valid(e, names):
    return (e.name is None or e.name in names) and all(expression_is_valid(k, names) for k in e.kids)


def without_name(body, name):
    """The same without a variable: its uses are zeros, and what stores to it is dropped."""
    def clean(e):
        if e.name == name:
            return E(e.type, ZERO[e.type])
        return E(e.type, e.form, [clean(k) for k in e.kids], e.name)

    kept = []
    for s in body:
        uses = s.uses if isinstance(s.uses, tuple) else (s.uses,)
        if name in uses or (s.kind == "decl" and s.name == name):
            continue
        s = s.copy()
        s.exprs = [clean(e) for e in s.exprs]
        s.bodies = [without_name(b, name) for b in s.bodies]
        kept.append(s)
    return kept


def smaller_lists(body):
    """Ways to write a list of statements with less."""
    n = len(body)
    step = n
    while step >= 1:
        for at in range(0, n, step):
            yield body[:at] + body[at + step:]
        step //= 2
    for k, s in enumerate(body):
        if s.kind == "decl":
            yield without_name(body, s.name)
        for inner in s.bodies:
            yield body[:k] + copies(inner) + body[k + 1:]
        for b, inner in enumerate(s.bodies):
            if s.kind == "if" and b == 1 and inner:
                t = s.copy()
                t.bodies[1] = []
                yield body[:k] + [t] + body[k + 1:]
            for less in smaller_lists(inner):
                if not less and s.kind != "if":
                    continue
                t = s.copy()
                t.bodies[b] = copies(less)
                yield body[:k] + [t] + body[k + 1:]
        for j, e in enumerate(s.exprs):
            for less in smaller_expressions(e):
                t = s.copy()
                t.exprs[j] = less
                yield body[:k] + [t] + body[k + 1:]


def smaller_expressions(e):
    if e.text() != ZERO[e.type] and e.size() > 1:
        yield E(e.type, ZERO[e.type])
    for k in e.kids:
        if k.type == e.type:
            yield k.copy()
    for j, k in enumerate(e.kids):
        for less in smaller_expressions(k):
            kids = [x.copy() for x in e.kids]
            kids[j] = less
            yield E(e.type, e.form, kids, e.name)


def reduce_kernel(kernel, fails, seconds, per_round=24):
    """The smallest kernel found. `fails(kernels)` says of each whether it fails as the first one did."""
    end = time.monotonic() + seconds
    tried = {kernel.text("k")}
    while time.monotonic() < end:
        candidates, texts = [], set(tried)
        for body in smaller_lists(kernel.body):
            if not is_valid(body):
                continue
            candidate = kernel.copy(copies(body))
            text = candidate.text("k")
            if text not in texts:
                texts.add(text)
                candidates.append(candidate)
        candidates.sort(key=lambda c: size(c.body))
        found = None
        # The smallest first, then what is left of the rest.
        for at in range(0, len(candidates), per_round):
            group = candidates[at:at + per_round]
            tried |= {c.text("k") for c in group}
            failing = [c for c, bad in zip(group, fails(group)) if bad]
            if failing:
                found = failing[0]
                break
            if time.monotonic() > end:
                return kernel
        if found is None:
            return kernel
        kernel = found
    return kernel
