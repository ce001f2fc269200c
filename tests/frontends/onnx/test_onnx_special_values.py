"""ONNX operators on NaN, infinities, denormals and zeros, compiled, against onnxruntime."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import OpNotImplemented
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor

onnxruntime = pytest.importorskip("onnxruntime")
node = helper.make_node

SPECIALS = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 1.2e-38, 3.4e38, -3.4e38])
UNARY = {
    "Abs": {}, "Acosh": {}, "Asin": {}, "Asinh": {}, "Atan": {}, "Atanh": {}, "Ceil": {},
    "Celu": {}, "Cosh": {}, "Elu": {}, "Erf": {}, "Exp": {}, "Floor": {},
    "HardSigmoid": {}, "HardSwish": {}, "LeakyRelu": {}, "Log": {}, "Neg": {},
    "Reciprocal": {}, "Relu": {}, "Round": {}, "Selu": {}, "Sigmoid": {}, "Sign": {}, "Sinh": {},
    "Softplus": {}, "Softsign": {}, "Sqrt": {}, "Tanh": {}, "ThresholdedRelu": {}, "Mish": {},
    "IsNaN": {}, "IsInf": {},
}  # fmt: skip
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Greater", "Less", "Equal", "PRelu"]


def compiled(proto, target, inputs):
    mod, params = relay.frontend.from_onnx(proto)
    lib = relay.build(mod, target=target, params=params)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def check(nodes, inputs, outputs, target="llvm", opset=18, weights=None):
    types = {n: (v.dtype.name, v.shape) for n, v in inputs.items()}
    proto = model(nodes, types, outputs, weights, opset)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    wrong = []
    found, wanted = compiled(proto, target, inputs), session.run(None, inputs)
    for name, got, want in zip(outputs, found, wanted, strict=True):
        with np.errstate(all="ignore"):
            got, want = got.astype(np.float64), want.astype(np.float64)
            close = np.abs(got - want) <= 3e-5 * np.abs(want) + 1e-37  # onnxruntime flushes some
        bad = ~((got == want) | (np.isnan(got) & np.isnan(want)) | (np.isfinite(want) & close))
        wrong += [
            f"{name}{tuple(p)}: {got[tuple(p)]}, not {want[tuple(p)]}" for p in np.argwhere(bad)
        ]
    assert not wrong, wrong[:8]


def sprinkled(shape, seed=0, share=0.6):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    here = rng.random(shape) < share
    x[here] = rng.choice(SPECIALS, int(here.sum()))
    return x


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize("kind", sorted(UNARY))
def test_of_one(kind, target):
    x = sprinkled((7, 9))
    proto = [node(kind, ["x"], ["y0"], **UNARY[kind]), node("Cast", ["y0"], ["y"], to=1)]
    check(proto, {"x": x}, ["y"], target)


@pytest.mark.parametrize("kind", BINARY)
def test_of_two(kind):
    a, b = sprinkled((6, 40), 1), sprinkled((6, 40), 2)
    nodes = [node(kind, ["a", "b"], ["y0"]), node("Cast", ["y0"], ["y"], to=1)]
    check(nodes, {"a": a, "b": b}, ["y"])


@pytest.mark.parametrize("bounds", [(0.0, 6.0), (-1.0, 1.0), (-np.inf, 2.0), (0.5, np.inf)])
def test_clip(bounds):
    low, high = (np.float32(b) for b in bounds)
    check([node("Clip", ["x", "l", "h"], ["y"])], {"x": sprinkled((7, 9))}, ["y"],
          weights={"l": low, "h": high})  # fmt: skip


def few(shape, seed=0):
    """A tenth of the values special, but no largest ones, whose sums depend on their order."""
    x = sprinkled(shape, seed, 0.08)
    x[np.abs(x) == np.float32(3.4e38)] = np.nan
    return x


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums(kind, axis):
    axes = {"axes": np.int64([axis])}
    check([node(kind, ["x", "axes"], ["y"], keepdims=0)], {"x": few((9, 33))}, ["y"],
          weights=axes)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "attributes", "shape"),
    [
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (1, 2, 9, 9)),
        ("GlobalAveragePool", {}, (1, 20, 5, 5)), ("Softmax", {}, (20, 40)),
        ("LogSoftmax", {}, (20, 40)), ("Softmax", {"axis": 0}, (20, 40)),
    ],
)  # fmt: skip
def test_pools_and_softmax(kind, attributes, shape):
    check([node(kind, ["x"], ["y"], **attributes)], {"x": few(shape)}, ["y"])


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((1, 16, 11, 11), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((1, 3, 12, 40), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((2, 3, 50), {"kernel_shape": [3]}),
        ((1, 2, 5, 6, 7), {"kernel_shape": [2, 2, 2]}),
    ],
)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell", "c"])
def test_the_maximum_of_windows_is_numpys(shape, attributes, target):
    """Not onnxruntime's: it passes a NaN over where a number follows it in the window."""
    x = few(shape, 3)
    proto = model([node("MaxPool", ["x"], ["y"], **attributes)], {"x": ("float32", shape)}, ["y"])
    (found,) = compiled(proto, target, {"x": x})
    count = len(shape) - 2
    kernel, strides = attributes["kernel_shape"], attributes.get("strides", [1] * count)
    pads = attributes.get("pads", [0] * 2 * count)
    edges = [(0, 0), (0, 0), *zip(pads[:count], pads[count:], strict=True)]
    padded = np.pad(x, edges, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, tuple(range(2, 2 + count)))
    steps = tuple(slice(None, None, s) for s in strides)
    want = windows[(slice(None), slice(None), *steps)].max(tuple(range(-count, 0)))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(9, 33), (70, 3), (5, 200)])
