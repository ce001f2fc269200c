"""Random numbers: what is drawn looks drawn, is the same in each run, and differs between nodes."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_numbers_of_a_distribution(target):
    node = helper.make_node
    nodes = [
        node("RandomNormalLike", ["x"], ["normal"], mean=1.0, scale=2.0),
        node("RandomNormalLike", ["x"], ["other"]),
        node("RandomUniform", [], ["uniform"], shape=[200, 100], low=-1.0, high=3.0, seed=7.0),
        node("Identity", ["x"], ["same"]),
    ]
    mod, _ = relay.frontend.from_onnx(
        model(nodes, {"x": ("float32", (200, 100))}, ["normal", "other", "uniform", "same"])
    )
    module = GraphModule(relay.build(mod, target=target)["default"](cpu()))
    runs = []
    for _ in range(2):
        module.run(x=np.zeros((200, 100), np.float32))
        runs.append([module.get_output(i).numpy() for i in range(3)])
    for one, again in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, again)
    normal, other, uniform = runs[0]
    # Of 20,000 draws the mean is off by 1/141 of the deviation; five of these are allowed.
    for drawn, mean, deviation in ((normal, 1, 2), (other, 0, 1), (uniform, 1, 4 / 12**0.5)):
        assert abs(drawn.mean() - mean) < 5 * deviation / 141
        assert abs(drawn.std() / deviation - 1) < 0.03
        beside = np.corrcoef(drawn.ravel()[:-1], drawn.ravel()[1:])[0, 1]
        assert abs(beside) < 5 / 141
    assert abs(np.corrcoef(normal.ravel(), other.ravel())[0, 1]) < 5 / 141
    assert abs((abs(other) < 1).mean() - 0.6827) < 0.02
    assert -1 < uniform.min() < -0.99
    assert 2.99 < uniform.max() < 3


@pytest.mark.parametrize("dtype", [6, 7])
def test_classes_are_drawn_with_the_probabilities_whose_logarithms_are_given(dtype):
    nodes = [helper.make_node("Multinomial", ["x"], ["drawn"], sample_size=20_000, dtype=dtype)]
    mod, _ = relay.frontend.from_onnx(model(nodes, {"x": ("float32", (3, 4))}, ["drawn"]))
    module = GraphModule(relay.build(mod, target="llvm")["default"](cpu()))
    shares = np.float32([[0.1, 0.2, 0.3, 0.4], [0, 0.75, 0.25, 0], [1e-9, 0, 0, 3]])
    with np.errstate(divide="ignore"):
        module.run(x=np.log(shares * 7))
    drawn = module.get_output(0).numpy()
    assert drawn.dtype == {6: np.int32, 7: np.int64}[dtype]
    assert drawn.shape == (3, 20_000)
    found = np.stack([np.bincount(row, minlength=4) for row in drawn]) / 20_000
    wanted = shares / shares.sum(1, keepdims=True)
    np.testing.assert_allclose(found, wanted, atol=5 * (0.25 / 20_000) ** 0.5)
    assert not found[wanted == 0].any()
    beside = np.corrcoef(drawn[0, :-1], drawn[0, 1:])[0, 1]
    assert abs(beside) < 5 / 141


def test_ones_have_the_probability_that_the_input_says():
    nodes = [helper.make_node("Bernoulli", ["x"], ["drawn"], dtype=1)]
    mod, _ = relay.frontend.from_onnx(
        model(nodes, {"x": ("float32", (4, 5000))}, ["drawn"], opset=15)
    )
    module = GraphModule(relay.build(mod, target="llvm")["default"](cpu()))
    shares = np.float32([[0.0], [0.1], [0.75], [1.0]])
    module.run(x=np.broadcast_to(shares, (4, 5000)).copy())
    drawn = module.get_output(0).numpy()
    assert set(np.unique(drawn)) == {0, 1}
    np.testing.assert_allclose(drawn.mean(1), shares[:, 0], atol=0.03)
    assert drawn[0].max() == 0
    assert drawn[3].min() == 1
