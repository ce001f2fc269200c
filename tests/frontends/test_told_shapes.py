"""Shapes as users write them: one spelling for the command line and for every importer."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

import slipway
from slipway import relay
from slipway.cli.model_file import parse_shapes
from slipway.errors import ModelError, SlipwayError
from slipway.frontends.product import product_of
from slipway.frontends.told_shapes import told_shape, told_shapes

ANY = relay.Any()


def relu_of(*dims):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ((4, 3), (4, 3)),
        ([np.int64(4), "3"], (4, 3)),
        (np.array([4, 3]), (4, 3)),
        (torch.Size([4, 3]), (4, 3)),
        ((4.0, 3), (4, 3)),
        (("n=1..8", 3), (relay.Dim("n", 1, 8), 3)),
        (("1..8", 3), (relay.Dim("x_0", 1, 8), 3)),
        (("batch", "seq-len"), (relay.Dim("batch"), relay.Dim("seq_len"))),
        (("?", None, -1, relay.Any()), (ANY,) * 4),
        ((), ()),
    ],
)
def test_every_spelling_of_a_size_is_read(given, shape):
    assert told_shape("x", given) == shape
    assert told_shapes({"x": given}) == {"x": shape}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((4.5, 3), r"'x' has the size 4\.5; write a number"),
        ((True, 3), "'x' has the size True"),
        ((-2, 3), "'x' has the size -2"),
        (("8..1", 3), "no size is at least 8 and at most 1"),
        (({}, 3), "'x' has the size"),
        (("", 3), "'x' has the size ''"),
        ("4,3", r"write its sizes as a tuple: \(4,\)"),
        (4, r"write its sizes as a tuple: \(4,\)"),
    ],
)
def test_what_is_no_shape_is_the_users_to_mend(given, words):
    """Never a raw exception, and never told to be a defect of Slipway."""
    for use in (
        lambda: slipway.compile(relu_of("batch", 3), shapes={"x": given}),
        lambda: relay.frontend.from_onnx(relu_of("batch", 3), shape={"x": given}),
    ):
        with pytest.raises(ModelError, match=words):
            use()


@pytest.mark.parametrize("given", [5, [("x", (1, 3))], "x"])
def test_shapes_are_given_by_name(given):
    with pytest.raises(ModelError, match="shapes are given by the input's name"):
        told_shapes(given)
    with pytest.raises(ModelError, match="is no name of an input"):
        told_shapes({3: (1, 3)})


def test_the_inputs_of_a_model_name_themselves():
    model = slipway.compile(relu_of(2, 3))
    assert told_shapes({model.inputs[0]: (1, 3)}) == {"x": (1, 3)}


def test_a_range_in_words_runs_every_size():
    model = slipway.compile(relu_of("batch", 3), shapes={"x": ("batch=1..8", 3)})
    for size in (1, 5, 8):
        value = np.random.default_rng(size).standard_normal((size, 3)).astype("float32")
        np.testing.assert_array_equal(np.asarray(model(value)), np.maximum(value, 0))


def test_a_name_of_the_file_has_the_range_that_dims_gives_it():
    mod, _ = relay.frontend.from_onnx(
        relu_of("batch", 3), shape={"x": ("batch", 3)}, dims={"batch": (1, 8)}
    )
    size = mod["main"].params[0].type.shape[0]
    assert (size.low, size.high) == (1, 8)


def test_shapes_of_a_sequence_are_a_list():
    assert told_shapes({"x": [(3, 4), ("n", 4)], "y": None}) == {
        "x": [(3, 4), (relay.Dim("n"), 4)], "y": None,
    }  # fmt: skip


def test_pytorch_and_the_command_line_read_the_same():
    mod, _ = relay.frontend.from_pytorch(torch.nn.ReLU(), [("x", ("n=1..8", 3))])
    assert mod["main"].params[0].type.shape == (relay.Dim("n", 1, 8), 3)
    assert parse_shapes("x:[n=1..8,?,3]") == {"x": (relay.Dim("n", 1, 8), ANY, 3)}
    with pytest.raises(SlipwayError, match=r"cannot read the size '8\.\.'"):
        parse_shapes("x:[8..,3]")


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4, 3), (2, 3, 3, 4)), ((2, 4, 3), (3, 4)), ((5, 1, 4, 3), (1, 7, 3, 2)),
     ((7, 4, 3), (5, 1, 3, 2)), ((2, 3, 4), (4,))],
)  # fmt: skip
def test_products_of_sizes_without_a_name(left, right):
    a, b = (relay.var(n, shape=(ANY,) * len(s)) for n, s in (("a", left), ("b", right)))
    mod = slipway.IRModule.from_expr(relay.Function([a, b], product_of(a, b)))
    run = relay.create_executor("vm", mod, slipway.cpu(), "llvm").evaluate()
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype("float32") for s in (left, right))
    np.testing.assert_allclose(run(x, y).numpy(), x @ y, rtol=1e-4, atol=1e-5)