def test_extremes_along_an_axis_are_numpys(kind, axis, shape):
    x = few(shape, 5)
    x[1] = -np.inf
    one = kind.startswith("Arg")
    attributes = {"axis": axis} if one else {"axes": [axis]}
    nodes = [
        node(kind, ["x"], ["y0"], keepdims=0, **attributes),
        node("Cast", ["y0"], ["y"], to=1),
    ]
    proto = model(nodes, {"x": ("float32", shape)}, ["y"], opset=13)
    numpys = {"ReduceMax": np.max, "ReduceMin": np.min, "ArgMax": np.argmax, "ArgMin": np.argmin}
    (found,) = compiled(proto, "llvm", {"x": x})
    np.testing.assert_array_equal(found, numpys[kind](x, axis=axis))


@pytest.mark.parametrize("target", ["llvm", "llvm -strict=1", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize("activation", ["Relu", "Clip", "HardSwish", "LeakyRelu"])
@pytest.mark.parametrize("channels", [16, 5])
def test_a_network_of_nan_has_no_class(activation, channels, target):
    """What is fused after a convolution keeps a NaN, to the end."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((channels, 3, 3, 3)).astype(np.float32),
        "w2": rng.standard_normal((10, channels)).astype(np.float32),
    }
    bounds = []
    if activation == "Clip":
        weights |= {"low": np.float32(0), "high": np.float32(6)}
        bounds = ["low", "high"]
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node(activation, ["c", *bounds], ["a"]),
        node("MaxPool", ["a"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalMaxPool", ["m"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w2"], ["d"], transB=1),
        node("Softmax", ["d"], ["y"]),
    ]
    proto = model(nodes, {"x": ("float32", (1, 3, 12, 12))}, ["y"], weights)
    x = rng.standard_normal((1, 3, 12, 12)).astype(np.float32)
    x[0, 1, 5, 5] = np.nan
    (found,) = compiled(proto, target, {"x": x})
    assert np.isnan(found).all()


def test_a_mean_far_from_zero_does_not_cancel():
    """E[x²] - E[x]² has no digits left where the mean is 3,000 times the deviation."""
    x = (3000 + np.random.default_rng(0).standard_normal((2, 3, 4, 5))).astype("float32")
    exact = x.astype("float64") - x.mean((0, 2, 3), "float64", keepdims=True)
    exact /= np.sqrt((exact * exact).mean((0, 2, 3), keepdims=True))
    proto = model(
        [node("MeanVarianceNormalization", ["x"], ["y"])], {"x": ("float32", x.shape)}, ["y"]
    )
    (found,) = compiled(proto, "llvm", {"x": x})
    np.testing.assert_allclose(found, exact, atol=1e-3)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["linear", "nearest", "cubic"])
def test_a_position_that_is_nan_is_the_first(method, padding):
    """As an exporter's linspace of one step gives it."""
    nan = np.nan
    grid = np.float32([[nan, nan], [nan, 0.2], [0.2, nan], [0.1, 0.3]]).reshape(1, 1, 4, 2)
    x = np.arange(1, 13, dtype="float32").reshape(1, 1, 3, 4)
    sampled = node("GridSample", ["x", "grid"], ["y"], mode=method, padding_mode=padding)
    check([sampled], {"x": x, "grid": grid}, ["y"], opset=20)


@pytest.mark.parametrize("shape", [(6,), (4, 5), (2, 3, 7), (2, 2, 3, 2, 3)])
@pytest.mark.parametrize("axes", [(), (0, 1, 2, 3)])
def test_mean_variance_of_axes_that_the_data_has(shape, axes):
    """The default is of images (N, C, H, W); of sounds and rows there are the first of these."""
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    attrs = {"axes": axes} if axes else {}
    proto = model(
        [node("MeanVarianceNormalization", ["x"], ["y"], **attrs)], {"x": ("float32", shape)}, ["y"]
    )
    (found,) = compiled(proto, "llvm", {"x": x})
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    np.testing.assert_allclose(found, peer.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_mean_variance_of_no_axis_is_refused():
    norm = node("MeanVarianceNormalization", ["x"], ["y"], axes=[2])
    proto = model([norm], {"x": ("float32", (3, 4))}, ["y"])
    with pytest.raises(OpNotImplemented, match=r"its axes \(2,\) are none of"):
        relay.frontend.from_onnx(proto)
