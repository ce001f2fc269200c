"""Products of com.microsoft that take more than two matrices, against onnxruntime."""

import numpy as np
import pytest
from graphs import helper
from microsoft import check_both, contrib, run_both, run_here

RNG = np.random.default_rng(11)


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("bias", [True, False])
def test_a_product_and_its_gelu(bias):
    """Onnxruntime has no kernel of it for processors: it runs the three steps."""
    names = ["x", "w", "b"][: 3 if bias else 2]
    weights = {"w": real(6, 5), "b": real(5)}
    x = {"x": real(2, 3, 6)}
    used = {n: weights[n] for n in names[1:]}
    got = run_here([contrib("GemmFastGelu", names, "y")], x, ["y"], used)
    steps = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        contrib("FastGelu", ["p", *names[2:]], "y"),
    ]
    (want,) = run_both(steps, x, ["y"], used)[1]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["TransposeMatMul", "FusedMatMul"])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_transposed_products(kind, first, second):
    a, b = real(*((2, 3, 4, 6) if first else (2, 3, 6, 4))), real(*((5, 4) if second else (4, 5)))
    node = contrib(kind, ["a", "b"], "y", transA=first, transB=second, alpha=0.3)
    check_both([node], {"a": a, "b": b}, ["y"])


@pytest.mark.parametrize("activation", ["Relu", "Tanh", "Sigmoid", "LeakyRelu"])
def test_gemm_whose_activation_takes_no_number_that_a_file_may_have(activation):
    node = contrib("FusedGemm", ["x", "w", "b"], "y", activation=activation, activation_alpha=0.1)
    check_both([node], {"x": real(3, 6)}, ["y"], {"w": real(6, 5), "b": real(5)})


@pytest.mark.parametrize("axes", [[1], [-1, 0], [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_means_of_quantised_values(axes, keepdims):
    """Onnxruntime has no kernel of it, either."""
    x = RNG.integers(0, 256, (3, 4, 5)).astype(np.uint8)
    weights = {
        "s": np.float32(0.05), "z": np.uint8(100), "t": np.float32(0.02), "u": np.uint8(90),
    }  # fmt: skip
    own = contrib("QLinearReduceMean", ["x", *"sztu"], "q", axes=axes, keepdims=keepdims)
    back = helper.make_node("DequantizeLinear", ["q", "t", "u"], ["y"])
    steps = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["m"], axes=axes, keepdims=keepdims),
        helper.make_node("QuantizeLinear", ["m", "t", "u"], ["q"]),
    ]
    got = run_here([own, back], {"x": x}, ["y"], weights)
    (want,) = run_both([*steps, back], {"x": x}, ["y"], weights)[1]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("columns", [True, False])
def test_attention_of_quantised_data(unidirectional, columns):
    width, signed = 8, np.int8
    x = RNG.integers(0, 256, (2, 5, width)).astype(np.uint8)
    weights = {
        "w": RNG.integers(-100, 100, (width, 3 * width)).astype(signed),
        "b": real(3 * width),
        "xs": np.float32(0.02),
        "ws": np.full(3 * width, 0.015, np.float32) if columns else np.float32(0.015),
        "xz": np.uint8(120),
        "wz": np.full(3 * width, 3, signed) if columns else np.int8(3),
    }
    node = contrib("QAttention", ["x", "w", "b", "xs", "ws", "", "xz", "wz"], "y", num_heads=2,
                   unidirectional=unidirectional)  # fmt: skip
    check_both([node], {"x": x}, ["y"], weights, tolerance=1e-4)
