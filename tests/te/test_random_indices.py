"""Random indices of a computed tensor: of loops, lets and elements of other tensors, open sizes.

The tensor is computed at the root, inside a loop of its reader, or in threads; an index is brought
into its range as programs do, and the numbers are NumPy's.
"""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import te

LEAVES = ("loop", "element", "first", "number")
NODES = (*LEAVES, "given", "add", "sub", "min", "max", "times", "div", "mod", "select", "let")


class Index:
    """A random expression of a loop `k`, and its value for numbers."""

    def __init__(self, rng, given, later):
        self.rng, self.given, self.later, self.lets = rng, given, later, []

    def make(self, k, depth=0):
        """Return the expression, and the function of (position, given, later) that it is."""
        kind = self.rng.choice(NODES if depth < 3 else LEAVES)
        if kind == "loop":
            return k, lambda at, g, s: at
        if kind == "element":
            return self.later[k], lambda at, g, s: s[at]
        if kind == "given":
            return self.given[k], lambda at, g, s: g[at]
        if kind == "first":
            return self.later[0], lambda at, g, s: s[0]
        number = self.rng.randint(1, 4)
        if kind == "number":
            return tvm.tir.const(number, "int32"), lambda at, g, s: number
        a, of_a = self.make(k, depth + 1)
        if kind == "times":
            return a * number, lambda *v: of_a(*v) * number
        if kind == "div":
            return tvm.tir.floordiv(a, number), lambda *v: of_a(*v) // number
        if kind == "mod":
            return tvm.tir.floormod(a, number + 1), lambda *v: of_a(*v) % (number + 1)
        if kind == "let":
            var = te.var(f"let{len(self.lets)}", "int32")
            self.lets.append((var, a))
            a = var
        b, of_b = self.make(k, depth + 1)
        if kind in ("add", "let"):
            return a + b, lambda *v: of_a(*v) + of_b(*v)
        if kind == "sub":
            return a - b, lambda *v: of_a(*v) - of_b(*v)
        if kind == "min":
            return te.min(a, b), lambda *v: min(of_a(*v), of_b(*v))
        if kind == "max":
            return te.max(a, b), lambda *v: max(of_a(*v), of_b(*v))
        return tvm.tir.Select(a < b, a, b + 1), lambda *v: min(of_a(*v), of_b(*v) + 1)


def check(seed, where, device=None):
    rng = random.Random(seed)
    n, m = te.var("n"), rng.choice([5, te.var("m")])
    a, given = te.placeholder((n,), name="a"), te.placeholder((m,), "int32", name="given")
    doubled = te.compute((n,), lambda q: a[q] * 2.0, "doubled")
    later = te.compute((m,), lambda q: given[q] * 2 + 1, "later")
    index, cut = Index(rng, given, later), rng.choice(["mod", "clip"])
    values = []

    def formula(k):
        e, value = index.make(k)
        values.append(value)
        inside = tvm.tir.floormod(e, n) if cut == "mod" else te.max(te.min(e, n - 1), 0)
        result = doubled[inside] + doubled[n - 1 - inside]
        for var, bound in reversed(index.lets):
            result = tvm.tir.Let(var, bound, result)
        return result

    made = te.compute((m,), formula, "made")
    plan = te.create_schedule(made.op)
    if where == "inside":
        plan[doubled].compute_at(plan[made], made.op.axis[0])
    elif where == "tiled":
        outer, _ = plan[made].split(made.op.axis[0], factor=rng.randint(1, 4))
        plan[doubled].compute_at(plan[made], outer)
    elif where == "threads":
        for stage in plan.stages:
            if not isinstance(stage.op, te.PlaceholderOp):
                block, thread = stage.split(stage.op.axis[0], factor=32)
                stage.bind(block, te.thread_axis("blockIdx.x"))
                stage.bind(thread, te.thread_axis("threadIdx.x"))
    build = tvm.build(plan, [a, given, made], "llvm" if device is None else "opencl")
    for size in (1, 3, 17):
        count = 5 if isinstance(m, int) else rng.choice([1, 4, 9])
        x = np.arange(1, size + 1, dtype="float32")
        g = np.array([rng.randint(0, 20) for _ in range(count)], "int32")
        at = np.array([values[0](k, g.astype(int), g.astype(int) * 2 + 1) for k in range(count)])
        at = at % size if cut == "mod" else np.clip(at, 0, size - 1)
        got = tvm.nd.array(np.zeros(count, "float32"), device)
        build(tvm.nd.array(x, device), tvm.nd.array(g, device), got)
        np.testing.assert_array_equal(got.numpy(), 2 * x[at] + 2 * x[size - 1 - at], str(seed))


@pytest.mark.parametrize("where", ["root", "inside", "tiled"])
def test_random_indices(where):
    for seed in range(40):
        check(seed, where)


def test_random_indices_in_threads():
    device = tvm.opencl(0)
    if not device.exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    for seed in range(40, 60):
        check(seed, "threads", device)
