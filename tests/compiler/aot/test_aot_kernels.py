"""The hand-written int8 kernels against the operators' NumPy reference, compiled for this machine
(their portable form); tests/micro runs those with DSP and vector instructions on their cores."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from aot_models import build
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compiler.aot.test_aot import compile_shared, reference, run, write

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.op_registry import get
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, IntegerDenseAttrs
from slipway.relay.ops.qnn.rescale import rescale


def quantized_layer(
    kind, size, channels, units, kernel, stride, padded, per_channel, seed, low=-128, rows=1,
    largest_bias=1 << 16, zeros=(-128, 128),
):  # fmt: skip
    """One layer as importers write it, and its input's name."""
    rng = np.random.default_rng(seed)
    pad_value = int(rng.integers(-128, 128))
    pad = kernel // 2 if padded else 0
    attrs = {"strides": (stride, stride), "padding": (pad,) * 4, "pad_value": pad_value}
    if kind == "dense":
        shape, weight = (rows, channels), rng.integers(-127, 128, (channels, units))
        data = relay.var("data", shape=shape, dtype="int8")
        sums = _call("qnn.dense_packed", data, weight)
    else:
        data = relay.var("data", shape=(1, size, size, channels), dtype="int8")
        if kind == "depthwise":
            units = channels if channels > 1 else units
            weight = rng.integers(-127, 128, (kernel, kernel, units))
            sums = _call("qnn.depthwise_conv2d_nhwc", data, weight, **attrs)
        else:
            weight = rng.integers(-127, 128, (kernel, kernel, channels, units))
            sums = _call("qnn.conv2d_nhwc", data, weight, **attrs)
    bias = rng.integers(-largest_bias, largest_bias + 1, units).astype("int32")
    count = units if per_channel else 1
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, count).astype("int32")
    shift = rng.integers(-12, 3 if seed % 5 == 0 else -6, count).astype("int32")
    if not per_channel:
        multiplier, shift = multiplier.reshape(()), shift.reshape(())
    x = relay.add(sums, relay.const(bias))
    x = _rescale(x, multiplier, shift)
    x = relay.add(x, relay.const(np.int32(rng.integers(*zeros))))
    x = relay.cast(relay.clip(x, low, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}


def _call(name, data, weight, **attrs):
    made = IntegerDenseAttrs() if name.startswith("qnn.dense") else IntegerConvAttrs(**attrs)
    definition = get(name)
    return definition(data, relay.const(weight.astype("int8")), attrs=made)


def _rescale(x, multiplier, shift):
    return rescale(x, relay.const(multiplier), relay.const(shift))


SANITIZE = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]


