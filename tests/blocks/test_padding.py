"""decompose_padding, pad_einsum and sample_compute_location: the same numbers, in other loops."""

from __future__ import annotations

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run


def arrays(func: tir.PrimFunc) -> list[np.ndarray]:
    """Arguments of a function: small whole numbers, the last one wrong everywhere."""
    rng = np.random.default_rng(0)
    shapes = [tuple(int(d) for d in b.shape) for _, b in func.buffer_map]
    made = [rng.integers(1, 9, shape).astype("float32") for shape in shapes]
    made[-1][:] = -77
    return made


def results(sch: tir.Schedule) -> np.ndarray:
    given = arrays(sch.func)
    tensors = [tvm.nd.array(a) for a in given]
    tvm.build(sch.mod, target="llvm")(*tensors)
    run(sch.func, *given)
    np.testing.assert_array_equal(tensors[-1].numpy(), given[-1])
    return given[-1]


def same_after(func: tir.PrimFunc, sch: tir.Schedule) -> None:
    np.testing.assert_array_equal(results(sch), results(tir.Schedule(func)))
    again = tir.Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert again.mod.script() == sch.mod.script()


def pooled(size: int = 13, pad: int = 2, low: int = 3) -> tir.PrimFunc:
    """Sums of windows of 3 over a padded (4, size)."""
    a = te.placeholder((4, size), name="A")
    p = te.compute(
        (4, size + low + pad),
        lambda i, j: te.if_then_else(te.all(j >= low, j < size + low), a[i, j - low], 0.0),
        name="P",
    )
    k = te.reduce_axis((0, 3), "k")
    return te.create_prim_func(
        [a, te.compute((4, size + low + pad - 2), lambda i, j: te.sum(p[i, j + k], k), name="C")]
    )


def product(n: int = 13, m: int = 6, depth: int = 9) -> tir.PrimFunc:
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), "k")
    return te.create_prim_func(
        [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="C")]
    )


def test_loops_run_over_what_is_copied() -> None:
    func = pooled()
    sch = tir.Schedule(func)
    block = sch.get_block("P")
    made = sch.decompose_padding(block, sch.get_loops(block)[0])
    assert made.name == "P_pad_const"
    assert [int(sch.get(one).extent) for one in sch.get_loops(made)] == [4, 18]
    assert [int(sch.get(one).extent) for one in sch.get_loops(block)] == [4, 13]
    assert "if_then_else" not in sch.mod.script()
    same_after(func, sch)


def test_padding_inside_of_a_loop() -> None:
    func = pooled()
    sch = tir.Schedule(func)
    block = sch.get_block("P")
    sch.decompose_padding(block, sch.get_loops(block)[1])
    assert len(sch.get_loops(block)) == 2
    same_after(func, sch)


def test_padding_of_a_tile_keeps_its_condition() -> None:
    """Tiles that do not fit, in the memory of one step; the loop named is outside of it."""
    func = pooled(size=20)
    sch = tir.Schedule(func)
    block, sums = sch.get_block("P"), sch.get_block("C")
    _, j, _ = sch.get_loops(sums)
    outer, _ = sch.split(j, [None, 8])
    sch.compute_at(block, outer)
    sch.decompose_padding(block, sch.get_loops(block)[0])
    assert "T.where" in sch.mod.script()
    assert "if_then_else" not in sch.mod.script()
    same_after(func, sch)


def test_what_does_not_pad_is_refused() -> None:
    sch = tir.Schedule(product())
    block = sch.get_block("C")
    with pytest.raises(ScheduleError, match="'C' does not pad: it must be one store"):
        sch.decompose_padding(block, sch.get_loops(block)[0])
    sch = tir.Schedule(pooled())
    with pytest.raises(ScheduleError, match="is not around block 'P'"):
        sch.decompose_padding("P", sch.get_loops("C")[0])


@pytest.mark.parametrize(
    ("padding", "extents"),
    [([8, 4, 4], [16, 8, 12]), ([1, 1, 1], [13, 6, 9]), ([3, 0, 7], [16, 6, 16])],
)
def test_products_on_larger_extents(padding: list[int], extents: list[int]) -> None:
    func = product()
    sch = tir.Schedule(func)
    sch.pad_einsum("C", padding)
    assert [int(sch.get(one).extent) for one in sch.get_loops("C")] == extents
    names = [b.name for b in sch.get_producers("C")]
    assert names == ([] if extents == [13, 6, 9] else ["A_pad", "B_pad"])
    same_after(func, sch)


def test_padded_products_are_tiled_without_remainder() -> None:
    func = product()
    sch = tir.Schedule(func)
    block = sch.get_block("C")
    sch.pad_einsum(block, [4, 8, 4])
    _, inner = sch.split(sch.get_loops(block)[1], [None, 8])
    sch.vectorize(inner)
    sch.compute_inline("A_pad")
    assert "T.where" not in sch.mod.script()
    same_after(func, sch)


def test_what_zeros_would_change_is_not_padded() -> None:
    a = te.placeholder((6, 9), name="A")
    k = te.reduce_axis((0, 9), "k")
    for formula in (lambda i: te.max(a[i, k], k), lambda i: te.sum(a[i, k] + 1.0, k)):
        func = te.create_prim_func([a, te.compute((6,), formula, name="C")])
        with pytest.raises(ScheduleError, match="to which zeros add nothing"):
            tir.Schedule(func).pad_einsum("C", [1, 4])
        sch = tir.Schedule(func)
        sch.pad_einsum("C", [4, 1])  # rows of their own may be anything
        same_after(func, sch)
    with pytest.raises(ScheduleError, match="must be 3 factors"):
        tir.Schedule(product()).pad_einsum("C", [8, 8])
    with pytest.raises(ScheduleError, match="at v_j \\+ v_k"):
        tir.Schedule(pooled()).pad_einsum("C", [1, 1, 4])


def test_places_that_are_drawn_are_possible() -> None:
    func = pooled()
    drawn = set()
    for seed in range(12):
        sch = tir.Schedule(func, seed=seed)
        block = sch.get_block("P")
        loop = sch.sample_compute_location(block)
        sch.compute_at(block, loop)
        drawn.add(loop.position)
        again = tir.Schedule(func)
        sch.trace.apply_to_schedule(again)
        assert again.mod.script() == sch.mod.script()
    assert drawn >= {-2, -1, 0}
    same_after(func, sch)
    sch = tir.Schedule(func)
    sch.compute_at("P", sch.sample_compute_location("P", decision=1))
    assert len(sch.get_loops("P")) >= 2
    same_after(func, sch)
    with pytest.raises(ScheduleError, match="decision=3: block 'P' may be moved to one of 3 loops"):
        tir.Schedule(func).sample_compute_location("P", decision=3)
