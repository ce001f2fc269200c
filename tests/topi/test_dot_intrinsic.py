"""dp4a: a schedule with it computes the same sums everywhere, and NVIDIA's GPUs get theirs."""

from __future__ import annotations

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentValueError
from slipway.topi.cuda.tensor_intrin import dp4a


def product(dtypes: tuple[str, str], out: str) -> tuple[te.Schedule, list[te.Tensor]]:
    """(8, 64) by (6, 64), each sum of four in one instruction on local copies."""
    a, b = te.placeholder((8, 64), dtypes[0], "A"), te.placeholder((6, 64), dtypes[1], "B")
    k = te.reduce_axis((0, 64), "k")
    c = te.compute((8, 6), lambda i, j: te.sum(a[i, k].astype(out) * b[j, k].astype(out), axis=k))
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    outer, inner = s[local].split(local.op.reduce_axis[0], 4)
    copies = [s.cache_read(t, "local", [local]) for t in (a, b)]
    s[local].tensorize(inner, dp4a("local", "local", "local", dtypes))
    s[local].compute_at(s[c], c.op.axis[1])
    for copy in copies:
        s[copy].compute_at(s[local], outer)
    return s, [a, b, c]


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("dtypes", "out"),
    [(("int8", "int8"), "int32"), (("uint8", "int8"), "int32"), (("int8", "uint8"), "uint32")],
)
def test_the_sums(target: str, dtypes: tuple[str, str], out: str) -> None:
    s, args = product(dtypes, out)
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, shape).astype(t)
        for t, shape in zip(dtypes, ((8, 64), (6, 64)), strict=True)
    )
    c = tvm.nd.empty((8, 6), out)
    tvm.build(s, args, target)(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_array_equal(c.numpy(), a.astype(out) @ b.astype(out).T)


def test_nvidia_has_an_instruction() -> None:
    s, args = product(("int8", "int8"), "int32")
    y, x = s[args[2]].op.axis
    s[args[2]].bind(y, te.thread_axis("blockIdx.x"))
    s[args[2]].bind(x, te.thread_axis("threadIdx.x"))
    device = tvm.build(s, args, "cuda -arch=sm_75").imported_modules[0]
    assert "dp4a.s32.s32" in device.get_source()


def test_other_types_are_refused() -> None:
    with pytest.raises(ArgumentValueError, match="two of int8 and uint8, got"):
        dp4a(dtypes=("int8", "int4"))
