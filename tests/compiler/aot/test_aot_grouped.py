"""Quantised convolutions in groups, and of several filters a channel, by kernels of their parts.

Against the operators' reference, compiled for this machine (their portable form); tests/micro runs
them with the instructions of their cores.
"""

import re

import numpy as np
import pytest
from aot_models import build
from tests.compiler.aot.test_aot import compile_shared, run
from tests.compiler.aot.test_aot_kernels import SANITIZE, TARGETS, _call, _rescale, expected

import slipway as tvm
from slipway import relay


def grouped_layer(kind, shape, filters, groups, kernel, per_channel=True, seed=0, **attrs):
    """A layer as importers write it; `groups` is the filters of each channel of a depthwise one."""
    rng = np.random.default_rng(seed)
    data = relay.var("data", shape=(1, *shape), dtype="int8")
    attrs["pad_value"] = int(rng.integers(-128, 128))
    if kind == "depthwise":
        weight = rng.integers(-127, 128, (*kernel, filters))
        sums = _call("qnn.depthwise_conv2d_nhwc", data, weight, **attrs)
    else:
        weight = rng.integers(-127, 128, (*kernel, shape[2] // groups, filters))
        sums = _call("qnn.conv2d_nhwc", data, weight, groups=groups, **attrs)
    count = filters if per_channel else 1
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, count).astype("int32")
    shift = rng.integers(-12, -6, count).astype("int32")
    if not per_channel:
        multiplier, shift = multiplier.reshape(()), shift.reshape(())
    x = relay.add(sums, relay.const(rng.integers(-9999, 10000, filters).astype("int32")))
    x = relay.add(_rescale(x, multiplier, shift), relay.const(np.int32(rng.integers(-128, 128))))
    x = relay.cast(relay.clip(x, -100, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}


CASES = {
    "two groups": ("conv", (7, 6, 8), 12, 2, (3, 3), True, 1, {"padding": (1, 1, 1, 1)}),
    "odd channels": ("conv", (5, 7, 15), 9, 3, (3, 3), True, 2, {"padding": (1, 0, 1, 2)}),
    "one filter a group": ("conv", (6, 6, 12), 4, 4, (2, 3), True, 3, {}),
    "groups of one channel": ("conv", (6, 5, 3), 12, 3, (3, 3), False, 4, {"strides": (2, 2)}),
    "rows that lie apart": ("conv", (9, 8, 8), 8, 4, (3, 2), True, 5,
                            {"dilation": (3, 2), "padding": (3, 1, 3, 1)}),
    "one pixel": ("conv", (4, 4, 16), 32, 4, (1, 1), True, 6, {"strides": (2, 1)}),
    "only padding": ("conv", (2, 2, 4), 4, 2, (1, 1), True, 7, {"padding": (2, 2, 2, 2)}),
    "a line": ("conv", (1, 17, 12), 18, 3, (1, 5), True, 8,
               {"dilation": (1, 2), "padding": (0, 4, 0, 4)}),
    "a column": ("conv", (17, 1, 12), 18, 3, (5, 1), True, 9, {"padding": (2, 0, 2, 0)}),
    "the whole image": ("conv", (3, 3, 8), 6, 2, (3, 3), True, 10, {}),
    "its padding too": ("conv", (2, 2, 8), 6, 2, (2, 2), True, 11,
                        {"padding": (1, 1, 0, 0), "strides": (2, 2)}),
    "three filters": ("depthwise", (7, 7, 5), 15, 3, (3, 3), True, 12, {"padding": (1, 1, 1, 1)}),
    "two filters": ("depthwise", (8, 6, 16), 32, 2, (3, 3), False, 13,
                    {"padding": (0, 0, 1, 1), "strides": (2, 2)}),
    "seven filters of two": ("depthwise", (6, 6, 2), 14, 7, (5, 5), True, 14,
                             {"padding": (2, 2, 2, 2)}),
    "filters that lie apart": ("depthwise", (9, 9, 4), 8, 2, (3, 3), True, 15,
                               {"dilation": (2, 3), "padding": (2, 3, 2, 3)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_parts_equal_the_reference(name, tmp_path):
    *case, attrs = CASES[name]
    model = grouped_layer(*case, **attrs)
    data = np.random.default_rng(1).integers(-128, 128, (3, 1, *case[1])).astype("int8")
    wanted = expected(model, data)
    for family, target in TARGETS.items():
        lib = build(model, target)
        (kernel,) = lib.library.values()
        assert kernel.also == ("grouped",)
        assert kernel.family.startswith(family)
        folder = tmp_path / family
        folder.mkdir()
        library = compile_shared(lib, folder, *SANITIZE)
        for offset, (one, output) in enumerate(zip(data, wanted, strict=True)):
            status, outputs = run(library, lib, {"data": one}, offset=offset)
            assert status == 0
            np.testing.assert_array_equal(outputs[0], output, err_msg=family)


@pytest.mark.parametrize("target", TARGETS.values())
def test_memory_is_for_the_rows_of_a_window(target):
    model = grouped_layer("conv", (32, 16, 24), 24, 2, (3, 3), padding=(1, 1, 1, 1))
    (kernel,) = build(model, target).library.values()
    rows, results, window = 3 * 16 * 12, 16 * 12, 7 * 9 * 12
    assert kernel.workspace_bytes <= rows + results + window + 64


def test_layers_that_a_family_computes_have_no_parts():
    model = grouped_layer("depthwise", (5, 5, 8), 8, 1, (3, 3))
    (kernel,) = build(model, TARGETS["dsp"]).library.values()
    assert kernel.also == ()
    assert not re.search("slw_band", build(model, TARGETS["dsp"]).get_source())


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_window_over_the_whole_image_and_its_padding_is_no_row(target, tmp_path):
    """One result, from as many elements as the image has: but not from those in their order."""
    model = grouped_layer(
        "conv", (2, 2, 8), 6, 1, (2, 2), padding=(1, 1, 0, 0), strides=(2, 2)
    )  # fmt: skip
    data = np.random.default_rng(1).integers(-128, 128, (2, 1, 2, 2, 8)).astype("int8")
    lib = build(model, target)
    library = compile_shared(lib, tmp_path, *SANITIZE)
    for one, output in zip(data, expected(model, data), strict=True):
        _, outputs = run(library, lib, {"data": one})
        np.testing.assert_array_equal(outputs[0], output)