def expected(model, inputs):
    """Return the outputs for a batch of inputs."""
    with tvm.transform.PassContext(opt_level=0):
        lib = relay.build(model[0], target="llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    outputs = []
    for data in inputs:
        module.set_input("data", data)
        module.run()
        outputs.append(module.get_output(0).numpy())
    return outputs


CASES = [
    ("conv", 7, 3, 5, 3, 1, True, True, 0),
    ("conv", 6, 8, 16, 1, 1, False, True, 1),
    ("conv", 9, 4, 6, 3, 2, True, False, 2),
    ("conv", 5, 1, 8, 5, 2, True, True, 5),
    ("conv", 1, 12, 7, 1, 1, False, True, 3),
    ("depthwise", 7, 8, 8, 3, 1, True, True, 4),
    ("depthwise", 8, 12, 12, 3, 2, True, False, 6),
    ("depthwise", 9, 1, 8, 3, 2, True, True, 10),
    ("depthwise", 6, 4, 4, 5, 1, False, True, 7),
    ("depthwise", 6, 7, 7, 3, 1, True, True, 14),
    ("depthwise", 6, 6, 6, 3, 2, True, True, 15),
    ("depthwise", 5, 3, 3, 3, 1, True, True, 16),
    ("depthwise", 6, 9, 9, 2, 1, False, False, 22),
    ("depthwise", 7, 8, 8, 5, 2, True, True, 23),
    ("depthwise", 4, 5, 5, 1, 1, False, True, 24),
    ("dense", 1, 64, 12, 1, 1, False, False, 8),
    ("dense", 1, 16, 3, 1, 1, False, True, 9),
    ("dense", 1, 10, 4, 1, 1, False, True, 11),
    ("dense", 1, 23, 9, 1, 1, False, True, 17),
    ("conv", 5, 20, 7, 1, 2, False, False, 18),
    ("conv", 4, 5, 3, 3, 1, True, True, 19),
    ("conv", 2, 12, 1, 1, 1, False, True, 21),
]


TARGETS = {
    "dsp": "c -keys=arm_cpu -mcpu=cortex-m4",
    "mve": "c -keys=arm_cpu -mcpu=cortex-m55",
    "scalar": "c -mtriple=riscv32-unknown-none-elf -mattr=+m",
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_kernels_equal_the_reference(case, tmp_path):
    """Also under sanitizers, and from a misaligned caller: int8 has no alignment to check."""
    model = quantized_layer(*case)
    rng = np.random.default_rng(1)
    shape = build(model).program.inputs[0].type.shape
    data = rng.integers(-128, 128, (3, *shape)).astype("int8")
    wanted = expected(model, data)
    for family, target in TARGETS.items():
        lib = build(model, target)
        (kernel,) = lib.library.values()
        if case[-1] % 5:  # the others may have left shifts, which only one family computes
            folds = "dsp_folded" if case[0] != "depthwise" or case[2] == 1 else "dsp_pairs"
            folds = "dsp" if folds == "dsp_pairs" and case[2] < 4 else folds
            assert kernel.family == (folds if family == "dsp" else family)
        folder = tmp_path / family
        folder.mkdir()
        library = compile_shared(lib, folder, *SANITIZE)
        for offset, (one, output) in enumerate(zip(data, wanted, strict=True)):
            status, outputs = run(library, lib, {"data": one}, offset=offset)
            assert status == 0
            np.testing.assert_array_equal(outputs[0], output, err_msg=family)


def quantized_sum(size, zeros, scales, low=-128):
    """Two tensors added as importers write it."""
    names = ("data", "other")
    inputs = [relay.var(n, shape=(1, 3, size), dtype="int8") for n in names]
    sides = []
    for x, zero, (multiplier, shift) in zip(inputs, zeros, scales, strict=False):
        x = relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(zero)))
        x = relay.left_shift(x, relay.const(np.int32(20)))
        sides.append(_rescale(x, np.int32(multiplier), np.int32(shift)))
    x = _rescale(relay.add(*sides), *map(np.int32, scales[2]))
    x = relay.cast(relay.clip(relay.add(x, relay.const(np.int32(zeros[2]))), low, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function(inputs, x)), {}


@pytest.mark.parametrize(
    ("size", "zeros", "scales", "low"),
    [
        (16, (-128, 4, -128), ((1623821475, -2), (1 << 30, 0), (1098017566, -17)), -128),
        (7, (3, -5, 10), ((1 << 30, 0), (1899529983, -1), (1835721671, -18)), -3),
    ],
)
def test_sum_equals_the_reference(size, zeros, scales, low, tmp_path):
    model = quantized_sum(size, zeros, scales, low)
    lib = build(model, TARGETS["mve"])
    assert [k.family for k in lib.library.values()] == ["addition"]
    rng = np.random.default_rng(1)
    inputs = {n: rng.integers(-128, 128, (1, 3, size)).astype("int8") for n in ("data", "other")}
    _, outputs = run(compile_shared(lib, tmp_path, *SANITIZE), lib, inputs)
    (wanted,) = reference(model, inputs)
    np.testing.assert_array_equal(outputs[0], wanted)


def quantized_product(shapes, zeros, scale, low=-128):
    """Two tensors multiplied as importers write it."""
    sides = []
    inputs = [
        relay.var(n, shape=s, dtype="int8") for n, s in zip(("data", "other"), shapes, strict=True)
    ]
    for x, zero in zip(inputs, zeros, strict=False):
        x = relay.cast(x, "int32")
        sides.append(relay.subtract(x, relay.const(np.int32(zero))) if zero else x)
    x = _rescale(relay.multiply(*sides), *map(np.int32, scale))
    x = relay.add(x, relay.const(np.int32(zeros[2]))) if zeros[2] else x
    x = relay.cast(relay.clip(x, low, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function(inputs, x)), {}


@pytest.mark.parametrize(
    ("shapes", "zeros", "scale", "low"),
    [
        (((1, 3, 5, 16), (1, 1, 1, 16)), (-128, 4, -128), (1623821475, -7), -128),
        (((1, 1, 1, 7), (1, 3, 5, 7)), (3, -5, 10), (1 << 30, -6), -3),
        (((1, 3, 5, 7), (1, 3, 5, 7)), (0, 127, 0), (1899529983, -9), -128),
        (((2, 9), (2, 9)), (5, 0, 0), (1 << 30, -1), -128),
    ],
)
def test_product_equals_the_reference(shapes, zeros, scale, low, tmp_path):
    model = quantized_product(shapes, zeros, scale, low)
    lib = build(model, TARGETS["mve"])
    assert [k.family for k in lib.library.values()] == ["product"]
    rng = np.random.default_rng(1)
    names = zip(("data", "other"), shapes, strict=True)
    inputs = {n: rng.integers(-128, 128, s).astype("int8") for n, s in names}
    _, outputs = run(compile_shared(lib, tmp_path, *SANITIZE), lib, inputs)
    (wanted,) = reference(model, inputs)
    np.testing.assert_array_equal(outputs[0], wanted)


@pytest.mark.parametrize(
    ("shapes", "scale"),
    [
        (((1, 3, 5, 4), (1, 3, 1, 4)), (1 << 30, -6)),  # a value a row and channel
        (((1, 3, 5, 4), (1, 1, 5, 1)), (1 << 30, -6)),
        (((1, 3, 5, 4), (1, 1, 1, 4)), (1 << 30, 0)),  # nothing to round
    ],
)
def test_other_products_have_no_kernel_by_hand(shapes, scale, tmp_path):
    model = quantized_product(shapes, (3, -5, 10), scale)
    lib = build(model, TARGETS["mve"])
    assert not lib.library
    rng = np.random.default_rng(1)
    names = zip(("data", "other"), shapes, strict=True)
    inputs = {n: rng.integers(-128, 128, s).astype("int8") for n, s in names}
    _, outputs = run(compile_shared(lib, tmp_path, *SANITIZE), lib, inputs)
    (wanted,) = reference(model, inputs)
    np.testing.assert_array_equal(outputs[0], wanted)


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(
    ("kind", "channels", "units", "changes"),
    [
        ("conv", 5, 1, {}),
        ("conv", 6, 7, {"largest_bias": 0}),
        ("conv", 8, 1, {"zeros": (0, 1), "largest_bias": 0}),
        ("depthwise", 8, 8, {"largest_bias": 0, "zeros": (0, 1)}),
        ("depthwise", 6, 6, {"zeros": (0, 1)}),
        ("dense", 20, 1, {}),
        ("dense", 12, 9, {"zeros": (0, 1)}),
        ("dense", 13, 5, {"largest_bias": 0}),
    ],
)
def test_what_is_zero_or_one_has_kernels_too(kind, channels, units, changes, per_channel, tmp_path):
    """No bias, an output around 0, a single channel: additions are missing, constants inlined."""
    model = quantized_layer(kind, 6, channels, units, 3, 1, True, per_channel, 31, **changes)
    shape = build(model).program.inputs[0].type.shape
    data = np.random.default_rng(1).integers(-128, 128, shape).astype("int8")
    (wanted,) = expected(model, [data])
    assert len(np.unique(wanted)) > 3 or units == 1
    for family, target in TARGETS.items():
        lib = build(model, target)
        assert len(lib.library) == 1, family
        (tmp_path / family).mkdir()
        library = compile_shared(lib, tmp_path / family, *SANITIZE)
        _, outputs = run(library, lib, {"data": data})
        np.testing.assert_array_equal(outputs[0], wanted, err_msg=family)


FOLDED = TARGETS["dsp"]


def product(weight, bias):
    """A product of one row whose outputs differ with every sum."""
    data = relay.var("data", shape=(1, len(weight)), dtype="int8")
    sums = _call("qnn.dense_packed", data, np.asarray(weight))
    x = _rescale(
        relay.add(sums, relay.const(np.asarray(bias, "int32"))), np.int32(1 << 30), np.int32(-15)
    )
    x = relay.cast(relay.clip(relay.add(x, relay.const(np.int32(3))), -128, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}


@pytest.mark.parametrize(
    ("name", "rows", "bias", "family"),
    [
        ("largest", [[127, -127], [126, 127]] * 258, [8388607 - 127 * 253 * 258, 0], "dsp_folded"),
        ("too large", [[127, -127], [126, 127]] * 258, [8388608 - 127 * 253 * 258, 0], "dsp"),
        ("lowest", [[-127, -127], [-126, 127]] * 2, [-8388608 + 127 * 506, 5], "dsp_folded"),
        ("too low", [[-127, -127], [-126, 127]] * 2, [-8388608 + 127 * 506 - 1, 5], "dsp"),
        ("an even -128", [[-128, 1], [5, 6], [7, 8], [9, 1]], [1, 2], "dsp"),
        ("an odd -128", [[5, 6], [-128, 1], [7, 8], [9, -128]], [1, 2], "dsp_folded"),
    ],
)
def test_sums_that_256_fold_does_not_hold_are_not_folded(name, rows, bias, family, tmp_path):
    model = product(rows, bias)
    lib = build(model, FOLDED)
    assert [k.family for k in lib.library.values()] == [family]
    size = len(rows)
    ends = [np.full((1, size), 127, "int8"), np.full((1, size), -128, "int8")]
    ends += [np.where(np.asarray(rows)[:, 0] > 0, a, b).astype("int8")[None]
             for a, b in ((127, -128), (-128, 127))]  # fmt: skip
    library = compile_shared(lib, tmp_path, *SANITIZE)
    for data, wanted in zip(ends, expected(model, ends), strict=True):
        _, outputs = run(library, lib, {"data": data})
        np.testing.assert_array_equal(outputs[0], wanted, err_msg=name)


@pytest.mark.parametrize("kind", ["conv", "depthwise"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_clipped_outputs_are_clipped(kind, target, tmp_path):
    model = quantized_layer(kind, 6, 4, 4, 3, 1, True, True, 12, low=-3)
    lib = build(model, target)
    assert lib.library
    data = np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 4)).astype("int8")
    _, outputs = run(compile_shared(lib, tmp_path), lib, {"data": data})
    assert outputs[0].min() >= -3
    np.testing.assert_array_equal(outputs[0], expected(model, [data])[0])


def test_vectors_sum_products_that_16_bits_do_not_hold(tmp_path):
    rng = np.random.default_rng(3)
    data = relay.var("data", shape=(1, 5, 5, 16), dtype="int8")
    weight = rng.integers(-127, 128, (3, 3, 16))
    weight[:2, 0, 3] = -128
    sums = _call("qnn.depthwise_conv2d_nhwc", data, weight, strides=(1, 1), padding=(0,) * 4)
    x = _rescale(
        relay.add(sums, relay.const(np.ones(16, "int32"))), np.int32(1 << 30), np.int32(-9)
    )
    x = relay.cast(relay.clip(relay.add(x, relay.const(np.int32(3))), -128, 127), "int8")
    model = tvm.IRModule.from_expr(relay.Function([data], x)), {}
    lib = build(model, TARGETS["mve"])
    (kernel,) = lib.library.values()
    assert kernel.family == "mve"
    lowest = np.full((1, 5, 5, 16), -128, "int8")
    _, outputs = run(compile_shared(lib, tmp_path), lib, {"data": lowest})
    np.testing.assert_array_equal(outputs[0], expected(model, [lowest])[0])


def test_layers_outside_the_pattern_keep_their_generated_loops(tmp_path):
    """A kernel has nothing between its sums and their scale but a bias."""
    rng = np.random.default_rng(1)
    data = relay.var("data", shape=(3, 6), dtype="int8")
    sums = relay.nn.relu(_call("qnn.dense_packed", data, rng.integers(-127, 128, (6, 6))))
    x = _rescale(sums, np.full(6, 1 << 30, "int32"), np.full(6, -7, "int32"))
    body = relay.cast(relay.clip(x, -128, 127), "int8")
    model = tvm.IRModule.from_expr(relay.Function([data], body)), {}
    lib = build(model)
    assert not lib.library
    data = rng.integers(-128, 128, (3, 6)).astype("int8")
    _, outputs = run(compile_shared(lib, tmp_path), lib, {"data": data})
    np.testing.assert_array_equal(outputs[0], expected(model, [data])[0])


def layer_with_huge_biases(multiplier, shift):
    """Channels 1 and 2 are dead: their biases alone decide the output."""
    rng = np.random.default_rng(0)
    data = relay.var("data", shape=(1, 16), dtype="int8")
    sums = _call("qnn.dense_packed", data, rng.integers(-127, 128, (16, 4)))
    bias = np.array([100, (1 << 30) + 5, -(1 << 31) + 400000, -7], "int32")
    x = _rescale(relay.add(sums, relay.const(bias)), multiplier, shift)
    x = relay.cast(relay.clip(relay.add(x, relay.const(np.int32(3))), -128, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}


def test_dead_channels_with_sums_beyond_the_fast_rounding_stay_exact(tmp_path):
    model = layer_with_huge_biases(np.full(4, 1 << 30, "int32"), np.full(4, -9, "int32"))
    lib = build(model)
    assert lib.library
    data = np.random.default_rng(1).integers(-128, 128, (1, 16)).astype("int8")
    _, outputs = run(compile_shared(lib, tmp_path), lib, {"data": data})
    np.testing.assert_array_equal(outputs[0], expected(model, [data])[0])


def dense_layer(multiplier, shift, zero, low=-128):
    """Sixteen inputs, four outputs."""
    rng = np.random.default_rng(0)
    data = relay.var("data", shape=(1, 16), dtype="int8")
    sums = _call("qnn.dense_packed", data, rng.integers(-127, 128, (16, 4)))
    x = relay.add(sums, relay.const(np.array([1, -2, 3, -4], "int32")))
    x = relay.add(_rescale(x, multiplier, shift), relay.const(np.int32(zero)))
    x = relay.cast(relay.clip(x, low, 127), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}


@pytest.mark.parametrize("shift", [-22, -25, -31])
@pytest.mark.parametrize("zero", [-128, 100])
def test_outputs_that_far_right_shifts_make_constant_are_the_zero_point(shift, zero, tmp_path):
    model = dense_layer(
        np.full(4, (1 << 30) + 12345, "int32"), np.array([shift, -9, -8, shift], "int32"), zero
    )
    data = np.random.default_rng(1).integers(-128, 128, (1, 16)).astype("int8")
    (wanted,) = expected(model, [data])
    for family, target in TARGETS.items():
        lib = build(model, target)
        (kernel,) = lib.library.values()
        takes_it = family != "scalar" or shift < -22
        first = "dsp_folded" if family == "dsp" else family
        assert kernel.family == (first if takes_it else "dsp")
        (tmp_path / family).mkdir()
        library = compile_shared(lib, tmp_path / family, *SANITIZE)
        _, outputs = run(library, lib, {"data": data})
        np.testing.assert_array_equal(outputs[0], wanted, err_msg=family)


def test_one_far_right_shift_for_all_channels_keeps_the_generated_loops():
    assert not build(dense_layer(np.int32(1 << 30), np.int32(-25), 3)).library


def test_large_sums_that_cannot_be_replaced_keep_their_loops():
    assert not build(layer_with_huge_biases(np.int32(1 << 30), np.int32(-9))).library


SCALE = """
#define SLW_KERNEL static
#include <stdint.h>
%s
int32_t scale(int32_t sum, int32_t multiplier, int32_t shift) {
  static const struct slw_layer layer = {.out_min = -128, .out_max = 127};
  const int32_t bias = 0, stored = ~shift;
  const struct slw_scales scales = {&bias, &multiplier, &stored};
  const struct slw_output output = slw_output_of(&layer, &scales);
  const int8_t plain = slw_requantize_plain(sum, multiplier, stored, (int32_t)(1u << stored));
  const int8_t general = slw_requantize(&output, sum, 0);
  return plain == general ? plain : 1000;
}
"""


SCALE_OF_SCALAR = """
#define SLW_KERNEL static
#include <stdint.h>
%s
int32_t scale(int32_t sum, int32_t multiplier, int32_t word, int32_t zero, int32_t low) {
  const struct slw_layer layer = {.out_zero = (int16_t)zero, .out_min = (int16_t)low,
                                  .out_max = 127, .out_channels = 1};
  const int32_t bias = 0, sums[16] = {sum};
  const struct slw_scales scales = {&bias, &multiplier, &word};
  int8_t out[4];
  slw_scale_tile(&layer, &scales, 0, sums, 1u, out);
  const int8_t one = out[0];
  slw_scale_tile(&layer, &scales, 0, sums, 4u, out);
  return one == out[0] ? one : 1000;
}
"""


def compile_scale(family, text, folder):
    from slipway.backends.micro.kernels.library import helper_text

    (folder / "s.c").write_text(text % helper_text((family,)))
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-fsanitize=undefined",
         "-fsanitize-undefined-trap-on-error", "-o", folder / "s.so", folder / "s.c"],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(folder / "s.so")).scale


@pytest.fixture(scope="module")
def scale(tmp_path_factory):
    return compile_scale("dsp", SCALE, tmp_path_factory.mktemp("scale"))


@pytest.fixture(scope="module")
def scale_of_scalar(tmp_path_factory):
    return compile_scale("scalar", SCALE_OF_SCALAR, tmp_path_factory.mktemp("scalar"))


def rounded_twice(total, multiplier, shift):
    """The two roundings of TFLite's reference kernels, in exact integers."""
    high = (total * multiplier + (1 << 30)) >> 31
    mask = (1 << -shift) - 1
    return (high >> -shift) + ((high & mask) > (mask >> 1) + (high < 0))


@settings(deadline=None, max_examples=300)
@given(
    st.integers(-(1 << 30) + 1, (1 << 30) - 1),
    st.integers(1 << 30, (1 << 31) - 1),
    st.integers(-20, -1),
)
def test_requantisation_rounds_as_the_reference(scale, total, multiplier, shift):
    value = rounded_twice(total, multiplier, shift)
    assert scale(total, multiplier, shift) == max(-128, min(127, value))


@settings(deadline=None, max_examples=1000)
@given(
    st.data(),
    st.integers(1 << 30, (1 << 31) - 1),
    st.integers(-17, -1),
    st.integers(-128, 127),
    st.booleans(),
)
def test_one_rounding_is_the_two_of_the_reference(
    scale_of_scalar, data, multiplier, shift, zero, is_relu
):
    """At the sums where an output begins, too."""
    from slipway.backends.micro.kernels.scalar import scale_words

    output = data.draw(st.integers(-130, 130)) - zero
    boundary = ((2 * output - 1) << 30 - shift) // multiplier + data.draw(st.integers(-3, 3))
    total = data.draw(
        st.sampled_from([max(min(boundary, (1 << 29) - 1), -(1 << 29) + 1), boundary % 512])
    )
    word = scale_words(np.array(shift), zero)
    low = zero if is_relu else -128
    wanted = max(low, min(127, rounded_twice(total, multiplier, shift) + zero))
    # ctypes takes the multiplier doubled, as scalar.c wants it, for an int32.
    assert scale_of_scalar(total, ctypes.c_int32(2 * multiplier), int(word), zero, low) == wanted


def softmax_of_pixels():
    """A layer whose softmax over few channels reads from the workspace and writes to it."""
    rng = np.random.default_rng(0)
    data = relay.var("data", shape=(1, 24, 24, 4), dtype="int8")
    sums = _call("qnn.conv2d_nhwc", data, rng.integers(-127, 128, (1, 1, 4, 2)))
    x = relay.add(sums, relay.const(np.array([5, -6], "int32")))
    x = relay.add(_rescale(x, np.int32(1 << 30), np.int32(-7)), relay.const(np.int32(3)))
    x = relay.cast(relay.clip(x, -128, 127), "int8")
    largest = relay.max(x, axis=-1, keepdims=True)
    x = relay.cast(relay.cast(x, "int32") - relay.cast(largest, "int32"), "int8")
    x = relay.cast(relay.sum(relay.cast(x, "int32"), axis=-1, keepdims=True), "int8")
    return tvm.IRModule.from_expr(relay.Function([data], x)), {}


@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_compilers_keep_the_call_of_every_kernel(level, tmp_path):
    """gcc 12 left away calls of copies that it had made for constant pointers."""
    lib = build(softmax_of_pixels())
    source = write(lib, tmp_path)
    run_function = source.read_text().partition("tvmgen_default_run(const")[2]
    wanted = run_function.count("(void)tvmgen_default_fused")
    assert wanted >= 3
    for compiler, *flags in (("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"), ("gcc",)):
        if not shutil.which(compiler):
            continue
        out = tmp_path / f"{compiler}.s"
        command = [compiler, *flags, "-std=c11", level, "-S", "-o", out, source]
        subprocess.run([*map(str, command)], check=True, cwd=tmp_path)
        body = re.search(r"^tvmgen_default_run:(.*?)\.size", out.read_text(), re.S | re.M)[1]
        calls = re.findall(r"\t(?:bl|b|call|jmp)\ttvmgen_default_fused", body)
        assert len(calls) == wanted, compiler


@pytest.mark.parametrize("operator", ["qnn.reciprocal", "qnn.normalize"])
def test_the_steps_of_a_softmax_are_written_once(operator, tmp_path):
    """Newton's steps, each of which reads the one before three times, took 4.7 KB of code."""
    definition = get(operator)
    names = ("data", "reciprocal", "total")[: 1 if operator == "qnn.reciprocal" else 3]
    inputs = [relay.var(n, shape=(4, 1 if i else 8), dtype="int32") for i, n in enumerate(names)]
    model = tvm.IRModule.from_expr(relay.Function(inputs, definition(*inputs))), {}
    source = write(build(model), tmp_path).read_text()
    kernel = source.partition("SLW_KERNEL int32_t tvmgen_default_fused")[2].partition("\n}\n")[0]
    multiplications = kernel.count("INT64_C(1073741824)")  # the rounding of each
    assert 1 <= multiplications <= 8
