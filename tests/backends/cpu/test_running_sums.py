"""Running sums along the last axis: rows beside each other, whatever the axes around them."""

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

from slipway import relay
from slipway.compiler.kernels import lower_kernel
from slipway.ir import stmt as S
from slipway.target import Target


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("shape", [(11,), (13, 7), (3, 7, 9, 5), (2, 30, 4), (1, 1, 6)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_numbers(target, shape, dtype):
    x = var("x", *shape, dtype=dtype)
    run(relay.cumsum(x, axis=-1), target)
    run(relay.cumsum(x, axis=len(shape) - 1, exclusive=True), target)


@pytest.mark.parametrize(("shape", "rows"), [((3, 7, 9, 40), [8, 4, 1]), ((64, 30, 100), [8])])
def test_eight_rows_wait_for_eight_sums(shape, rows):
    """Sums of floating point numbers take some cycles; 30 rows are no multiple of 8, 1920 are."""
    body = relay.cumsum(relay.var("x", shape=shape, dtype="float16"), axis=len(shape) - 1)
    lowered = lower_kernel("k", body.as_function().with_attr("Primitive", 1), Target("llvm"))
    found = [s.extents for s in S.statements(lowered.body) if isinstance(s, S.Allocate)]
    assert [int(np.prod([int(getattr(e, "value", e)) for e in each])) for each in found] == rows
