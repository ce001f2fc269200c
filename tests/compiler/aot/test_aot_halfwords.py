"""Layers with 16 bits in their data or results, or that round once, by hand-written kernels.

Against the operators' reference, compiled for this machine (their portable form); tests/micro runs
them with the instructions of their cores.
"""

import functools

import numpy as np
import pytest
from aot_models import build
from tests.compiler.aot.test_aot import compile_shared, run
from tests.compiler.aot.test_aot_kernels import SANITIZE, TARGETS, expected

import slipway as tvm
from slipway import relay
from slipway.relay.op_registry import get
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, IntegerDenseAttrs
from slipway.relay.ops.qnn.rescale import RescaleAttrs

SUMS = {
    "dense": "qnn.dense_packed",
    "conv": "qnn.conv2d_nhwc",
    "depthwise": "qnn.depthwise_conv2d_nhwc",
}


def halfword_layer(
    kind, shape, units, kernel, *, data="int16", result="int16", rule="short", per_channel=True,
    seed=0, largest=128, shifts=(-9, -5), bounds=None, **attrs,
):  # fmt: skip
    """A layer as importers write it."""
    rng = np.random.default_rng(seed)
    x = relay.var("data", shape=shape, dtype=data)
    weight = (*(kernel or ()), *([] if kind == "depthwise" else [shape[-1]]), units)
    values = relay.const(rng.integers(1 - largest, largest, weight).astype("int8"))
    wide = rule in ("short", "once of 64")
    out = {"out_dtype": "int64" if wide else "int32"}
    if kind == "dense":
        made = IntegerDenseAttrs(**out)
    else:
        pad_value = int(rng.integers(-128, 128)) if data == "int8" else 0
        made = IntegerConvAttrs(**{"pad_value": pad_value, **attrs, **out})
    sums = get(SUMS[kind])(x, values, attrs=made)
    bias = rng.integers(-(1 << 18), 1 << 18, units)
    total = relay.add(sums, relay.const(bias, "int64" if wide else "int32"))
    count = (units,) if per_channel else ()
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, count).astype("int32")
    shift = np.asarray(rng.integers(*shifts, count), "int32")
    scaled = get("qnn.rescale")(
        total, relay.const(np.asarray(multiplier)), relay.const(shift),
        attrs=RescaleAttrs(once=rule.startswith("once")),
    )  # fmt: skip
    zero = int(rng.integers(-99, 100)) if result == "int8" else 0
    low, high = bounds or {"int8": (-128, 127), "int16": (-32768, 32767)}[result]
    scaled = relay.add(scaled, relay.const(np.int32(zero))) if zero else scaled
    body = relay.cast(relay.clip(scaled, low, high), result)
    return tvm.IRModule.from_expr(relay.Function([x], body)), {}


CASES = {
    "row": ("dense", (1, 40), 12, None, {}),
    "row of odd size": ("dense", (1, 23), 9, None, {"per_channel": False}),
    "one element": ("dense", (1, 1), 3, None, {}),
    "rows": ("dense", (5, 12), 7, None, {}),
    "row of bytes": ("dense", (1, 24), 10, None, {"data": "int8", "rule": "twice"}),
    "shifted to the left": (
        "dense", (1, 5), 6, None,
        {"data": "int8", "rule": "twice", "shifts": (-4, 3), "largest": 9},
    ),
    "bytes that round once": (
        "dense", (1, 30), 5, None, {"data": "int8", "result": "int8", "rule": "once"},
    ),
    "one scale that rounds once": (
        "dense", (3, 16), 8, None,
        {"data": "int8", "result": "int8", "rule": "once", "per_channel": False},
    ),
    "64 bits once": ("dense", (2, 33), 6, None, {"rule": "once of 64"}),
    "narrowed to bytes": ("dense", (1, 17), 4, None, {"result": "int8", "shifts": (-17, -12)}),
    "window": ("conv", (1, 7, 6, 5), 9, (3, 3), {"padding": (1, 1, 1, 1)}),
    "pixels": ("conv", (1, 4, 5, 16), 8, (1, 1), {}),
    "pixels of odd size": ("conv", (1, 4, 5, 7), 3, (1, 1), {"strides": (2, 2)}),
    "relu": ("conv", (1, 6, 6, 4), 6, (2, 3), {"strides": (2, 1), "bounds": (0, 20000)}),
    "apart": ("conv", (1, 9, 8, 3), 5, (3, 2), {"dilation": (2, 3), "padding": (2, 1, 2, 1)}),
    "window of bytes": (
        "conv", (1, 6, 5, 3), 7, (3, 3),
        {"data": "int8", "rule": "twice", "padding": (1, 1, 1, 1)},
    ),
    "only padding": ("conv", (1, 2, 2, 4), 4, (1, 1), {"padding": (2, 2, 2, 2)}),
    "whole image and padding": (
        "conv", (1, 2, 2, 8), 6, (2, 2), {"padding": (1, 1, 0, 0), "strides": (2, 2)},
    ),
    "depthwise": ("depthwise", (1, 7, 6, 8), 8, (3, 3), {"padding": (1, 1, 1, 1)}),
    "depthwise of odd size": ("depthwise", (1, 5, 6, 7), 7, (3, 2), {"strides": (2, 1)}),
    "depthwise of bytes": (
        "depthwise", (1, 6, 6, 6), 6, (3, 3),
        {"data": "int8", "rule": "twice", "padding": (1, 1, 1, 1)},
    ),
    "one channel": ("depthwise", (1, 8, 8, 1), 6, (5, 3), {"padding": (2, 1, 2, 1)}),
}  # fmt: skip


