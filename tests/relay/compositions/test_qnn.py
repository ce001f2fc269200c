"""Quantised operators against their definitions in exact integers and in float32 tables."""

import math

import numpy as np
import pytest
import torch

import slipway as tvm
from slipway import relay, te, topi
from slipway.contrib import graph_executor
from slipway.errors import TypeInferenceError
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(3)
Q = relay.qnn.op
ALL = np.arange(-128, 128)

FUNCTIONS = {
    "tanh": np.tanh, "exp": np.exp, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf), "abs": np.abs, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "log": np.log,
}  # fmt: skip


def run(build, *arrays, target="llvm"):
    inputs = [relay.var(f"v{i}", shape=a.shape, dtype=a.dtype.name) for i, a in enumerate(arrays)]
    function = relay.Function(tuple(inputs), build(*inputs))
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(function), target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    module.run(**{v.name: a for v, a in zip(inputs, arrays, strict=True)})
    got = module.get_output(0).numpy()
    np.testing.assert_array_equal(got, interpret(function, *arrays))
    return got


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_functions_are_the_nearest_quantised_value(name, dtype):
    zero, out_zero = (11, -7) if dtype == "int8" else (130, 5)
    info = np.iinfo(dtype)
    data = np.arange(info.min, info.max + 1).astype(dtype)
    scale, out_scale = np.float32(0.03), np.float32(0.02)
    x = relay.var("x", shape=data.shape, dtype=dtype)
    made = getattr(Q, name)(x, relay.const(scale), relay.const(zero), out_scale, out_zero)
    found = interpret(made.as_function(), data)
    real = (data.astype("float64") - zero) * scale
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](real) / out_scale + out_zero
    known = np.isfinite(exact)
    assert found.dtype == dtype
    # At a half float32 may fall to the other side: nothing is further away than that.
    far = np.abs(found[known] - exact[known].clip(info.min, info.max))
    assert far.max() <= 0.5 + 1e-4
    assert (found[np.isnan(exact)] == out_zero).all()


def test_a_leaky_relu():
    x = relay.var("x", shape=(256,), dtype="int8")
    found = interpret(Q.leaky_relu(x, 0.25, 0.5, 4, 0.5, 4).as_function(), ALL.astype("int8"))
    want = np.where(ALL > 4, ALL - 4, np.rint(0.25 * (ALL - 4))) + 4
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.long)])
def test_products_are_exact(target):
    x, y = RNG.integers(-128, 128, (2, 3, 17)), RNG.integers(-128, 128, (2, 5, 17))
    found = run(
        lambda a, b: Q.batch_matmul(a, b, 3, -9, 0.1, 0.2), x.astype("int8"), y.astype("int8"),
        target=target,
    )  # fmt: skip
    np.testing.assert_array_equal(found, (x - 3) @ (y + 9).transpose(0, 2, 1))
    assert found.dtype == np.int32

    x, w = RNG.integers(0, 256, (1, 3, 4, 5)), RNG.integers(-128, 128, (3, 2, 3, 2))
    found = run(
        lambda a, b: Q.conv2d_transpose(
            a, b, 100, 5, 0.1, 0.2, strides=(2, 1), padding=(1, 0), channels=2, kernel_size=(3, 2)
        ),
        x.astype("uint8"), w.astype("int8"), target=target,
    )  # fmt: skip
    want = np.zeros((1, 2, 9, 6), int)
    for i, j, a, b in np.ndindex(4, 5, 3, 2):
        want[0, :, 2 * i + a, j + b] += (x[0, :, i, j] - 100) @ (w[:, :, a, b] - 5)
    np.testing.assert_array_equal(found, want[:, :, 1:-1])


