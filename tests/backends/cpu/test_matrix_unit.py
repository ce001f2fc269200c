"""Kernels for AMX: in the model of its tiles always, and as code where the processor has them.

The model runs the loops that the code generator gets, so that a machine without the unit checks
everything but LLVM's spelling of the instructions, which the assembly shows everywhere.
"""

import os
from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import CodegenError
from slipway.ir.interpreter.interpret import run
from slipway.relay import op_registry
from slipway.relay.interpret import interpret
from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs
from slipway.relay.ops.packed.qnn_packed import PACKED
from slipway.relay.ops.qnn.conv import IntegerConvAttrs
from slipway.runtime.cpu_features import missing_features
from slipway.target import Target

TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=1")
HERE = not missing_features(TARGET.needed)
BFLOAT16 = ml_dtypes.bfloat16


def array(shape, dtype, rng):
    if dtype == "bfloat16":
        return rng.standard_normal(shape).astype(BFLOAT16)
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def bytes_conv(data, weight, dtype="uint8", **attrs):
    shapes = {"data": (data, dtype), "weight": (weight, "int8")}
    geometry = IntegerConvAttrs(**{"pad_value": 3, **attrs})
    return shapes, lambda x, w: PACKED(x, w, attrs=geometry)


def pairs_conv(data, weight, strides=(), padding=()):
    count = len(data) - 3
    definition = op_registry.get(f"nn.contrib_conv{count}d_pairs")
    letters, last = "DHW"[-count:], data[-1]
    geometry = BlockedConvAttrs(
        strides or (1,) * count, padding or (0,) * 2 * count, (1,) * count, 1,
        f"NC{letters}{last}c", f"OI{letters}{weight[-3]}i{weight[-2]}o2i",
        f"NC{letters}{weight[-2]}c",
    )  # fmt: skip
    shapes = {"data": (data, "bfloat16"), "weight": (weight, "bfloat16")}
    return shapes, lambda x, w: definition(x, w, attrs=geometry)


def product(name, a, b, **attrs):
    shapes = {"data": (a, "bfloat16"), "weight": (b, "bfloat16")}
    return shapes, lambda x, w: op_registry.make(name)(x, w, **attrs)


CASES = {
    "bytes, windows": bytes_conv((1, 5, 9, 24), (2, 3, 3, 6, 16, 4), padding=(1, 1, 1, 1)),
    "signed bytes, strides": bytes_conv(
        (2, 7, 8, 8), (3, 3, 2, 2, 16, 4), "int8", strides=(2, 2), padding=(0, 1, 1, 0)
    ),
    "bytes of rows": bytes_conv((1, 1, 37, 64), (4, 1, 1, 16, 16, 4)),
    "bytes, one row": bytes_conv((1, 1, 1, 20), (1, 1, 1, 5, 16, 4)),
    "bytes, dilation": bytes_conv((1, 6, 6, 4), (1, 3, 3, 1, 16, 4), dilation=(2, 1)),
    "bytes, a line of taps": bytes_conv((1, 6, 7, 8), (2, 3, 5, 2, 16, 4), strides=(1, 2)),
    "words": bytes_conv((1, 9, 12, 1), (2, 5, 7, 1, 16, 4), "int32", strides=(2, 2)),
    "words, one tap": bytes_conv((1, 3, 4, 1), (1, 1, 1, 1, 16, 4), "int32"),
    "pairs, a line of taps": pairs_conv(
        (1, 1, 9, 11, 4), (1, 1, 7, 7, 2, 32, 2), (2, 2), (3, 3, 3, 3)
    ),
    "pairs, windows": pairs_conv(
        (1, 2, 5, 18, 32), (2, 2, 3, 3, 16, 32, 2), (1, 1), (1, 1, 1, 1)
    ),
    "pairs, strides": pairs_conv((2, 2, 7, 6, 16), (3, 2, 1, 1, 8, 16, 2), (2, 2)),
    "pairs of a smaller block": pairs_conv((1, 1, 3, 4, 32), (1, 2, 1, 1, 4, 16, 2)),
    "pairs, one dimension": pairs_conv((1, 1, 21, 16), (2, 1, 3, 8, 32, 2), (1,), (1, 1)),
    "pairs, three dimensions": pairs_conv(
        (1, 1, 3, 4, 5, 8), (1, 1, 2, 2, 2, 4, 32, 2), (1, 1, 1), (1, 0, 0, 0, 0, 1)
    ),
    "pairs, dense": product("nn.contrib_dense_pairs", (33, 48), (3, 24, 32, 2)),
    "pairs, one row": product("nn.contrib_dense_pairs", (1, 6), (2, 3, 16, 2)),
    "pairs, batch": product("nn.batch_matmul", (2, 19, 10), (2, 21, 10), out_dtype="float32"),
    "pairs, one for all": product(
        "nn.batch_matmul", (3, 5, 64), (1, 64, 32), transpose_b=False, out_dtype="float32"
    ),
}  # fmt: skip


