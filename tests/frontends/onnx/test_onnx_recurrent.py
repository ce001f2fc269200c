"""LSTM, GRU and RNN with each of their attributes against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from graphs import helper, model
from onnx import numpy_helper

from slipway import relay, runtime
from slipway.errors import ModelError
from slipway.relay.interpret import interpret
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.transform.context import PassContext

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KINDS = tuple(GATES)


class Layer:
    """One recurrent node of random weights, and data for it."""

    def __init__(self, kind, steps=5, batch=3, hidden=6, lengths=None, states=True, **attributes):
        rng = np.random.default_rng(7)
        bias, peephole = attributes.pop("bias", True), attributes.pop("peephole", False)
        direction = attributes.get("direction", "forward")
        count, rows, width = 1 + (direction == "bidirectional"), GATES[kind] * hidden, 4
        first = attributes.get("layout", 0)

        def normal(*shape):
            return (rng.standard_normal(shape) * 0.4).astype(np.float32)

        weights = {"W": normal(count, rows, width), "R": normal(count, rows, hidden)}
        if bias:
            weights["B"] = normal(count, 2 * rows)
        if lengths is not None:
            weights["lengths"] = np.asarray(lengths, np.int32)
        if states:
            shape = (batch, count, hidden) if first else (count, batch, hidden)
            weights["h"] = normal(*shape)
            if kind == "LSTM":
                weights["c"] = normal(*shape)
        if peephole:
            weights["P"] = normal(count, 3 * hidden)
        names = [
            "x",
            *(n if n in weights else "" for n in ("W", "R", "B", "lengths", "h", "c", "P")),
        ]
        while not names[-1]:
            names.pop()
        outputs = ["y", "y_h", "y_c"][: 3 if kind == "LSTM" else 2]
        node = helper.make_node(kind, names, outputs, hidden_size=hidden, **attributes)
        self.x = normal(*((batch, steps, width) if first else (steps, batch, width)))
        self.proto = model([node], {"x": ("float32", self.x.shape)}, outputs, weights)

    def expected(self):
        text = self.proto.SerializeToString()
        session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": self.x})

    def compiled(self, target="llvm", level=3):
        mod, params = relay.frontend.from_onnx(self.proto)
        with PassContext(opt_level=level):
            factory = relay.build(mod, target=target, params=params)
        module = GraphModule(factory["default"](runtime.cpu()))
        module.run(x=self.x)
        return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def check(layer, **options):
    for got, want in zip(layer.compiled(**options), layer.expected(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("lengths", [None, [5, 2, 3], [1, 5, 1]])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_directions_and_lengths(kind, direction, lengths):
    layer = Layer(kind, direction=direction, lengths=lengths)
    mod, params = relay.frontend.from_onnx(layer.proto)
    found = interpret(mod, params=params, x=layer.x)
    for got, want in zip(found, layer.expected(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("steps", [1, 2, 140, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_steps(kind, steps):
    check(Layer(kind, steps, batch=1, hidden=8, direction="bidirectional"))


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=nehalem", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_targets(kind, target):
    check(Layer(kind, hidden=21, direction="reverse", lengths=[4, 5, 1]), target=target)


@pytest.mark.parametrize(
    "options",
    [
        {"clip": 0.3}, {"peephole": True}, {"peephole": True, "clip": 0.2}, {"input_forget": 1},
        {"peephole": True, "input_forget": 1, "clip": 0.2}, {"bias": False, "states": False},
        {"direction": "bidirectional", "peephole": True},
    ],
)  # fmt: skip
def test_variants_of_lstm(options):
    check(Layer("LSTM", **options))


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"clip": 0.2}])
def test_where_a_gru_resets(before, options):
    check(Layer("GRU", linear_before_reset=before, direction="bidirectional", **options))


ACTIVATIONS = {
    "Relu": {}, "Tanh": {}, "Sigmoid": {}, "Softsign": {}, "Softplus": {},
    "Affine": {"alpha": [0.6], "beta": [0.3]}, "LeakyRelu": {"alpha": [0.6]},
    "ThresholdedRelu": {"alpha": [0.6]}, "ScaledTanh": {"alpha": [0.6], "beta": [0.3]},
    "HardSigmoid": {"alpha": [0.6], "beta": [0.3]}, "Elu": {"alpha": [0.6]},
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    given = {f"activation_{key}": value for key, value in ACTIVATIONS[name].items()}
    check(Layer("RNN", activations=[name], **given))


def test_arguments_of_activations_are_taken_in_order():
    names = ["HardSigmoid", "ScaledTanh", "Affine", "Sigmoid", "LeakyRelu", "Elu"]
    check(
        Layer(
            "LSTM", direction="bidirectional", activations=names,
            activation_alpha=[0.3, 0.6, 0.7, 0.2, 0.8], activation_beta=[0.4, 0.9, 0.1],
        )
    )  # fmt: skip


@pytest.mark.parametrize("level", range(3))
def test_levels(level):
    check(Layer("GRU", direction="bidirectional", lengths=[5, 2, 3]), level=level)


def test_the_graph_does_not_grow_with_the_steps():
    sizes = set()
    for steps in (2, 500):
        mod, _ = relay.frontend.from_onnx(Layer("LSTM", steps, direction="bidirectional").proto)
        sizes.add(str(mod).count("\n"))
    assert len(sizes) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["W", "R", "B", "h", "lengths"])
@pytest.mark.parametrize("change", [lambda a: a[0], lambda a: a[..., None], lambda a: a[:, :-1]])
def test_weights_of_other_shapes_are_refused(kind, name, change):
    proto = Layer(kind, lengths=[5, 3, 4]).proto
    for tensor in proto.graph.initializer:
        if tensor.name == name:
            array = numpy_helper.to_array(tensor)
            if array.ndim == 1:
                array = array[None]
            tensor.CopyFrom(
                numpy_helper.from_array(np.ascontiguousarray(change(array)[..., :2]), name)
            )
    with pytest.raises(ModelError, match=r"is of shape|axes and R"):
        relay.frontend.from_onnx(proto)
