"""Triangles, diagonals and axes without elements beside sizes that stay open, at several sizes."""

import numpy as np
import onnxruntime
import pytest
from graphs import helper, model

from slipway import relay
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

node = helper.make_node
TRIANGLES = {
    "upper": ([node("Trilu", ["x"], ["y"])], {}),
    "lower, below": ([node("Trilu", ["x", "k"], ["y"], upper=0)], {"k": np.int64(-1)}),
    "diagonal": ([node("EyeLike", ["x"], ["e"], k=1), node("Add", ["x", "e"], ["y"])], {}),
    "diagonal below": ([node("EyeLike", ["x"], ["e"], k=-2), node("Mul", ["x", "e"], ["y"])], {}),
}


def check(nodes, weights, dims, sizes):
    proto = model(nodes, {"x": ("float32", list(map(str, dims)))}, ["y"], weights)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, params = relay.frontend.from_onnx(proto, shape={"x": dims})
    module = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu()))
    for size in sizes:
        x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
        module.run(x=x)
        (want,) = session.run(None, {"x": x})
        got = module.get_output(0).numpy()
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("kind", TRIANGLES)
def test_triangles_and_diagonals_of_open_sizes(kind):
    dims = (relay.Dim("n", 1, 7), relay.Dim("m", 1, 9))
    check(*TRIANGLES[kind], dims, [(1, 1), (7, 9), (4, 4), (5, 2)])


def test_a_sum_over_no_elements_beside_an_open_size():
    nodes = [
        node("Unsqueeze", ["x", "two"], ["wide"]),
        node("Mul", ["wide", "c"], ["cube"]),
        node("Slice", ["cube", "at", "at", "last"], ["none"]),
        node("ReduceSumSquare", ["none"], ["sums"], axes=[1], keepdims=0),
        node("ReduceSum", ["sums", "last"], ["y"], keepdims=0),
    ]
    weights = {
        "two": np.int64([2]), "c": np.ones(5, np.float32), "at": np.int64([-1]),
        "last": np.int64([-1]),
    }  # fmt: skip
    check(nodes, weights, (relay.Dim("n", 1, 4), relay.Dim("t", 3, 12)), [(1, 3), (4, 12), (2, 5)])


@pytest.mark.parametrize("start", [-1, -3, -20])
@pytest.mark.parametrize("end", [-(2**31), -6, 0])
@pytest.mark.parametrize("step", [-1, -2])
def test_a_slice_that_goes_backwards_from_before_a_short_axis(start, end, step):
    nodes = [
        node("Slice", ["x", "s", "e", "a", "t"], ["part"]),
        node("Concat", ["part", "x"], ["y"], axis=1),
    ]
    weights = {"s": [start], "e": [end], "a": [1], "t": [step]}
    dims = (relay.Dim("n", 1, 4), relay.Dim("m", 1, 9))
    check(
        nodes, {k: np.int64(v) for k, v in weights.items()}, dims, [(1, 1), (4, 9), (2, 2), (3, 5)]
    )
