"""Graphs of any depth: no walk over them meets Python's recursion limit."""

import copy
import pickle

import numpy as np
import pytest

from slipway import relay
from slipway.errors import LoweringError, ModelError, TypeInferenceError
from slipway.ir.function import GlobalVar, IRModule
from slipway.ir.structural import structural_equal, structural_hash
from slipway.ir.text.serialize import load_json, save_json
from slipway.relay.expr import Call, Function, If, Let, Tuple
from slipway.relay.interpret import interpret
from slipway.relay.text.printer import astext
from slipway.transform.graph.inline import inline

DEPTH = 3000


def chain():
    x = relay.var("x", shape=(2,))
    y = x
    for _ in range(DEPTH):
        y = relay.negative(y)
    return Function((x,), y)


def lets():
    """Each Let is the body of the one before."""
    x = relay.var("x", shape=(2,))
    names = [x, *(relay.var(f"v{i}", shape=(2,)) for i in range(DEPTH))]
    body = names[-1]
    for i in reversed(range(DEPTH)):
        body = Let(names[i + 1], relay.negative(names[i]), body)
    return Function((x,), body)


def lets_in_values():
    x = relay.var("x", shape=(2,))
    y = x
    for i in range(DEPTH):
        name = relay.var(f"w{i}", shape=(2,))
        y = Let(name, y, relay.negative(name))
    return Function((x,), y)


def ifs(depth=DEPTH):
    x = relay.var("x", shape=(2,))
    y = x
    for _ in range(depth):
        y = If(relay.const(True), relay.negative(y), x)
    return Function((x,), y)


GRAPHS = {"chain": chain, "lets": lets, "lets in values": lets_in_values, "ifs": ifs}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_deep_graph_is_compared_kept_and_run(name):
    graph, again = GRAPHS[name](), GRAPHS[name]()
    assert structural_equal(graph, again)
    assert structural_hash(graph) == structural_hash(again)
    assert structural_equal(load_json(save_json(graph)), graph)
    assert structural_equal(pickle.loads(pickle.dumps(graph)), graph)
    assert copy.deepcopy(graph) is graph
    x = np.float32([1, -2])
    np.testing.assert_array_equal(interpret(graph, x), x)  # negated an even number of times


@pytest.mark.parametrize("name", ["chain", "lets"])
def test_the_text_of_a_long_program_is_read_again(name):
    graph = GRAPHS[name]()
    assert structural_equal(relay.fromtext(astext(graph)), graph)


def test_a_let_in_a_value_is_read_again():
    x, y, z = (relay.var(n, shape=(2,)) for n in "xyz")
    graph = Function((x,), Let(z, Let(y, relay.exp(x), relay.add(y, y)), relay.tanh(z)))
    assert structural_equal(relay.fromtext(astext(graph)), graph)


@pytest.mark.parametrize("name", ["chain", "lets", "lets in values"])
def test_deep_programs_become_plain_dataflow(name):
    found = inline(GRAPHS[name]())
    np.testing.assert_array_equal(interpret(found, np.float32([1, -2])), np.float32([1, -2]))
    assert "let" not in astext(found)


def test_functions_called_inside_functions_are_inlined():
    x = relay.var("x", shape=(2,))
    y = relay.negative(x)
    for i in range(200):
        p = relay.var(f"p{i}", shape=(2,))
        y = Call(Function((x,), y), (relay.negative(p),))
        x = p
    found = inline(Function((x,), y))
    np.testing.assert_array_equal(interpret(found, np.float32([3, 4])), np.float32([-3, -4]))


def test_functions_that_call_each_other_without_end_are_refused():
    x = relay.var("x", shape=(2,))
    one = Function((x,), Call(GlobalVar("two"), (x,)))
    y = relay.var("y", shape=(2,))
    two = Function((y,), Call(GlobalVar("one"), (y,)))
    module = IRModule((("one", one), ("two", two)))
    with pytest.raises(LoweringError, match="without end"):
        inline(one, module)


def test_nested_ifs_are_printed():
    assert astext(ifs(300)).count("if (") == 300


def test_tuples_are_not_nested_deeply():
    x = relay.var("x", shape=(2,))
    with pytest.raises(TypeInferenceError, match="nested more than 64 deep"):
        for _ in range(1000):
            x = Tuple((x,))


@pytest.mark.parametrize(
    "text",
    [
        "fn (%x: Tensor[(2,), float32]) {\n  " + "(" * 900 + "%x" + ",)" * 900 + "\n}",
        "fn (%x: " + "(" * 900 + "Tensor[(2,), float32]" + ",)" * 900 + ") { %x }",
        "fn (%x: Tensor[(2,), float32]) {\n  " + "tanh(" * 900 + "%x" + ")" * 900 + "\n}",
        "fn (%x: Tensor[(2,), float32]) { reshape(%x, newshape=" + "[" * 900 + "]" * 900 + ") }",
        "fn () " + "{ if (True) " * 900 + "True" + "} else { True }" * 900,
    ],
    ids=["tuples", "types", "calls", "lists", "ifs"],
)
def test_text_nested_deeply_is_refused_with_its_place(text):
    with pytest.raises(ModelError, match=r"line \d+, column \d+: this is nested more than 64 deep"):
        relay.fromtext(text)
