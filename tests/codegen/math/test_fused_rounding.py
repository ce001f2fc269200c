"""What is fused is decided by the expression, not by the copy of the code that computes it."""

import re

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.runtime import cpu, set_num_threads
from slipway.runtime.graph import graph_executor


@pytest.fixture
def threads():
    yield set_num_threads
    set_num_threads(0)


@pytest.mark.parametrize("shape", [(7, 3, 7, 2, 33), (5, 5, 5, 2, 17), (7, 6, 7, 2, 36)])
def test_shares_of_a_loop_round_as_the_whole(shape, threads):
    """The elements of a loop's vectors and of what is left of it round alike."""
    *_, channels, filters = shape
    rng = np.random.default_rng(0)
    weights = rng.uniform(-2, 2, (3, 3, channels, filters)).astype("float32")
    x = relay.var("x", shape=shape[:4])
    out = relay.nn.conv2d(
        x, relay.const(weights), padding=(1, 1, 1, 1), channels=filters, kernel_size=(3, 3),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], out)), target="llvm")
    module = graph_executor.GraphModule(library["default"](cpu(0)))
    module.set_input("x", rng.uniform(-2, 2, shape[:4]).astype("float32"))
    found = []
    for count in (1, 2, 3, 4, 5, 7):
        threads(count)
        module.run()
        found.append(module.get_output(0).numpy().tobytes())
    assert len(set(found)) == 1


def built(expression, target, fmt="ll"):
    n = 64
    a, b, c = (te.placeholder((n,), name=name) for name in "abc")
    out = te.compute((n,), lambda i: expression(a[i], b[i], c[i]), name="out")
    return tvm.build(te.create_schedule(out.op), [a, b, c, out], target=target).get_source(fmt)


@pytest.mark.parametrize(
    "expression",
    [
        lambda a, b, c: a * b + c,
        lambda a, b, c: c + a * b,
        lambda a, b, c: c - a * b,
        lambda a, b, c: a * b - c,
    ],
)
def test_a_product_in_a_sum_is_one_operation(expression):
    text = built(expression, "llvm -mcpu=x86-64-v3")
    assert "llvm.fmuladd." in text
    assert "contract" not in text
    assert re.search(r"vfn?m(add|sub)", built(expression, "llvm -mcpu=x86-64-v3", "asm"))
    assert "llvm.fmuladd" not in built(expression, "llvm -mcpu=x86-64-v3 -strict=1")


def test_differences_of_products():
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(-2, 2, 64).astype("float32") for _ in range(3)]
    wide = [v.astype("float64") for v in arrays]
    a, b, c = (te.placeholder((64,), name=name) for name in "abc")
    outs = [
        te.compute((64,), lambda i: a[i] * b[i] - c[i], name="p"),
        te.compute((64,), lambda i: c[i] - a[i] * b[i], name="q"),
        te.compute((64,), lambda i: a[i] * b[i] - b[i] * c[i], name="r"),
    ]
    function = tvm.build(te.create_schedule([o.op for o in outs]), [a, b, c, *outs], target="llvm")
    given = [tvm.nd.array(v) for v in arrays]
    got = [tvm.nd.array(np.zeros(64, "float32")) for _ in outs]
    function(*given, *got)
    x, y, z = wide
    for result, want in zip(got, (x * y - z, z - x * y, x * y - y * z), strict=True):
        np.testing.assert_allclose(result.numpy(), want, rtol=0, atol=5e-7)


@pytest.mark.parametrize("size", [7, 14])
def test_a_tile_of_a_depthwise_convolution_copies_no_weights(size):
    """A fused operation overwrites what is not needed again: no copy for each row of a tile."""
    x = relay.var("x", shape=(1, 4, size, size, 16))
    weights = relay.var("w", shape=(4, 1, 3, 3, 1, 16))
    out = relay.nn.contrib_depthwise_conv2d_nchwc(
        x, weights, padding=(1, 1, 1, 1), kernel_size=(3, 3), channels=64,
        data_layout="NCHW16c", kernel_layout="OIHW1i16o",
    )  # fmt: skip
    module = tvm.IRModule.from_expr(relay.Function([x, weights], out))
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
    text = relay.build(module, target=target).get_source("asm")
    multiplied = len(re.findall(r"\tvfmadd\w+ps", text))
    copied = len(re.findall(r"\tvmovaps\t%zmm\d+, %zmm\d+", text))
    assert multiplied >= 40
    assert copied * 20 <= multiplied
