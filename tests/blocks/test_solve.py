"""Blocks moved along indices that are no axes of their own: parts, digits, rows, corners."""

import numpy as np
import pytest

from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.script import tir as T


def schedule_of(shape, wanted, read):
    """B = 2 A + 1, and C = B where `read` says, + 3."""
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) * 2.0 + 1.0, name="B")
    C = te.compute(wanted, lambda *i: read(B, *i) + 3.0, name="C")
    return tir.Schedule(te.create_prim_func([A, C]))


def same_after(step, shape, wanted, read):
    """Return what the module is after a step of a schedule, which computes the same."""
    s = schedule_of(shape, wanted, read)
    data = np.random.default_rng(0).standard_normal(shape).astype("float32")
    found = []
    for mod in (s.mod, step(s) or s.mod):
        out = np.full(wanted, 7, "float32")
        run(mod["main"], data, out)  # checks every index
        found.append(out)
    np.testing.assert_array_equal(*found)
    return s


READS = {
    "a part": ((16,), (9,), lambda B, i: B[i]),
    "a corner": ((10, 12), (8, 8), lambda B, i, j: B[i + 1, j + 4]),
    "a row": ((4, 16), (16,), lambda B, i: B[2, i]),
    "axes of one": ((16,), (1, 16, 1), lambda B, a, i, b: B[i]),
    "digits": ((128,), (8, 16), lambda B, i, j: B[i * 16 + j]),
    "parts of one axis": ((8, 16), (128,), lambda B, i: B[i // 16, i % 16]),
    "a last row that is shorter": ((7, 16), (100,), lambda B, i: B[i // 16, i % 16]),
    "rows that are longer": ((9, 20), (100,), lambda B, i: B[i // 16, i % 16]),
    "transposed": ((4, 6, 5), (5, 4, 6), lambda B, i, j, k: B[j, k, i]),
    "transposed digits": ((6, 64), (8, 6, 8), lambda B, a, i, b: B[i, a * 8 + b]),
    "NCHWc": ((1, 32, 3, 3), (1, 2, 3, 3, 16), lambda B, n, c, h, w, x: B[n, c * 16 + x, h, w]),
    "NCHW of NCHWc": ((1, 2, 3, 3, 16), (1, 32, 3, 3),
                      lambda B, n, c, h, w: B[n, c // 16, h, w, c % 16]),
    "another shape": ((7, 3), (2, 10), lambda B, a, b: B[(a * 10 + b) // 3, (a * 10 + b) % 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_block_joins_what_it_reads(name):
    s = same_after(lambda s: s.reverse_compute_inline("C"), *READS[name])
    assert "block B" in str(s.mod)
    assert "block C" not in str(s.mod)


@pytest.mark.parametrize(
    ("shape", "wanted", "read"),
    [
        ((32,), (16,), lambda B, i: B[i * 2]),
        ((8, 8), (8,), lambda B, i: B[i, i]),
        ((16,), (16, 4), lambda B, i, j: B[i]),
        ((20,), (3, 8), lambda B, a, b: B[tir.min(a * 8 + b, 19)]),
    ],
)
def test_elements_that_do_not_tell_the_axes_are_refused(shape, wanted, read):
    s = schedule_of(shape, wanted, read)
    with pytest.raises(ScheduleError, match=r"cannot reverse-inline block 'C': its axes cannot be"):
        s.reverse_compute_inline("C")


def test_a_reader_that_pads_keeps_its_border():
    s = schedule_of((8,), (11,), lambda B, i: tir.if_then_else(
        tir.all(i >= 2, i < 10), B[i - 2], 0.0))  # fmt: skip
    with pytest.raises(ScheduleError, match=r"reads 'B' from -2 to 8, and block 'B' writes 0 to 7"):
        s.reverse_compute_inline("C")
    s = schedule_of(
        (8,), (2, 8), lambda B, i, j: tir.if_then_else(i * 8 + j < 8, B[i * 8 + j], 0.0)
    )
    with pytest.raises(ScheduleError, match=r"reads 'B' from 0 to 15, and block 'B' writes 0 to 7"):
        s.reverse_compute_inline("C")


@pytest.mark.parametrize(
    ("shape", "wanted", "read", "loop"),
    [
        ((16,), (16, 4), lambda B, i, j: B[i], 0),
        ((1, 16), (16,), lambda B, i: B[0, i], 1),
        ((4, 16), (1, 4, 16), lambda B, u, i, j: B[i, j], 0),
    ],
)
def test_a_block_follows_what_it_reads_into_a_loop(shape, wanted, read, loop):
    same_after(lambda s: s.reverse_compute_at("C", s.get_loops("B")[loop]), shape, wanted, read)


def test_an_axis_that_a_dimension_of_several_has_not_may_not_be_left_out():
    s = schedule_of((4, 16), (16,), lambda B, i: B[3, i])
    with pytest.raises(ScheduleError, match="accesses the buffer at 3, where an axis"):
        s.reverse_compute_at("C", s.get_loops("B")[1])


def convolution():
    A, W = te.placeholder((1, 6, 6, 4), name="A"), te.placeholder((3, 3, 4, 8), name="W")
    rh, rw, rc = (te.reduce_axis((0, n), name) for n, name in ((3, "rh"), (3, "rw"), (4, "rc")))
    C = te.compute((1, 4, 4, 8), lambda n, h, w, o: te.sum(
        A[n, h + rh, w + rw, rc] * W[rh, rw, rc, o], axis=[rh, rw, rc]), name="C")  # fmt: skip
    return te.create_prim_func([A, W, C])


def test_a_convolution_becomes_a_product_of_matrices():
    func = convolution()
    s = tir.Schedule(func)
    for side in (("read", 0), ("read", 1), ("write", 0)):
        s.reindex("C", side)
    s.transform_layout("C", ("read", 0), lambda n, h, w, p, q, c: (
        n * 16 + h * 4 + w, p * 12 + q * 4 + c))  # fmt: skip
    s.transform_layout("C", ("read", 1), lambda o, p, q, c: (p * 12 + q * 4 + c, o))
    s.transform_layout("C", ("write", 0), lambda n, h, w, o: (n * 16 + h * 4 + w, o))
    s.transform_block_layout("C", lambda n, h, w, o, p, q, c: (
        n * 16 + h * 4 + w, o, p * 12 + q * 4 + c))  # fmt: skip
    block = s.get(s.get_block("C"))
    assert [(a.kind, int(a.extent)) for a in block.axes] == [
        ("data", 16), ("data", 8), ("reduce", 36)]  # fmt: skip
    assert "C_reindex[v0, v1] + A_reindex[v0, v2] * W_reindex[v2, v1]" in str(block).replace(
        "_2", "").replace("_1", "")  # fmt: skip
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(n).astype("float32") for n in ((1, 6, 6, 4), (3, 3, 4, 8))]
    outs = [np.zeros((1, 4, 4, 8), "float32") for _ in range(2)]
    for one, out in zip((func, s.mod["main"]), outs, strict=True):
        run(one, *args, out)
    np.testing.assert_allclose(*outs, rtol=1e-5, atol=1e-5)


def test_axes_of_two_kinds_are_not_mixed():
    s = tir.Schedule(convolution())
    with pytest.raises(ScheduleError, match="of axes of the kinds data, reduce"):
        s.transform_block_layout("C", lambda n, h, w, o, p, q, c: (n, h, w, o * 3 + p, q, c))


def test_maps_are_inverted():
    split = tir.IndexMap.from_func(lambda i, j: (i // 4, j, i % 4)).inverse((8, 3))
    assert [int(x) for x in split(1, 2, 3)] == [7, 2]
    fused = tir.IndexMap.from_func(lambda i, j: i * 5 + j).inverse((4, 5))
    assert [int(x) for x in fused(13)] == [2, 3]
    with pytest.raises(ScheduleError, match="cannot invert the map"):
        tir.IndexMap.from_func(lambda i, j: i + j).inverse((4, 5))


@T.prim_func
def the_first_ten(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for i, j in T.grid(4, 4):
        with T.block("C"):
            T.where(i * 4 + j < 10)
            vi = T.axis.spatial(16, i * 4 + j)
            C[vi] = B[vi] + 1.0


@T.prim_func
def three_of_four(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for i, j in T.grid(4, 4):
        with T.block("C"):
            T.where(j < 3)
            vi = T.axis.spatial(16, i * 4 + j)
            C[vi] = B[vi] + 1.0


@T.prim_func
def each_second(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial((1, 6), i + 1)
            C[vi * 2] = B[vi] + 1.0


STEPS = {
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("C"),
    "reverse_compute_at": lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]),
    "cache_write": lambda s: s.cache_write("C", 0, "local"),
}


@pytest.mark.parametrize(
    ("func", "step"),
    [
        *((func, step) for func in (the_first_ten, three_of_four) for step in STEPS),
        (each_second, "cache_write"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_elements_that_a_block_does_not_write_stay(func, step):
    s = tir.Schedule(func)
    STEPS[step](s)
    data = np.random.default_rng(0).standard_normal(16).astype("float32")
    outs = [np.full(16, 7, "float32") for _ in range(2)]
    for one, out in zip((func, s.mod["main"]), outs, strict=True):
        run(one, data, out)
    np.testing.assert_array_equal(*outs)
    assert (outs[0] == 7).sum() >= 4


@T.prim_func
def of_one_loop(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for i, j in T.grid(16, 4):
        with T.block("C"):
            T.where(j < 3)
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + 1.0


def test_a_condition_that_axes_do_not_tell_is_refused():
    with pytest.raises(ScheduleError, match=r"block 'C', which runs where j < 3: its axes"):
        tir.Schedule(of_one_loop).reverse_compute_inline("C")


@T.prim_func
def squares(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((18,), "float32")
    for i in range(18):
        with T.block("B"):
            vi = T.axis.spatial(18, i)
            B[vi] = A[vi] * 2.0
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi + 1] * B[vi + 1]


@pytest.mark.parametrize(
    "step", [lambda s: s.reverse_compute_inline("C"), lambda s: s.reindex("C", ("read", 0))]
)
def test_places_written_twice_alike_are_one(step):
    s = tir.Schedule(squares)
    step(s)
    data = np.random.default_rng(0).standard_normal(18).astype("float32")
    outs = [np.zeros(16, "float32") for _ in range(2)]
    for one, out in zip((squares, s.mod["main"]), outs, strict=True):
        run(one, data, out)
    np.testing.assert_array_equal(*outs)
