"""What onnxruntime's optimiser fuses (domain com.microsoft) against onnxruntime, and by NumPy."""

import numpy as np
import pytest
from graphs import helper, model
from microsoft import check_both, contrib, run_here

from slipway import relay
from slipway.errors import OpNotImplemented

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


ACTIVATIONS = [
    ("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.75]),
    ("HardSigmoid", [0.3, 0.4]),
]  # fmt: skip


@pytest.mark.parametrize(("activation", "numbers"), ACTIVATIONS, ids=lambda v: str(v))
def test_convolution_with_an_activation(activation, numbers):
    weights = {"w": normal(6, 4, 3, 3), "b": normal(6)}
    given = {"activation_params": numbers} if numbers else {}
    node = contrib(
        "FusedConv", ["x", "w", "b"], "y", activation=activation, pads=[1, 1, 1, 1], **given
    )
    check_both([node], {"x": normal(2, 4, 7, 5)}, ["y"], weights)


def test_convolution_with_a_sum():
    node = contrib("FusedConv", ["x", "w", "", "z"], "y", activation="Relu")
    check_both(
        [node], {"x": normal(1, 4, 7, 5), "z": normal(1, 6, 5, 3)}, ["y"], {"w": normal(6, 4, 3, 3)}
    )


def test_gemm_with_an_activation():
    node = contrib(
        "FusedGemm", ["x", "w", "b"], "y", activation="LeakyRelu", activation_alpha=0.3, transB=1
    )
    check_both([node], {"x": normal(3, 5)}, ["y"], {"w": normal(4, 5), "b": normal(4)})


@pytest.mark.parametrize(
    ("a", "b", "more"),
    [
        ((2, 3, 4), (2, 5, 4), {"transB": 1, "alpha": 0.5}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((4, 2, 3), (2, 4, 5), {"transBatchA": 1, "transA": 1}),
        ((2, 6, 3, 4), (3, 2, 6, 4), {"transBatchB": 1, "transA": 1}),
        ((4, 3), (5, 4), {"transA": 1, "transB": 1}),
    ],
    ids=str,
)
def test_product_of_transposed_matrices(a, b, more):
    check_both(
        [contrib("FusedMatMul", ["a", "b"], "y", **more)], {"a": normal(*a), "b": normal(*b)}, ["y"]
    )


@pytest.mark.parametrize("zeros", [None, "one", "each"])
@pytest.mark.parametrize("biased", [False, True])
def test_products_of_data_that_is_quantised_here(zeros, biased):
    points = {"one": np.int8(3), "each": RNG.integers(-9, 9, 4).astype(np.int8)}
    weights = {"w": RNG.integers(-127, 127, (5, 4)).astype(np.int8), "s": normal(4) ** 2 + 0.01}
    names = ["x", "w", "s", "", ""]
    if zeros:
        weights["z"], names[3] = points[zeros], "z"
    if biased:
        weights["b"], names[4] = normal(4), "b"
    node = contrib("DynamicQuantizeMatMul", names, "y")
    check_both([node], {"x": normal(2, 3, 5)}, ["y"], weights)


def test_product_of_integers_as_real_numbers():
    weights = {
        "w": RNG.integers(0, 255, (5, 4)).astype(np.uint8), "s": np.float32(0.02),
        "t": normal(4) ** 2 + 0.01, "z": np.uint8(120), "u": np.uint8(130), "b": normal(4),
    }  # fmt: skip
    x = RNG.integers(0, 255, (2, 3, 5)).astype(np.uint8)
    node = contrib("MatMulIntegerToFloat", ["x", "w", "s", "t", "z", "u", "b"], "y")
    check_both([node], {"x": x}, ["y"], weights, 1e-4)


def test_quick_gelu_and_the_norms_of_sums():
    check_both([contrib("QuickGelu", ["x"], "y", alpha=1.5)], {"x": normal(3, 5)}, ["y"])
    inputs = {"x": normal(2, 3, 8), "skip": normal(2, 3, 8)}
    node = helper.make_node(
        "SkipSimplifiedLayerNormalization", ["x", "skip", "g", "b"], ["y", "", "", "sum"],
        domain="com.microsoft", epsilon=1e-3,
    )  # fmt: skip
    check_both([node], inputs, ["y", "sum"], {"g": normal(8), "b": normal(8)})
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"], epsilon=1e-3)
    check_both([node], {"x": normal(2, 3, 8)}, ["y"], {"g": normal(8)})


def test_affine_nodes_of_16_bits():
    weights = {"s": np.float32(0.001), "z": np.uint16(30000)}
    nodes = [
        contrib("QuantizeLinear", ["x", "s", "z"], "q"),
        contrib("DequantizeLinear", ["q", "s", "z"], "y"),
    ]
    check_both(nodes, {"x": normal(3, 5)}, ["y"], weights)


def test_quantised_nodes_of_channels_last():
    weights = {
        "w": RNG.integers(-127, 127, (6, 4, 3, 3)).astype(np.int8), "s": np.float32(0.02),
        "t": (normal(6) ** 2 + 0.01) / 50, "z": np.uint8(120), "u": np.zeros(6, np.int8),
        "r": np.float32(0.05), "v": np.uint8(128), "b": RNG.integers(-99, 99, 6).astype(np.int32),
    }  # fmt: skip
    x = RNG.integers(0, 255, (2, 7, 5, 4)).astype(np.uint8)
    names = ["x", "s", "z", "w", "t", "u", "r", "v", "b"]
    node = contrib("QLinearConv", names, "q", channels_last=1, pads=[1, 1, 1, 1])
    pool = contrib(
        "NhwcMaxPool", ["q"], "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    )
    back = helper.make_node("DequantizeLinear", ["p", "r", "v"], ["y"])
    check_both([node, pool, back], {"x": x}, ["y"], weights, 1e-6)


def ours(kind, inputs, weights=(), outputs=("y",), **attributes):
    names, outputs = [*inputs, *weights], list(outputs)
    node = helper.make_node(kind, names, outputs, domain="com.microsoft", **attributes)
    return run_here([node], inputs, outputs, weights)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
def test_group_norms_of_diffusion(last, activation):
    """Kernels for GPUs only: what they compute, by NumPy."""
    shape = (2, 5, 3, 8) if last else (2, 8, 5, 3)
    x, skip, bias, gamma, beta = normal(*shape), normal(*shape), normal(8), normal(8), normal(8)
    found, total = ours(
        "SkipGroupNorm", {"x": x}, {"g": gamma, "b": beta, "s": skip, "o": bias}, ("y", "sum"),
        groups=4, activation=activation, channels_last=last, epsilon=1e-3,
    )  # fmt: skip
    first = (lambda a: a.transpose(0, 3, 1, 2)) if last else (lambda a: a)
    whole = first(x) + first(skip) + bias[:, None, None]
    np.testing.assert_allclose(first(total), whole, rtol=1e-6, atol=1e-6)
    grouped = whole.reshape(2, 4, -1)
    spread = np.sqrt(grouped.var(-1, keepdims=True) + 1e-3)
    want = ((grouped - grouped.mean(-1, keepdims=True)) / spread).reshape(whole.shape)
    want = want * gamma[:, None, None] + beta[:, None, None]
    want = want * sigmoid(want) if activation else want
    np.testing.assert_allclose(first(found), want, rtol=1e-5, atol=1e-5)


def test_other_layers_of_gpus():
    from scipy.special import erf, softmax

    x, bias, skip = normal(2, 3, 8), normal(8), normal(2, 3, 8)
    made = ours("BiasAdd", {"x": x}, {"b": bias, "s": skip})
    np.testing.assert_allclose(made, x + bias + skip, rtol=1e-6)
    made = ours("BiasSplitGelu", {"x": x}, {"b": bias})
    left, right = np.split(x + bias, 2, -1)
    np.testing.assert_allclose(
        made, left * right * 0.5 * (1 + erf(right / np.sqrt(2))), rtol=1e-5, atol=1e-6
    )
    made = ours("BiasSoftmax", {"x": x}, {"b": skip}, axis=1)
    want = softmax((x + skip).reshape(2, -1), -1).reshape(x.shape)
    np.testing.assert_allclose(made, want, rtol=1e-5, atol=1e-7)
    image, weight = normal(1, 5, 6, 4), normal(7, 3, 3, 4)
    made = ours("NhwcConv", {"x": image}, {"w": weight}, pads=[1, 1, 1, 1])
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    want = np.einsum("nhwcij,oijc->nhwo", windows, weight)
    np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-4)


def test_blocks_of_another_machine_are_refused():
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc")
    proto = model([node], {"x": ("float32", (1, 16, 5, 5))}, ["y"], {"w": normal(16, 16, 3, 3)})
    proto.opset_import.append(helper.make_opsetid("com.microsoft.nchwc", 1))
    with pytest.raises(OpNotImplemented, match="ORT_ENABLE_EXTENDED"):
        relay.frontend.from_onnx(proto)