@lru_cache(maxsize=len(CASES))
def kernel(name):
    """The kernel of a case with an epilogue, its operands, and the exact results."""
    shapes, call = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [array(*entry, rng) for entry in shapes.values()]
    variables = [relay.var(n, shape=s, dtype=d) for n, (s, d) in shapes.items()]
    sums = call(*variables)
    body = relay.nn.relu(sums)
    function = body.as_function().with_attr("Primitive", 1)
    exact = [a.astype("float32") if a.dtype == BFLOAT16 else a for a in arrays]
    return function, arrays, np.asarray(interpret(function, *exact_of(exact, arrays)))


def exact_of(exact, arrays):
    return [a if a.dtype == BFLOAT16 else e for e, a in zip(exact, arrays, strict=True)]


def in_the_model(name):
    function, arrays, wanted = kernel(name)
    lowered = lower_kernel("kernel", function, TARGET)
    got = np.zeros(wanted.shape, wanted.dtype)
    stored = [a.view("uint16") if a.dtype == BFLOAT16 else a for a in arrays]
    run(lowered, *(a.copy() for a in stored), got)
    return lowered, got


def hold(got, wanted):
    if wanted.dtype == np.float32:  # products are exact, sums of some hundred are rounded
        assert np.abs(got - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max())
    else:
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", CASES)
def test_in_the_model_and_as_code(name):
    lowered, modelled = in_the_model(name)
    function, arrays, wanted = kernel(name)
    hold(modelled, wanted)
    compiled = build_module({"kernel": lowered}, TARGET)
    assert schedule_primitive(function, TARGET).implementation.endswith(".tiles")
    if not HERE:
        return  # the model has checked the same loops
    out = tvm.nd.empty(wanted.shape, str(wanted.dtype))
    OperatorModule(compiled)(*(tvm.nd.array(a) for a in arrays), out)
    np.testing.assert_array_equal(out.numpy(), modelled)  # sums of pairs too, bit for bit


def test_tiles_are_configured_once_and_given_back():
    lowered, _ = in_the_model("bytes, windows")
    lines = build_module({"kernel": lowered}, TARGET).get_source("asm").splitlines()
    words = [line.split()[0] for line in lines if line.strip()]
    assert words.count("ldtilecfg") == words.count("tilerelease") == 1
    assert words.index("ldtilecfg") < words.index("tdpbusd") < words.index("tilerelease")
    assert not any("tmm8" in line for line in lines)


def test_a_target_without_the_unit_is_refused_in_words():
    lowered, _ = in_the_model("pairs, one row")
    with pytest.raises(CodegenError, match=r"needs amx-tile.*Add -mattr=\+amx-tile"):
        build_module({"kernel": lowered}, Target("llvm -mcpu=skylake-avx512"))


@pytest.mark.skipif(not HERE, reason="the model has no threads")
def test_threads_and_forked_processes_have_tiles_of_their_own():
    rng = np.random.default_rng(0)
    weight = rng.integers(-128, 128, (3, 3, 64, 64)).astype("int8")
    x = relay.var("x", shape=(1, 40, 40, 64), dtype="uint8")
    make = op_registry.make("qnn.conv2d_nhwc")
    body = make(x, relay.const(weight), padding=(1, 1, 1, 1))
    data = rng.integers(0, 256, (1, 40, 40, 64)).astype("uint8")
    outputs = []
    for cores in (1, 2):
        target = f"llvm -mcpu=sapphirerapids -num-cores={cores}"
        mod = tvm.IRModule.from_expr(relay.Function([x], body))
        model = tvm.contrib.graph_executor.GraphModule(
            relay.build(mod, target=target)["default"](tvm.cpu())
        )
        model.run(x=data)
        outputs.append(model.get_output(0).numpy())
    np.testing.assert_array_equal(outputs[0], outputs[1])
    child = os.fork()
    if child == 0:  # permission is inherited, and a child begins with no tiles configured
        model.run(x=data)
        os._exit(int(not np.array_equal(model.get_output(0).numpy(), outputs[0])))
    assert os.waitpid(child, 0)[1] == 0
