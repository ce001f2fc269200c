"""Statements, memory and calling details, on both code generators."""

import kernels
import numpy as np
import pytest
from kernels import loop, prim_func, ramp

from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.ops import cast, const
from slipway.ir.stmt import seq
from slipway.target import Target

pytestmark = pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c -opt-level=1"])
I32 = "int32"


def load(func, target):
    return kernels.load(func, target)[0][func.name]


def store(buffer, index, value):
    return S.BufferStore(buffer, value, (index,))


def test_symbolic_shapes_and_strides(target):
    n, m, row = E.SizeVar("n"), E.SizeVar("m"), E.SizeVar("row")
    a = decl_buffer((n, m), "float32", "A", strides=(row, const(1, I32)))
    b = decl_buffer((m * 2, n), "float32", "B")
    i, j = E.Var("i"), E.Var("j")
    value = E.Add(a[i, j], const(1.0, "float32"))
    body = loop(i, n, loop(j, m, S.BufferStore(b, value, (j * 2, i))))
    run = load(prim_func("symbolic", [a, b], body), target)
    for rows, columns in ((3, 5), (7, 1), (0, 4)):
        whole = kernels.random((rows, 9))
        out = np.zeros((2 * columns, rows), "float32")
        run(whole[:, :columns], out)
        np.testing.assert_array_equal(out[::2], whole[:, :columns].T + 1)
    with pytest.raises(ValueError, match=r"B.shape\[0\]"):
        run(np.zeros((3, 5), "float32"), np.zeros((9, 3), "float32"))
    with pytest.raises(ValueError, match=r"argument 1 \(B\) has shape\[1\] = 4, expected 3"):
        run(np.zeros((3, 5), "float32"), np.zeros((10, 4), "float32"))


def test_scalars_of_every_kind(target):
    out = decl_buffer((6,), "float64", "out")
    kinds = ("int32", "int64", "bool", "float32", "float16", "float64")
    variables = [E.Var(f"v{k}", k) for k in kinds]
    body = seq([store(out, const(i, I32), cast(v, "float64")) for i, v in enumerate(variables)])
    run = load(prim_func("scalars", [out], body, scalars=tuple(variables)), target)
    data = np.zeros(6)
    run(data, -3, 1 << 40, True, 0.1, 0.1, 2)
    assert data.tolist() == [-3, 2.0**40, 1, np.float32(0.1), np.float16(0.1), 2.0]
    with pytest.raises(TypeError, match=r"argument 1 \(vint32\) must be an integer"):
        run(data, 1.5, 1, True, 0.1, 0.1, 2)
    with pytest.raises(TypeError, match=r"argument 4 \(vfloat32\) must be a number"):
        run(data, 1, 1, True, "x", 0.1, 2)


def test_a_size_given_twice_must_agree(target):
    n = E.Var("n")
    a = decl_buffer((n,), "float32", "A")
    i = E.Var("i")
    body = loop(i, n, store(a, i, const(1.0, "float32")))
    run = load(prim_func("twice", [a], body, scalars=(n,)), target)
    data = np.zeros(5, "float32")
    run(data, 5)
    assert data.sum() == 5
    with pytest.raises(ValueError, match=r"argument 1 \(n\) differs from the size of a tensor"):
        run(data, 4)


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_large_temporaries_use_the_arena(target, kind):
    n = 8192
    a, b = decl_buffer((4, n), "float32", "A"), decl_buffer((4, n), "float32", "B")
    t, u = decl_buffer((n,), "float32", "T"), decl_buffer((n,), "float32", "U")
    r, i, j, k = (E.Var(x) for x in "rijk")
    two = const(2.0, "float32")
    inner = S.Allocate(u, seq([
        loop(j, n, store(u, j, E.Mul(t[j], two))),
        loop(k, n, S.BufferStore(b, E.Add(u[n - 1 - k], t[k]), (r, k))),
    ]))  # fmt: skip
    body = S.Allocate(t, seq([loop(i, n, store(t, i, a[r, i])), inner]))
    run = load(prim_func("arena", [a, b], loop(r, 4, body, kind)), target)
    x, y = kernels.random((4, n)), np.zeros((4, n), "float32")
    run(x, y)
    np.testing.assert_array_equal(y, x[:, ::-1] * 2 + x)


