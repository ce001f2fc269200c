"""Quantised convolutions in groups, and of several filters a channel, by kernels of their parts.

Against the operators' reference, compiled for this machine (their portable form); tests/micro runs
them with the instructions of their cores.
"""

import re

import numpy as np
import pytest
from aot_models import build
from tests.compiler.aot.test_aot import compile_shared, run
from tests.compiler.aot.test_aot_kernels import (
    SANITIZE,
    TARGETS,
    _call,
    _rescale,
    expected,
    quantized_layer,
)

import slipway as tvm
from slipway import relay
from slipway.relay.interpret import interpret
from slipway.relay.ops.qnn.rescale import rescale


def grouped_layer(
    kind, shape, filters, groups, kernel, per_channel=True, seed=0, images=1, **attrs
):
    """A layer as importers write it; `groups` is the filters of each channel of a depthwise one."""
    data = relay.var("data", shape=(images, *shape), dtype="int8")
    rng = np.random.default_rng(seed)
    body = layer_of(data, kind, shape, filters, groups, kernel, per_channel, rng, attrs)
    return tvm.IRModule.from_expr(relay.Function([data], body)), {}


def layer_of(data, kind, shape, filters, groups, kernel, per_channel, rng, attrs):
    attrs = {"pad_value": int(rng.integers(-128, 128)), **attrs}
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
    return relay.cast(relay.clip(x, -100, 127), "int8")


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
    "images": ("conv", (6, 5, 7), 10, 1, (3, 3), True, 16,
               {"images": 3, "padding": (1, 1, 1, 1)}),
    "images of one pixel": ("conv", (1, 1, 16), 8, 1, (1, 1), True, 17, {"images": 5}),
    "depthwise over images": ("depthwise", (6, 6, 9), 9, 1, (3, 3), True, 18,
                              {"images": 2, "strides": (2, 2)}),
    "one channel of images": ("depthwise", (7, 7, 1), 6, 6, (3, 3), True, 19, {"images": 2}),
    "groups of images": ("conv", (5, 4, 6), 9, 3, (3, 3), True, 20,
                         {"images": 2, "padding": (1, 1, 1, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_parts_equal_the_reference(name, tmp_path):
    *case, attrs = CASES[name]
    model = grouped_layer(*case, **attrs)
    shape = (3, attrs.get("images", 1), *case[1])
    data = np.random.default_rng(1).integers(-128, 128, shape).astype("int8")
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


@pytest.mark.parametrize("family", TARGETS)
@pytest.mark.parametrize(
    ("rows", "depth", "units"), [(5, 24, 10), (4, 13, 7), (2, 8, 1), (9, 3, 16)]
)
def test_rows_of_a_product_are_pixels(family, rows, depth, units, tmp_path):
    case = ("dense", 1, depth, units, 1, 1, False, True, 5 * rows + 1)
    model = quantized_layer(*case, rows=rows)
    data = np.random.default_rng(1).integers(-128, 128, (3, rows, depth)).astype("int8")
    lib = build(model, TARGETS[family])
    (kernel,) = lib.library.values()
    assert kernel.family.startswith(family)
    library = compile_shared(lib, tmp_path, *SANITIZE)
    for offset, (one, output) in enumerate(zip(data, expected(model, data), strict=True)):
        _, outputs = run(library, lib, {"data": one}, offset=offset)
        np.testing.assert_array_equal(outputs[0], output)


@pytest.mark.parametrize("target", TARGETS.values())
def test_memory_is_for_the_rows_of_a_window(target):
    model = grouped_layer("conv", (32, 16, 24), 24, 2, (3, 3), padding=(1, 1, 1, 1))
    (kernel,) = build(model, target).library.values()
    rows, results, window = 3 * 16 * 12, 16 * 12, 7 * 9 * 12
    assert kernel.workspace_bytes <= rows + results + window + 64


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(("images", "stride"), [(1, 1), (1, 2), (3, 1), (2, 2)])
def test_results_lie_over_the_rows_that_have_been_read(target, images, stride, tmp_path):
    rng = np.random.default_rng(stride)
    x = data = relay.var("data", shape=(images, 12, 9, 6), dtype="int8")
    layers = [
        ("conv", (12, 9, 6), 12, 1, (1, 1), {}),
        ("conv", (12, 9, 12), 12, 3, (3, 3), {"padding": (1, 1, 1, 1)}),
        ("depthwise", (12, 9, 12), 24, 2, (3, 3),
         {"padding": (1, 1, 1, 1), "strides": (stride, stride)}),
        ("conv", (12 // stride, -(-9 // stride), 24), 8, 2, (3, 2), {"padding": (1, 0, 1, 0)}),
    ]  # fmt: skip
    for kind, shape, filters, groups, kernel, attrs in layers:
        x = layer_of(x, kind, shape, filters, groups, kernel, True, rng, attrs)
    model = tvm.IRModule.from_expr(relay.Function([data], x)), {}
    lib = build(model, target)
    grouped = {name for name, kernel in lib.library.items() if kernel.also}
    assert len(grouped) == (3 if images == 1 else 4)
    assert grouped & set(lib.program.overlapping_kernels())
    inputs = rng.integers(-128, 128, (2, images, 12, 9, 6)).astype("int8")
    library = compile_shared(lib, tmp_path, *SANITIZE)
    for one, output in zip(inputs, expected(model, inputs), strict=True):
        _, outputs = run(library, lib, {"data": one})
        np.testing.assert_array_equal(outputs[0], output)


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


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_layers_that_share_a_constant_have_it_in_the_arrangement_of_each(target, tmp_path):
    """Of an array of shifts a stream has nothing, and loops read it as it is."""
    rng = np.random.default_rng(3)
    data = relay.var("data", shape=(1, 6, 6, 8), dtype="int8")
    weights = [rng.integers(-127, 128, shape) for shape in ((3, 3, 8, 8), (3, 3, 4, 8))]
    bias, scale, shift = (
        relay.const(rng.integers(low, high, 8).astype("int32"))
        for low, high in ((-999, 1000), (1 << 30, 1 << 31), (-9, -7))
    )
    outputs = []
    for weight, groups in zip(weights, (1, 2), strict=True):
        sums = _call("qnn.conv2d_nhwc", data, weight, groups=groups)
        x = relay.clip(rescale(relay.add(sums, bias), scale, shift), -128, 127)
        outputs.append(relay.cast(x, "int8"))
    outputs.append(relay.cast(relay.right_shift(relay.cast(data, "int32"), 0 - shift), "int8"))
    model = tvm.IRModule.from_expr(relay.Function([data], relay.Tuple(outputs))), {}
    lib = build(model, target)
    assert len(lib.library) == 2
    given = rng.integers(-128, 128, (1, 6, 6, 8)).astype("int8")
    _, found = run(compile_shared(lib, tmp_path, *SANITIZE), lib, {"data": given})
    for got, want in zip(found, interpret(model[0]["main"], given), strict=True):
        np.testing.assert_array_equal(got, want)
