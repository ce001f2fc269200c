"""ONNX functions that call functions: a chain has an end, and a ring has none."""

import sys

import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError

node = helper.make_node


def chain(length, last="Abs", domain=""):
    """Functions of which each calls the next one, and the last one `last`."""
    proto = model([node("F0", ["x"], ["y"], domain="l")], {"x": ("float32", (2,))}, ["y"])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("l", 1)]
    proto.opset_import.append(imports[1])
    for i in range(length):
        is_last = i == length - 1
        kind, where = (last, domain) if is_last else (f"F{i + 1}", "l")
        body = [node(kind, ["a"], ["b"], domain=where)]
        proto.functions.append(helper.make_function("l", f"F{i}", ["a"], ["b"], body, imports))
    return proto


@pytest.mark.parametrize("length", [1, 33, 1000])
def test_a_chain_is_expanded(length):
    limit = sys.getrecursionlimit()
    mod, _ = relay.frontend.from_onnx(chain(length))
    assert str(mod["main"].body) == "abs(%x)"
    assert sys.getrecursionlimit() == limit


def test_a_longer_chain_is_refused_with_what_to_do():
    with pytest.raises(ModelError, match=r"more than 1000 deep, at F1000: inline them"):
        relay.frontend.from_onnx(chain(1001))


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (1, "without end: F0 calls F0$"),
        (3, "without end: F0 calls F1 calls F2 calls F0$"),
        (40, r"without end: F0 calls .* calls F7 calls \.\.\. calls F0$"),
    ],
)
def test_a_ring_is_named(length, words):
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_onnx(chain(length, "F0", "l"))


def test_a_ring_behind_a_chain_is_named_alone():
    with pytest.raises(ModelError, match=r"without end: F2 calls F3 calls F2$"):
        relay.frontend.from_onnx(chain(4, "F2", "l"))


def test_one_function_may_be_called_again_and_again():
    proto = chain(2)
    proto.graph.node.append(node("F0", ["y"], ["z"], domain="l"))
    proto.graph.output[0].name = "z"
    mod, _ = relay.frontend.from_onnx(proto)
    assert str(mod["main"].body).count("abs") == 2