def test_control_flow(target):
    a, b = decl_buffer((32,), I32, "A"), decl_buffer((32,), I32, "B")
    count = decl_buffer((1,), I32, "count", scope="local")
    i, v = E.Var("i"), E.Var("v")
    zero = const(0, I32)
    collatz = S.While(
        E.GT(a[i], const(1, I32)),
        seq([
            S.IfThenElse(
                E.EQ(E.FloorMod(a[i], const(2, I32)), zero),
                store(a, i, E.FloorDiv(a[i], const(2, I32))),
                store(a, i, a[i] * 3 + 1),
            ),
            store(count, zero, count[zero] + 1),
        ]),
    )  # fmt: skip
    body = S.Allocate(count, seq([
        store(count, zero, zero),
        collatz,
        S.LetStmt(v, count[zero] * 10, store(b, i, v + E.Let(v, v + 1, v * 0))),
    ]))  # fmt: skip
    run = load(prim_func("collatz", [a, b], loop(i, 32, body)), target)
    data, steps = np.arange(1, 33, dtype=I32), np.zeros(32, I32)
    run(data, steps)
    assert (data == 1).all()
    assert steps[26] == 1110  # 27 takes 111 steps


def test_what_a_statement_has_read_is_read_again_after_a_store_inside_it(target):
    """A condition, or a value, is an expression that the body has too: there after a store."""
    a, out = decl_buffer((3,), I32, "A"), decl_buffer((3,), I32, "out")

    def parts(number):
        at = const(number, I32)
        read = a[at] < 3
        say = store(out, at, cast(read, I32))
        return read, say, seq([store(a, at, a[at] + 1), say])

    (test, _, body), (going, say, step), (value, _, inside) = map(parts, range(3))
    whole = seq([
        S.IfThenElse(test, body), say, S.While(going, step),
        S.LetStmt(E.Var("v", "bool"), value, inside),
    ])  # fmt: skip
    run = load(prim_func("reads", [a, out], whole), target)
    data, found = np.array([2, 1, 2], I32), np.full(3, 7, I32)
    run(data, found)
    assert (data.tolist(), found.tolist()) == ([3, 3, 3], [0, 0, 0])


def test_assertions_raise_with_their_message(target):
    a = decl_buffer((4,), "float32", "A")
    i = E.Var("i")
    test = E.LT(a[i], const(5.0, "float32"))
    message = E.StringImm("A holds something too large")
    body = loop(i, 4, S.AssertStmt(test, message, store(a, i, a[i] + 1.0)), "parallel")
    run = load(prim_func("guarded", [a], body), target)
    run(np.zeros(4, "float32"))
    with pytest.raises(AssertionError, match="A holds something too large"):
        run(np.array([0, 9, 0, 0], "float32"))


def test_guarded_loads_are_not_evaluated(target):
    a, b = decl_buffer((4,), "float32", "A"), decl_buffer((1 << 20,), "float32", "B")
    far, i = E.Var("far", "int64"), E.Var("i")
    value = E.Call("float32", "if_then_else", (
        E.LT(i, const(4, I32)), a[i], E.Let(E.Var("t", "float32"), a[far * cast(i, "int64")],
                                             const(1.0, "float32"))))  # fmt: skip
    body = loop(i, 8, store(b, i, E.Max(value, const(0.0, "float32"))))
    run = load(prim_func("guarded_load", [a, b], body, scalars=(far,)), target)
    out = np.zeros(1 << 20, "float32")
    run(np.arange(4, dtype="float32"), out, 1)
    assert out[:4].tolist() == [0, 1, 2, 3]


def test_vector_accesses_of_every_shape(target):
    a, out = decl_buffer((64,), "float32", "A"), decl_buffer((8, 8), "float32", "out")
    index = decl_buffer((8,), I32, "index")
    base = E.Var("base")
    gather = a[index[ramp(0, 8)]]
    rows = [
        a[ramp(base, 8)], a[ramp(base, 8, 2)], a[ramp(base + 7, 8, -1)], a[ramp(base, 8, 3)],
        gather,
        E.Shuffle((a[ramp(base, 4)], a[ramp(32, 4)]), (0, 4, 1, 5, 2, 6, 3, 7)),
        E.Shuffle(tuple(a[base + k] for k in range(8)), tuple(range(7, -1, -1))),
        E.Broadcast(E.Shuffle((a[ramp(base, 8)],), (3,)), 8),
    ]  # fmt: skip
    stores = [S.BufferStore(out, v, (const(r, I32), ramp(0, 8))) for r, v in enumerate(rows)]
    body = S.LetStmt(base, index[const(0, I32)] + 1, seq(stores))
    run = load(prim_func("accesses", [a, index, out], body), target)
    x = kernels.random(64)
    indices = np.array([3, 60, 7, 7, 0, 1, 63, 2], I32)
    got = np.zeros((8, 8), "float32")
    run(x, indices, got)
    want = [x[4:12], x[4:20:2], x[4:12][::-1], x[4:28:3], x[indices],
            np.stack([x[4:8], x[32:36]], 1).ravel(), x[4:12][::-1], np.full(8, x[7])]  # fmt: skip
    np.testing.assert_array_equal(got, np.stack(want))


