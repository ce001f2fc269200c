"""te.hybrid: functions of loops as stages; they give what they give as Python."""

# ruff: noqa: F821, PT018, SIM201

import numpy as np
import pytest

import slipway as tvm
from slipway import te

RNG = np.random.default_rng(0)
BOTH = pytest.mark.parametrize("target", ["llvm", "c"])


@te.hybrid.script
def outer_product(n, m, a, b):
    """A docstring is skipped."""
    c = output_tensor((n, m), a.dtype)
    for i in range(n):
        for j in range(m):
            assert i < n and j < m, "index out of range!"
            c[i, j] = a[i] * b[j]
    return c


@te.hybrid.script
def fanout(a):
    three = 3.0
    b = output_tensor((a.shape[0] - 3,), a.dtype)
    for i in range(a.shape[0] - 3):
        sigma = 0.0
        for j in range(3):
            sigma += a[i + j]
        sigma = sigma / three
        b[i] = sigma
    return b


@te.hybrid.script
def kinds(a):
    b = output_tensor((16,), "int32")
    c = output_tensor((16,), "int32")
    d = output_tensor((16,), "int32")
    for i in parallel(16):
        b[i] = a[i] if 0 <= i < 5 else a[i] + 1
    for i in vectorize(16):
        c[i] = a[i] * 2
    for i in unroll(16):
        if i % 2 == 0 and not i == 4:
            d[i] = b[i]
        else:
            d[i] = -c[i]
    return b, c, d


@te.hybrid.script
def sorted_rows(a):
    out = output_tensor(a.shape, a.dtype)
    row = allocate((a.shape[1],), a.dtype, "local")
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            row[j] = a[i, j]
        for j in range(1, a.shape[1]):
            k = j
            while k > 0 and row[k - 1] > row[k]:
                held = row[k]
                row[k] = row[k - 1]
                row[k - 1] = held
                k -= 1
        for j in range(a.shape[1]):
            out[i, j] = row[j]
    return out


WEIGHTS = (1, 2, 1)


@te.hybrid.script
def smooth(a):
    out = output_tensor((a.shape[0],), a.dtype)
    for i in range(0, a.shape[0], 2):
        out[i] = tanh(a[i])
    for i in range(1, a.shape[0], 2):
        total = float32(0)
        for j in const_range(3):
            total = total + a[max(min(i + j - 1, a.shape[0] - 1), 0)] * WEIGHTS[j]
        out[i] = total
    return out


def same(function, target, *arrays):
    tensors = [te.placeholder(a.shape, a.dtype.name, name=f"x{i}") for i, a in enumerate(arrays)]
    made, wanted = function(*tensors), function(*arrays)
    made, wanted = (list(x) if isinstance(x, (tuple, list)) else [x] for x in (made, wanted))
    built = tvm.build(te.create_schedule(made[0].op), [*tensors, *made], target)
    outs = [tvm.nd.array(np.zeros(np.shape(w), t.dtype)) for w, t in zip(wanted, made, strict=True)]
    built(*(tvm.nd.array(a) for a in arrays), *outs)
    for out, expected in zip(outs, wanted, strict=True):
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)


@BOTH
def test_scripts_give_what_python_gives(target):
    same(fanout, target, RNG.normal(size=10).astype("float32"))
    same(kinds, target, RNG.integers(-9, 9, 16).astype("int32"))
    same(sorted_rows, target, RNG.normal(size=(4, 7)).astype("float32"))
    same(smooth, target, RNG.normal(size=9).astype("float32"))


@BOTH
def test_symbolic_sizes_and_stages_around(target):
    n, m = te.size_var("n"), te.size_var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    twice = te.compute((n,), lambda i: a[i] * 2, name="twice")
    c = outer_product(n, m, twice, b)
    d = te.compute(c.shape, lambda i, j: c[i, j] + 1, name="d")
    s = te.create_schedule(d.op)
    with pytest.raises(tvm.TVMError, match="'twice' is inlined, but extern 'outer_product'"):
        inlined = te.create_schedule(d.op)
        inlined[twice].compute_inline()
        tvm.lower(inlined, [a, b, d])
    built = tvm.build(s, [a, b, d], target)
    x, y = RNG.normal(size=5).astype("float32"), RNG.normal(size=3).astype("float32")
    out = tvm.nd.empty((5, 3))
    built(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), np.outer(2 * x, y) + 1, rtol=1e-5)


def test_what_cannot_be_read_says_where():
    a = te.placeholder((4,), name="a")

    @te.hybrid.script
    def nothing(a):
        for i in range(4):
            a[i] = 0.0

    @te.hybrid.script
    def threads(a):
        b = output_tensor((4,), "float32")
        for i in bind("threadIdx.x", 4):
            b[i] = a[i]
        return b

    @te.hybrid.script
    def other(a):
        b = output_tensor((4,), "float32")
        del a
        return b

    @te.hybrid.script
    def unknown(a):
        b = output_tensor((4,), "float32")
        b[0] = nonsense(a[0])
        return b

    for function, words in (
        (nothing, "returns no tensor"),
        (threads, r"test_hybrid.py:\d+: threads: threads of a GPU"),
        (other, "`del a`"),
        (unknown, "`nonsense\\(a\\[0\\]\\)`: name 'nonsense'"),
    ):
        with pytest.raises(tvm.TVMError, match=words):
            function(a)
    with pytest.raises(tvm.TVMError, match="takes 1 arguments, got 2"):
        nothing(a, a)
