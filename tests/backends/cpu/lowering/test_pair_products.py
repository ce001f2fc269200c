"""Which products of bfloat16 are computed in pairs."""

import ml_dtypes
import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.dot_pairs import best_in_pairs, pair_instructions
from slipway.target import Target
from slipway.transform.graph.infer_type import infer_type

LOW = "bfloat16"


def var(*shape, name="x"):
    return relay.var(name, shape=shape, dtype=LOW)


def const(*shape):
    return relay.const(np.ones(shape, ml_dtypes.bfloat16))


def conv(data, kernel, **how):
    return relay.nn.conv2d(var(*data), const(*kernel), **how)


X = var(1, 16, 8, 8)
PRODUCTS = {
    "dense": (relay.nn.dense(var(4, 8), const(6, 8)), True),
    "an odd depth": (relay.nn.dense(var(4, 7), const(6, 7)), False),
    "a computed weight": (relay.nn.dense(var(4, 8), var(6, 8, name="w")), False),
    "conv 1x1": (conv((1, 16, 8, 8), (8, 16, 1, 1)), True),
    "depthwise": (conv((1, 16, 8, 8), (16, 1, 3, 3), groups=16), False),
    "small window over an image": (conv((1, 3, 32, 32), (32, 3, 3, 3), strides=(2, 2)), False),
    "large window over an image": (conv((1, 3, 32, 32), (64, 3, 7, 7), strides=(2, 2)), True),
    "faster by Winograd": (conv((1, 64, 56, 56), (64, 64, 3, 3), padding=(1, 1)), False),
    "few positions": (conv((1, 256, 8, 8), (256, 256, 3, 3), padding=(1, 1)), True),
    "matrices": (relay.nn.batch_matmul(var(2, 8, 16), var(2, 32, 16, name="y")), True),
    "few rows": (relay.nn.batch_matmul(var(2, 2, 16), var(2, 32, 16, name="y")), False),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products_that_gain_are_in_pairs(case):
    body, wanted = PRODUCTS[case]
    function = infer_type(body.as_function())
    assert best_in_pairs(function, 16, 2, winograd=True)(function.body) == wanted


@pytest.mark.parametrize(
    ("heads", "rows", "keys", "apart"),
    [
        (2, 16, 16, False),
        (2, 64, 64, True),
        (2, 64, 65, False),  # an odd depth of the second product
        (2, 32, 128, False),
        (2, 2048, 4096, False),  # scores that leave all caches
    ],
)
def test_products_of_an_attention_stay_together_in_float32_unless_pairs_gain(
    heads, rows, keys, apart
):
    query, key = var(heads, rows, 32, name="q"), var(heads, keys, 32, name="k")
    scores = relay.nn.batch_matmul(query, key)
    powers = relay.nn.softmax(relay.cast(relay.multiply(scores, const(1)), "float32"))
    value = var(heads, keys, 32, name="v")
    result = relay.nn.batch_matmul(relay.cast(powers, LOW), value, transpose_b=False)
    again = relay.nn.batch_matmul(result, query)
    function = infer_type(again.as_function())
    serves = best_in_pairs(function, 16, 2, winograd=True)
    last = function.body
    assert serves(last)
    assert serves(last.args[0]) == apart
    first = last.args[0].args[0].args[0].args[0].args[0].args[0]
    assert serves(first) == apart


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("llvm -mcpu=znver4", True),
        ("llvm -mcpu=znver5", True),
        ("llvm -mcpu=sapphirerapids", True),  # its AMX
        # On these `vdpbf16ps` does half of what float32 does, or nothing is known of it.
        ("llvm -mcpu=cooperlake", False),
        ("llvm -mcpu=graniterapids -mattr=-amx-tile", False),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=+avx512bf16", False),
        ("llvm -mcpu=znver4 -strict=1", False),
        ("llvm -mcpu=skylake-avx512", False),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n2", True),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76", False),
    ],
)
def test_targets_with_an_instruction_that_is_a_gain(target, wanted):
    assert bool(pair_instructions(Target(target))) == wanted