def test_sums_of_broadcasts_and_ramps_are_contiguous(target):
    a, flat = decl_buffer((64,), "float32", "A"), decl_buffer((24,), "float32", "out")
    base = E.Var("base")
    whole = E.Broadcast(base, 8)
    indices = [
        E.Add(whole, ramp(2, 8)),
        E.Sub(E.Mul(ramp(base, 8, 3), E.Broadcast(const(2, I32), 8)), ramp(0, 8, 5)),
        E.Mul(whole, E.Broadcast(const(3, I32), 8)),
    ]
    stores = [
        S.BufferStore(flat, a[index], (E.Add(E.Broadcast(const(8 * r, I32), 8), ramp(0, 8)),))
        for r, index in enumerate(indices)
    ]
    run = load(prim_func("sums", [a, flat], seq(stores), scalars=(base,)), target)
    x, got = kernels.random(64), np.zeros(24, "float32")
    run(x, got, 5)
    np.testing.assert_array_equal(got, [*x[7:15], *x[10:18], *[x[15]] * 8])
    if target == "llvm":
        text = kernels.load(prim_func("sums", [a, flat], seq(stores), scalars=(base,)))[1]
        assert text.get_source("raw").count("load <8 x float>") == 2


def test_scattered_stores(target):
    a, index = decl_buffer((64,), "float32", "A"), decl_buffer((8,), I32, "index")
    body = seq([
        S.BufferStore(a, E.Broadcast(const(1.0, "float32"), 8), (index[ramp(0, 8)],)),
        S.BufferStore(a, E.Broadcast(const(2.0, "float32"), 4), (ramp(33, 4, 5),)),
    ])  # fmt: skip
    run = load(prim_func("scatter", [a, index], body), target)
    data = np.zeros(64, "float32")
    indices = np.array([3, 60, 7, 9, 0, 1, 63, 2], I32)
    run(data, indices)
    want = np.zeros(64, "float32")
    want[indices] = 1
    want[33:53:5] = 2
    np.testing.assert_array_equal(data, want)


def test_vector_conditions_and_bools_in_memory(target):
    a, mask = decl_buffer((16,), "float32", "A"), decl_buffer((16,), "bool", "mask")
    out = decl_buffer((16,), "float32", "out")
    at = ramp(0, 16)
    body = seq([
        S.BufferStore(mask, E.GT(a[at], E.Broadcast(const(0.0, "float32"), 16)), (at,)),
        S.BufferStore(out, E.Select(E.Not(mask[at]), a[at], E.Broadcast(const(0.0, "float32"), 16)),
                      (at,)),
    ])  # fmt: skip
    run = load(prim_func("masked", [a, mask, out], body), target)
    x, m, y = kernels.random(16), np.zeros(16, bool), np.zeros(16, "float32")
    run(x, m, y)
    np.testing.assert_array_equal(m, x > 0)
    np.testing.assert_array_equal(y, np.minimum(x, 0))


def test_wrong_code_is_refused(target):
    from slipway.compiler.emit import build_module
    from slipway.errors import CodegenError

    a = decl_buffer((4,), "float32", "A")
    stray = E.Var("stray")
    with pytest.raises(CodegenError, match="'stray' is used where it is not defined"):
        build_module(
            prim_func("f", [a], store(a, stray, const(0.0, "float32"))), Target(target)
        ).get_source()
    bound = S.For(stray, const(0, I32), const(4, I32), "thread", store(a, stray, a[stray]))
    with pytest.raises(CodegenError, match="bound to a GPU thread"):
        build_module(prim_func("f", [a], bound), Target(target)).get_source()