def test_requantize_takes_the_setting_around_it():
    sums = np.array([-6, -2, 2, 6], "int32")  # halves after the scale of 1/4
    x = relay.var("x", shape=(4,), dtype="int32")

    def rounded(**options):
        made = Q.requantize(x, 1.0, 0, 4.0, 0, **options)
        return interpret(made.as_function(), sums).tolist()

    with Q.requantize_config(rounding="UPWARD"):
        assert Q.current_requantize_config().rounding == "UPWARD"
        assert rounded() == [-1, 0, 1, 2]
        assert rounded(rounding="TONEAREST") == [-2, -1, 1, 2]
    assert Q.current_requantize_config().rounding is None
    assert rounded() == rounded(rounding="None")


def test_passes_of_the_name_leave_the_meaning():
    x = relay.var("x", shape=(256,), dtype="int8")
    mod = tvm.IRModule.from_expr(Q.tanh(x, 0.1, 0, 0.01, 0))
    for step in (relay.qnn.transform.CanonicalizeOps(), relay.qnn.transform.Legalize(),
                 relay.transform.Legalize()):  # fmt: skip
        made = step(mod)
        data = ALL.astype("int8")
        np.testing.assert_array_equal(interpret(made, data), interpret(mod, data))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda x: Q.tanh(relay.cast(x, "int32"), 1.0, 0, 1.0, 0), "'x' must be int8 or uint8"),
        (lambda x: Q.tanh(x, np.ones(2), 0, 1.0, 0), "'scale' must be one number"),
        (lambda x: Q.tanh(x, relay.var("s", shape=()), 0, 1.0, 0), "'scale' must be a constant"),
    ],
)
def test_arguments_that_do_not_fit_are_named(build, words):
    with pytest.raises(TypeInferenceError, match=words):
        build(relay.var("x", shape=(4,), dtype="int8"))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scales", [np.float32(0.25), np.array([0.25, 0.5, 0.1], "float32")])
def test_simulated_quantisation_rounds_in_real_numbers(dtype, scales):
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("float32") * 40
    zero, info = np.int32(3), np.iinfo(dtype)
    data = relay.var("x", shape=(2, 3))
    whole = relay.qnn.op.simulated_quantize(data, relay.const(scales), relay.const(zero), 1, dtype)
    back = relay.qnn.op.simulated_dequantize(whole, scales, zero, 1, dtype)
    found = interpret(relay.Function([data], relay.Tuple([whole, back])), x)
    wanted = np.clip(np.round(x / scales) + zero, info.min, info.max)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(found[1], (wanted - zero) * scales, rtol=1e-6)
    assert relay.qnn.op.simulated_quantize(data, scales, zero, out_dtype="disable") is data
    with pytest.raises(TypeInferenceError, match="'int4' is not one of"):
        relay.qnn.op.simulated_quantize(data, scales, zero, out_dtype="int4")


