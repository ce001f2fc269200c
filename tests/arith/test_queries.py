"""arith.Analyzer and ir.Range as scripts use them."""

from __future__ import annotations

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ArgumentTypeError


def test_bounds_and_remainders_are_records() -> None:
    x, y, z = (tir.Var(name, "int32") for name in "xyz")
    an = tvm.arith.Analyzer()
    assert an.const_int_bound(x).max_value == tvm.arith.ConstIntBound.POS_INF
    an.bind(x, tvm.ir.Range(2, 10))
    bound = an.const_int_bound(x * 4 + 1)
    assert (bound.min_value, bound.max_value) == (9, 37)
    assert an.modular_set(x * 4 + 2) == (4, 2)
    assert an.modular_set(x * 4 + 2).coeff == 4
    assert int(an.canonical_simplify(x - x)) == int(an.rewrite_simplify(tir.floordiv(x, 16))) == 0
    assert int(an.simplify(3)) == 3
    an.update(y, tvm.arith.ConstIntBound(2, 5))
    an.update(y, tvm.arith.ConstIntBound(0, 3))
    assert repr(an.const_int_bound(y)) == "ConstIntBound[2, 3]"
    an.update(y, tvm.arith.ConstIntBound(0, 9), override=True)
    assert an.const_int_bound(y).max_value == 9
    an.bind(z, x + 1)
    assert an.simplify(z - 1) is x
    with pytest.raises(ArgumentTypeError, match="takes a ConstIntBound, not ModularSet"):
        an.update(y, an.modular_set(x))


@pytest.mark.parametrize("module", [tvm.ir, te, tir])
def test_a_range_has_a_begin_and_an_end(module: object) -> None:
    ranges = module.Range  # type: ignore[attr-defined]
    n = te.var("n")
    for made, first, count in (
        (ranges(2, 10), 2, 8),
        (ranges(5), 0, 5),
        (ranges.from_min_extent(1, 4), 1, 4),
    ):
        assert isinstance(made, ranges)
        assert (int(made.min), int(made.extent)) == (first, count)
    assert ranges(0, n).extent is n
    assert ranges(n).extent is n
    assert str(ranges(1, n).extent) == "n - 1"


def test_a_reduction_over_a_range() -> None:
    a = te.placeholder((10,), name="A")
    k = te.reduce_axis(tvm.ir.Range(2, 6), "k")
    c = te.compute((1,), lambda _: te.sum(a[k], k))
    s = te.create_schedule(c.op)
    out = tvm.nd.empty((1,))
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(np.arange(10, dtype="float32")), out)
    assert out.numpy() == 2 + 3 + 4 + 5
