"""Sparse weights of a model: expanded, and refused in words where they fit nothing."""

import numpy as np
import onnx
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError

X = np.arange(8, dtype="float32").reshape(2, 4)


def adds(values, indices, dims):
    """The model of x + w, with sparse w."""
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": ("float32", (2, 4))}, ["y"])
    values = onnx.numpy_helper.from_array(np.array(values, "float32"), "w")
    indices = onnx.numpy_helper.from_array(np.array(indices, "int64"), "w_indices")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, dims))
    return proto


@pytest.mark.parametrize(
    ("values", "indices"),
    [([3, -1, 7], [1, 4, 7]), ([3, -1, 7], [[0, 1], [1, 0], [1, 3]]), ([], [])],
    ids=["positions", "one for each axis", "none"],
)
@pytest.mark.parametrize("freeze", [True, False])
def test_sparse_weights_agree_with_the_reference(values, indices, freeze):
    mod, params = relay.frontend.from_onnx(adds(values, indices, [2, 4]), freeze_params=freeze)
    wanted = X.copy()
    for value, index in zip(values, indices, strict=True):
        wanted[np.unravel_index(index, X.shape) if isinstance(index, int) else tuple(index)] += (
            value
        )
    found = relay.create_executor("graph", mod, target="llvm").evaluate()(x=X, **params)
    np.testing.assert_array_equal(found.numpy(), wanted)
    mod, _ = relay.frontend.from_onnx(as_constant(adds(values, indices, [2, 4])))
    np.testing.assert_array_equal(relay.interpret.interpret(mod["main"], X), wanted)


def as_constant(proto):
    """The same with the sparse weight in a node Constant, whose tensor needs no name."""
    (sparse,) = proto.graph.sparse_initializer
    sparse.values.name = ""
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    del proto.graph.sparse_initializer[:]
    return proto


@pytest.mark.parametrize(
    ("indices", "dims", "words"),
    [
        ([1, 2**50], [2, 4], "an index is outside of its shape"),
        ([-1, 2], [2, 4], "an index is outside of its shape"),
        ([[0, 1], [0, 4]], [2, 4], "an index is outside of its shape"),
        ([3, 3], [2, 4], "its indices do not ascend"),
        ([3, 1], [2, 4], "its indices do not ascend"),
        ([1, 2, 3], [2, 4], "for 2 values"),
        ([1, 2], [], "its shape is"),
        ([1, 2], [2, -4], "its shape is"),
        ([1, 2], [2**31, 2**31], "'w' needs a constant of"),
    ],
)
def test_damaged_sparse_weights(indices, dims, words):
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_onnx(adds([1, 2], indices, dims))
    with pytest.raises(ModelError, match=words) as refused:
        relay.frontend.from_onnx(as_constant(adds([1, 2], indices, dims)))
    assert "'w'" in str(refused.value)