@pytest.mark.parametrize("name", list(topi.nn.SQNN_DTYPE_TO_CODE))
@pytest.mark.parametrize("scales", [[0.25], [0.25, 0.5, 0.1]])
def test_simulated_dtypes_and_numbers_of_scales_are_known_when_it_runs(name, scales):
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(2, 3)) * 40).astype("float32")
    x[0, 0] = 3e9
    scale, zero = np.array(scales, "float32"), np.arange(len(scales)).astype("int32") + 3
    data, code = relay.var("x", shape=(2, 3)), relay.var("code", shape=(), dtype="int32")
    open_scale = relay.var("scale", shape=(relay.Any(),))
    open_zero = relay.var("zero", shape=(relay.Any(),), dtype="int32")
    whole = Q.simulated_quantize(data, open_scale, open_zero, 1, code)
    back = Q.simulated_dequantize(whole, open_scale, open_zero, 1, code)
    given = (x, scale, zero, np.int32(topi.nn.SQNN_DTYPE_TO_CODE[name]))
    function = relay.Function([data, open_scale, open_zero, code], relay.Tuple([whole, back]))
    wanted = [x, x]
    if name != "disable":
        info = np.iinfo(name)
        steps = np.clip((np.round(x / scale) + zero).astype("float32"), info.min, info.max)
        wanted = [steps, (steps - zero) * scale]
    for found, expected in zip(interpret(function, *given), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_simulated_quantisation_of_tensors_chooses_its_dtype_when_it_runs():
    x = te.placeholder((2, 4), name="x")
    scale, zero = te.placeholder((4,), name="s"), te.placeholder((1,), "int32", "z")
    code = te.placeholder((), "int32", "code")
    out = topi.nn.simulated_quantize(x, code, scale, zero, axis=1)
    back = topi.nn.simulated_dequantize(out, code, scale, zero, axis=1)
    plan = te.create_schedule([out.op, back.op])
    function = tvm.build(plan, [x, code, scale, zero, out, back])
    data, scales = RNG.normal(size=(2, 4)).astype("float32"), np.arange(1, 5).astype("float32") / 9
    made = [tvm.nd.array(np.zeros((2, 4), "float32")) for _ in range(2)]
    for number, low, high in ((1, -128, 127), (2, 0, 255)):
        values = (data, np.array(number, "int32"), scales, np.array([3], "int32"))
        function(*map(tvm.nd.array, values), *made)
        steps = np.clip(np.round(data / scales) + 3, low, high)
        np.testing.assert_allclose(made[0].numpy(), steps, rtol=1e-6)
        np.testing.assert_allclose(made[1].numpy(), (steps - 3) * scales, rtol=1e-6)
    for bad in (relay.var("many", shape=(2,), dtype="int32"), relay.const(1.0)):
        with pytest.raises(TypeInferenceError, match="a dtype is a name or one integer"):
            Q.simulated_quantize(relay.var("y", shape=(2,)), 0.5, np.int32(0), out_dtype=bad)


@pytest.mark.parametrize(
    ("data_layout", "kernel_layout"),
    [("NHWC", "HWOI"), ("NHWC", "HWIO"), ("NCHW", "HWIO"), ("NHWC", "OIHW"), ("NHWC", "OHWI")],
)
def test_transposed_convolutions_in_other_layouts(data_layout, kernel_layout):
    rng = np.random.default_rng(0)
    images, kernel = rng.integers(0, 9, (2, 3, 5, 6)), rng.integers(0, 9, (3, 4, 3, 2))
    want = torch.nn.functional.conv_transpose2d(
        torch.tensor(images, dtype=torch.float64) - 2, torch.tensor(kernel, dtype=torch.float64),
        stride=2, padding=1, output_padding=1,
    ).numpy()  # fmt: skip

    def placed(array, letters, layout):
        letters = "OIHW" if layout == "OIHW" else letters  # the classic name of IOHW
        return np.ascontiguousarray(array.transpose([letters.index(axis) for axis in layout]))

    x = placed(images, "NCHW", data_layout).astype("uint8")
    w = placed(kernel, "IOHW", kernel_layout).astype("uint8")
    data, weight = relay.var("data", shape=x.shape, dtype="uint8"), relay.const(w)
    zero, one = relay.const(0, "int32"), relay.const(1.0)
    made = relay.qnn.op.conv2d_transpose(
        data, weight, relay.const(2, "int32"), zero, one, one, strides=(2, 2), padding=(1, 1),
        output_padding=(1, 1), channels=4, kernel_size=(3, 2), data_layout=data_layout,
        kernel_layout=kernel_layout,
    )  # fmt: skip
    got = interpret(relay.Function([data], made), x)
    np.testing.assert_array_equal(got, placed(want, "NCHW", data_layout))


def test_a_layout_of_other_letters_is_refused():
    data, weight = relay.var("data", shape=(1, 4, 4, 3)), relay.var("weight", shape=(3, 2, 2, 2))
    with pytest.raises(TypeInferenceError, match=r"kernel_layout.*'HWIX'.*letters IOHW"):
        relay.nn.conv2d_transpose(data, weight, kernel_layout="HWIX", data_layout="NHWC")
