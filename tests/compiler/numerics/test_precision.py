"""Precisions of a float32 model: what a target does fastest, and float32 in parts of bfloat16."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.precision import in_precision
from slipway.errors import TargetError
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.runtime.cpu_features import missing_features
from slipway.target import Target

XEON = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=1")
PLAIN = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")
RNG = np.random.default_rng(0)


def model():
    """A dense layer, a product of two computed matrices, a convolution of one tap."""
    x = relay.var("x", shape=(128, 96))
    weight = RNG.standard_normal((64, 96)).astype("float32")
    rows = relay.nn.dense(x, relay.const(weight))
    square = relay.nn.batch_matmul(relay.expand_dims(rows, 0), relay.expand_dims(rows, 0))
    image = relay.reshape(square, (1, 128, 16, 8))
    kernel = RNG.standard_normal((32, 128, 1, 1)).astype("float32")
    body = relay.nn.conv2d(image, relay.const(kernel), kernel_size=(1, 1), channels=32)
    return tvm.IRModule.from_expr(relay.Function([x], body))


def names(module):
    return [e.op.name for e in post_order(module["main"]) if hasattr(getattr(e, "op", 0), "name")]


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (XEON, "bfloat16"),
        (PLAIN, "float32"),
        (Target("llvm -mcpu=graniterapids -mattr=-amx-tile"), "float32"),  # vdpbf16ps: half of it
        (Target("llvm -mcpu=znver5"), "bfloat16"),
        (Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n2"), "bfloat16"),
        (Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76"), "float32"),
        (Target("c"), "float32"),
    ],
)
def test_auto_takes_what_the_target_multiplies_fastest(target, wanted):
    module = model()
    made, _ = in_precision(module, None, "auto", target)
    low = {e.checked_type.dtype for e in post_order(made["main"]) if hasattr(e, "op")}
    assert ("bfloat16" in low) == (wanted == "bfloat16")
    assert made["main"].checked_type.ret_type == module["main"].checked_type.ret_type


@pytest.mark.parametrize(("precision", "bound"), [("bfloat16x3", 2e-5), ("bfloat16x6", 2e-6)])
def test_products_in_parts_are_those_of_float32(precision, bound):
    module = model()
    made, _ = in_precision(module, None, precision, XEON)
    assert names(made).count("nn.float_parts") == 4  # two of them of computed matrices
    data = RNG.standard_normal((128, 96)).astype("float32")
    wide = relay.Function(module["main"].params, module["main"].body)
    exact = np.asarray(interpret(wide, data), "float64")
    scale = np.abs(exact).max()
    assert np.abs(np.asarray(interpret(made["main"], data)) - exact).max() <= bound * scale
    if missing_features(XEON.needed):
        return
    library = relay.build(made, target=XEON)
    got = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu()))
    got.run(x=data)
    assert "tdpbf16ps" in library.get_lib().get_source("asm")
    assert np.abs(got.get_output(0).numpy() - exact).max() <= bound * scale


def test_layers_that_wait_for_their_weights_stay_in_float32():
    x = relay.var("x", shape=(8, 96))
    weight = RNG.standard_normal((64, 96)).astype("float32")
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(weight))))
    made, _ = in_precision(module, None, "bfloat16x3", XEON)
    assert "nn.float_parts" not in names(made)


@pytest.mark.parametrize(
    ("precision", "target", "message"),
    [
        ("bfloat16x4", XEON, "not one of float32, bfloat16.*Did you mean 'bfloat16x"),
        ("bfloat16x3", PLAIN, "has no unit that does them in less time. Choose float32"),
        ("bfloat16x3", Target("llvm -mcpu=znver5"), "takes 3 products of bfloat16 for one"),
    ],
)
def test_what_a_target_cannot_do_is_refused_in_words(precision, target, message):
    with pytest.raises(TargetError, match=message):
        in_precision(model(), None, precision, target)
