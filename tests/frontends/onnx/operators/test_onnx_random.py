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


def dropped(given, outputs=("y", "mask"), dtype="float32", shape=(200, 100), **known):
    """Run a Dropout with a seed; `given` are inputs of the model, `known` constants of it."""
    kinds = {"ratio": dtype, "training": "bool"}
    inputs = {"x": (dtype, shape), **{name: (kinds[name], ()) for name in given if name != "x"}}
    nodes = [helper.make_node("Dropout", ["x", "ratio", "training"], list(outputs), seed=3)]
    constants = {name: np.array(value, kinds[name]) for name, value in known.items()}
    mod, _ = relay.frontend.from_onnx(model(nodes, inputs, list(outputs), constants))
    module = GraphModule(relay.build(mod, target="llvm")["default"](cpu()))
    module.run(**{name: np.asarray(value, inputs[name][0]) for name, value in given.items()})
    return [module.get_output(i).numpy() for i in range(len(outputs))]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_dropout_in_training_leaves_out_a_part_and_scales_the_rest(dtype):
    x = np.full((200, 100), np.inf)  # what is left out is zero, whatever it was
    x[:, ::2] = np.arange(1, 101).reshape(1, 2, 50)[:, 0]
    y, mask = dropped({"x": x, "ratio": 0.25}, dtype=dtype, training=True)
    assert y.dtype == dtype
    assert mask.dtype == bool
    assert abs(mask.mean() - 0.75) < 5 * (0.25 * 0.75 / x.size) ** 0.5
    wanted = np.where(mask, x.astype(dtype) * np.dtype(dtype).type(1 / np.float32(0.75)), 0)
    rtol = 2 * np.finfo(dtype).eps  # a fused product of float16 is rounded once
    np.testing.assert_allclose(y, wanted.astype(dtype), rtol=rtol)


def test_whether_dropout_trains_may_be_an_input():
    x = np.random.default_rng(0).standard_normal((200, 100)).astype(np.float32)
    for training, ratio in ((False, 0.5), (True, 0.0)):
        y, mask = dropped({"x": x, "ratio": ratio, "training": training})
        np.testing.assert_array_equal(y, x)
        assert mask.all()
    y, mask = dropped({"x": x, "ratio": 0.5, "training": True})
    assert abs(mask.mean() - 0.5) < 0.02
    np.testing.assert_array_equal(y, np.where(mask, 2 * x, 0))
    y, mask = dropped({"x": x, "ratio": 1.0, "training": True})
    assert not y.any()
    assert not mask.any()
    (alone,) = dropped({"x": x, "training": True}, outputs=("y",), ratio=0.5)
    np.testing.assert_array_equal(alone == 0, ~dropped({"x": x}, ratio=0.5, training=True)[1])