def values_of(shape, dtype, count=3):
    info = np.iinfo(dtype)
    data = np.random.default_rng(1).integers(info.min, info.max + 1, (count, *shape)).astype(dtype)
    data[0] = info.min  # the largest sums
    return data


@functools.cache
def every_layer():
    """All cases in one program, its inputs, and what the reference gives for each of them."""
    params, bodies, inputs, wanted = [], [], {}, {}
    for seed, (name, (*case, attrs)) in enumerate(CASES.items()):
        mod, _ = halfword_layer(*case, seed=seed, **attrs)
        data = values_of(case[1], attrs.get("data", "int16"))
        inputs[f"x{seed}"], wanted[name] = data, expected((mod, {}), data)
        param = relay.var(f"x{seed}", shape=case[1], dtype=str(data.dtype))
        params.append(param)
        bodies.append(relay.bind(mod["main"].body, {mod["main"].params[0]: param}))
    return tvm.IRModule.from_expr(relay.Function(params, relay.Tuple(bodies))), inputs, wanted


@pytest.mark.parametrize("family", TARGETS)
def test_layers_equal_the_reference(family, tmp_path):
    mod, inputs, wanted = every_layer()
    lib = build((mod, {}), TARGETS[family])
    assert {k.family for k in lib.library.values()} == {f"halfwords_{family}"}
    assert len(lib.library) == len(lib.prim_funcs) == len(CASES)
    library = compile_shared(lib, tmp_path, *SANITIZE)
    for number in range(3):
        status, outputs = run(library, lib, {name: x[number] for name, x in inputs.items()})
        assert status == 0
        for (name, expected_of), output in zip(wanted.items(), outputs, strict=True):
            np.testing.assert_array_equal(output, expected_of[number], err_msg=name)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(
    ("depth", "attrs"),
    [(1200, {"largest": 128}), (16, {"shifts": (15, 16)}), (16, {"shifts": (-34, -33)})],
)
def test_sums_and_shifts_that_do_not_fit_keep_their_loops(depth, attrs, target, tmp_path):
    model = halfword_layer("dense", (1, depth), 4, None, seed=3, **attrs)
    lib = build(model, target)
    assert not lib.library
    data = values_of((1, depth), "int16", 1)
    _, outputs = run(compile_shared(lib, tmp_path), lib, {"data": data[0]})
    np.testing.assert_array_equal(outputs[0], expected(model, data)[0])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_results_lie_over_the_pixels_that_have_been_read(target, tmp_path):
    first, _ = halfword_layer("conv", (1, 10, 9, 4), 8, (3, 3), seed=5, padding=(1, 1, 1, 1))
    second, _ = halfword_layer(
        "depthwise", (1, 10, 9, 8), 8, (3, 3), seed=6, padding=(1, 1, 1, 1), strides=(2, 2)
    )
    third, _ = halfword_layer("conv", (1, 5, 5, 8), 12, (1, 1), seed=7)
    x = data = relay.var("data", shape=(1, 10, 9, 4), dtype="int16")
    for layer in (first, second, third):
        function = layer["main"]
        x = relay.bind(function.body, {function.params[0]: x})
    model = tvm.IRModule.from_expr(relay.Function([data], x)), {}
    lib = build(model, target)
    assert len(lib.library) == 3
    assert lib.program.overlapping_kernels()
    inputs = values_of((1, 10, 9, 4), "int16")
    library = compile_shared(lib, tmp_path, *SANITIZE)
    for one, output in zip(inputs, expected(model, inputs), strict=True):
        _, outputs = run(library, lib, {"data": one})
        np.testing.assert_array_equal(outputs[0], output)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(
    ("case", "is_free"),
    [
        (("dense", (1, 32), 8, None), True),
        (("conv", (1, 4, 4, 16), 8, (1, 1)), True),
        (("dense", (1, 33), 8, None), False),
        (("conv", (1, 4, 4, 16), 8, (2, 2)), False),
    ],
)
def test_windows_that_are_read_where_they_lie_take_no_memory(case, is_free, target):
    (kernel,) = build(halfword_layer(*case), target).library.values()
    assert (kernel.workspace_bytes == 0) == is_free
