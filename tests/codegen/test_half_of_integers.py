"""Long integers become halves by one rounding, whatever lies between, and infinity beyond."""

import re

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib.graph_executor import GraphModule

TARGETS = ["llvm", "llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3", "c"]


def values(dtype):
    """Numbers around every half and every middle between two, and the ends of the type."""
    halves = np.arange(1 << 15, dtype="uint16").view("float16").astype("float64")
    halves = np.unique(np.floor(halves[np.isfinite(halves)])).astype("int64")
    middles = (halves[1:] + halves[:-1]) // 2
    around = np.concatenate(
        [halves, middles, [65504, 65519, 65520, 65535, 65536, 1 << 17, 1 << 24]]
    )
    around = np.unique(np.concatenate([around - 1, around, around + 1]))
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    signed = around if dtype.startswith("uint") else np.concatenate([around, -around])
    return np.concatenate([signed.clip(*map(int, ends)).astype(dtype), ends])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_one_rounding(target, dtype):
    data = values(dtype)
    body = relay.cast(relay.var("x", shape=data.shape, dtype=dtype), "float16")
    library = relay.build(tvm.IRModule.from_expr(body), target)
    module = GraphModule(library["default"](tvm.cpu(0)))
    module.run(x=data)
    with np.errstate(over="ignore"):
        wanted = data.astype("float64").astype("float16")  # NumPy rounds that once
    np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)


def test_none_goes_through_float64():
    body = relay.cast(relay.var("x", shape=(64,), dtype="int64"), "float16")
    library = relay.build(tvm.IRModule.from_expr(body), "llvm -mcpu=x86-64-v4")
    assembly = library.get_lib().get_source("asm")
    assert not re.search(r"vcvtqq2pd|vcvtsi2sd|vcvtpd2ps", assembly)
    assert "vcvtps2ph" in assembly
