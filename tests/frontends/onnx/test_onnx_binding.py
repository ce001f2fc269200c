"""Inputs bound to constants, and branches that a constant decides."""

import numpy as np
import pytest
from graphs import TYPE, helper, model

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.onnx.importer import check_onnx
from slipway.relay.interpret import interpret

X = np.random.default_rng(0).standard_normal((1, 1, 8)).astype(np.float32)


def graph(nodes, output, weights=()):
    info = helper.make_tensor_value_info(output, TYPE["float32"], None)
    return helper.make_graph(nodes, "branch", [], [info], list(weights))


def rates():
    """A model that does one thing at 16 kHz, and at any other rate what does not fit its input."""
    made = [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Exp", ["s"], ["good"])]
    inner = graph([helper.make_node("Mystery", ["s2"], ["inner"], name="strange")], "inner")
    bad = [
        helper.make_node("Squeeze", ["x"], ["s2"]),
        helper.make_node("Constant", [], ["yes"], value_int=1),
        helper.make_node("Cast", ["yes"], ["certain"], to=TYPE["bool"]),
        helper.make_node("If", ["certain"], ["m"], name="nested", then_branch=inner,
                         else_branch=inner),
        helper.make_node("Relu", ["m"], ["bad"], name="behind"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["wide"]),
        helper.make_node("If", ["wide"], ["y"], name="choice", then_branch=graph(made, "good"),
                         else_branch=graph(bad, "bad")),
    ]  # fmt: skip
    inputs = {"x": ("float32", (1, 1, 8)), "sr": ("int64", ())}
    return model(nodes, inputs, ["y"], {"rate": np.array(16000, np.int64)})


def test_a_bound_input_chooses_the_branch():
    mod, _ = relay.frontend.from_onnx(rates(), constants={"sr": 16000})
    assert [p.name for p in mod["main"].params] == ["x"]
    np.testing.assert_allclose(interpret(mod, x=X), np.exp(X).reshape(8), rtol=1e-6)


def test_a_node_in_a_branch_that_cannot_be_imported_is_named_itself():
    """Not the file: what the branch fails to make is no sign of damage."""
    with pytest.raises(ModelError) as caught:
        relay.frontend.from_onnx(rates())
    text = str(caught.value)
    assert "damaged" not in text
    assert "Mystery x 1 (strange)" in text
    assert "depends on 'sr'" in text
    assert "constants=" in text
    kinds = {e.name: e.status for e in check_onnx(rates())}
    assert kinds["strange"] == "unsupported"
    assert kinds["behind"] == "unchecked"


@pytest.mark.parametrize(
    ("constants", "words"),
    [
        ({"rs": 1}, "no input 'rs'; its inputs are x, sr"),
        ({"sr": [1, 2]}, r"'sr' has the shape \(2,\), but the model has \(\)"),
        ({"sr": 0.5}, "'sr' holds 0.5, which is no int64"),
        ({"sr": 1 << 64}, "'sr'"),
        ({"sr": "fast"}, "'sr' is <U4, but the model wants int64"),
        ({"sr": [[1], [1, 2]]}, "'sr' is no array"),
        ({"x": np.zeros((1, 1, 9))}, r"'x' has the shape \(1, 1, 9\)"),
    ],
)
def test_a_constant_that_does_not_fit_is_refused(constants, words):
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_onnx(rates(), constants=constants)


def test_a_number_fills_a_fixed_shape_and_an_array_fixes_an_open_one():
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    proto = model(nodes, {"a": ("float32", (2, 3)), "b": ("float32", ("n", 3))}, ["y"])
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    mod, _ = relay.frontend.from_onnx(proto, constants={"b": np.ones((2, 3))})
    np.testing.assert_array_equal(interpret(mod, a=a), a + 1)
    mod, _ = relay.frontend.from_onnx(proto, shape={"b": (2, 3)}, constants={"a": 2, "b": 3})
    np.testing.assert_array_equal(interpret(mod), np.full((2, 3), 5, np.float32))


def test_one_number_may_come_as_a_list_of_one():
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    proto = model(nodes, {"a": ("float32", ()), "b": ("float32", (3,))}, ["y"])
    mod, _ = relay.frontend.from_onnx(proto, {"a": (1,)})
    values = {"a": np.ones(1, np.float32), "b": np.arange(3, dtype=np.float32)}
    np.testing.assert_array_equal(interpret(mod, **values), [1, 2, 3])
    with pytest.raises(
        ModelError, match=r"'a' is given the shape \(1, 1\), but the model has \(\)"
    ):
        relay.frontend.from_onnx(proto, {"a": (1, 1)})
