"""Where the next values of states are written: graphs run step by step, with the memory as planned.

`run` here computes each kernel by its reference and stores the result in the memory that the graph
says, so that what is written over too early, or in another order, gives other numbers.
"""

import random

import numpy as np
import pytest

from slipway import relay
from slipway.compiler.model_graph import NOP, TensorRef
from slipway.compiler.relay_build import kernel_graph
from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.relay.meaning import Meaning, meanings_attribute
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform import PassContext

SHAPE = (5, 3)
RNG = np.random.default_rng(11)


def graph_of(results, state, opt_level, names=None, params=None):
    """Return a model's graph with its states bound, and its function."""
    free = sorted(relay.analysis.free_vars(relay.Tuple(results)), key=lambda v: v.name_hint)
    main = relay.Function(free, relay.Tuple(results))
    if names is not None:
        main = main.with_attr("output_names", names)
    with PassContext(opt_level=opt_level):
        mod = IRModule.from_expr(main)
        return kernel_graph(mod, Target("llvm"), params, state=state), mod


def run(graph, memory, inputs):
    """Run a graph; `memory` holds the states by name, and is written as the graph says."""
    cells, values = {}, {**inputs, **graph.params}
    for number, node in enumerate(graph.nodes):
        if node.function == NOP:
            first = cells[node.inputs[0]]
            cells[TensorRef(number)] = lambda f=first, t=node.types[0]: f().reshape(t.shape)
        elif not node.function:
            where = memory if node.name in memory else values
            cells[TensorRef(number)] = lambda w=where, n=node.name: w[n]
        else:
            given = [cells[ref]().copy() for ref in node.inputs]
            found = interpret(graph.kernels[node.function], *given)
            for i, value in enumerate(found if isinstance(found, tuple) else [found]):
                ref = TensorRef(number, i)
                if ref in graph.held:
                    name = graph.nodes[graph.held[ref].node].name
                    memory[name] = value
                    cells[ref] = lambda n=name: memory[n]
                else:
                    cells[ref] = lambda v=value: v
    return [cells[ref]() for ref in graph.outputs]


def updates_in_place(graph):
    """Whether each kernel that updates a region alone writes into a state, and the reverse."""
    alone = {
        name
        for name, kernel in graph.kernels.items()
        for expr in post_order(kernel.body)
        if getattr(getattr(expr, "attrs", None), "in_place", False)
    }
    assert {graph.nodes[ref.node].function for ref in graph.held} >= alone
    for number, node in enumerate(graph.nodes):
        if node.function in alone:
            assert TensorRef(number) in graph.held
    assert set(graph.kernels) == {n.function for n in graph.nodes if n.function} - {NOP}
    return len([n for n in graph.nodes if n.function in alone])


def drawn(seed):
    """Return results of a random model over two states, which outputs they get, and how many."""
    draw = random.Random(seed)
    a, b, x = (relay.var(name, shape=SHAPE) for name in "abx")
    row = relay.var("row", shape=(1, 3))
    at = relay.var("at", shape=(1,), dtype="int64")
    values = [a, b, x]
    for _ in range(draw.randrange(1, 6)):
        one, other = draw.choice(values[-4:]), draw.choice(values)
        values.append(
            draw.choice([
                lambda v, w: relay.dynamic_update_slice(v, row, at, axes=[0]),
                lambda v, w: relay.dynamic_update_slice(v, row * row, at + at, axes=[0]),
                lambda v, w: relay.dynamic_update_slice(v, relay.sum(w, 0, True), at, axes=[0]),
                lambda v, w: relay.reshape(relay.reshape(v, (3, 5)), SHAPE),
                lambda v, w: relay.tanh(v) - w,
                lambda v, w: v + relay.sum(w, axis=0),
            ])(one, other)
        )  # fmt: skip
    # First what reads all inputs, so that each is one.
    results = [relay.sum(a + b + x + row) + relay.sum(at).astype("float32")]
    results += [draw.choice(values[-3:]), draw.choice(values[-2:])]
    results += draw.choices(values, k=draw.choice((0, 0, 1, 2)))
    order = [("a", 1), ("b", 2)]
    draw.shuffle(order)
    return results, dict(order)


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in (0, 20, 40)], ids=str)
def test_what_is_read_is_never_written_over_too_early(seeds, opt_level):
    alone = 0
    for seed in seeds:
        results, state = drawn(seed)
        graph, mod = graph_of(results, state, opt_level)
        kept = {name: RNG.normal(size=SHAPE).astype("float32") for name in state}
        memory = {name: value.copy() for name, value in kept.items()}
        for at in (1, 4, 0):
            inputs = {"x": RNG.normal(size=SHAPE), "row": RNG.normal(size=(1, 3))}
            inputs = {name: value.astype("float32") for name, value in inputs.items()}
            inputs["at"] = np.array([at])
            wanted = interpret(mod, **inputs, **kept)
            found = run(graph, memory, inputs)
            kept = {name: wanted[number] for name, number in state.items()}
            for one, other in zip(found, [wanted[0], *wanted[3:]], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=str(seed))
            for name, value in kept.items():
                np.testing.assert_allclose(memory[name], value, rtol=1e-5, err_msg=f"{seed} {name}")
        alone += updates_in_place(graph)
    assert alone  # the best way is among them


def cache():
    """A state, rows for it and where they go."""
    shapes = {"a": SHAPE, "row": (1, 3)}
    a, row = (relay.var(name, shape=shape) for name, shape in shapes.items())
    return a, row, relay.var("at", shape=(1,), dtype="int64")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_updates_one_after_the_other_write_their_regions_alone(count):
    a, row, at = cache()
    kept = a
    for number in range(count):
        moved = at + relay.const([number], "int64")
        kept = relay.dynamic_update_slice(kept, row, moved, axes=[0])
    graph, _ = graph_of([relay.sum(kept), kept], {"a": 1}, 0)
    assert updates_in_place(graph) == count == len(graph.held)


def test_a_state_that_is_written_over_itself_is_no_update_of_a_region():
    a, _, at = cache()
    at = relay.concatenate([at, at], 0)
    same = relay.reshape(relay.reshape(a, (3, 5)), SHAPE)
    for rows in (a, same):
        graph, _ = graph_of([relay.dynamic_update_slice(a, rows, at)], {"a": 0}, 0)
        assert updates_in_place(graph) == 0


def test_an_update_of_a_state_and_of_something_else_are_two_kernels():
    """They compute the same; one writes a region alone, and one copies what it does not write."""
    a, row, at = cache()
    kept = relay.dynamic_update_slice(a, row, at, axes=[0])
    other = relay.dynamic_update_slice(relay.var("x", shape=SHAPE), row, at, axes=[0])
    graph, _ = graph_of([other, kept], {"a": 1}, 0)
    assert updates_in_place(graph) == 1
    assert len([n for n in graph.nodes if "update_slice" in n.function]) == 2


def test_a_value_that_is_computed_after_all_reads_is_written_there_at_once():
    """A state that nobody reads, too."""
    a, b, x = (relay.var(name, shape=SHAPE) for name in "abx")
    graph, _ = graph_of([relay.exp(relay.sum(a, 0) + x), relay.sum(b + b)], {"a": 0}, 0)
    assert [graph.nodes[ref.node].name.startswith("keep") for ref in graph.held] == [False]
    graph, _ = graph_of([relay.exp(a), relay.sum(b + b)], {"a": 0}, 0)  # it reads a itself
    assert [graph.nodes[ref.node].name.startswith("keep") for ref in graph.held] == [True]
    graph, _ = graph_of([relay.exp(x), relay.sum(x)], None, 3)
    assert not graph.held
    assert not graph.states
    one = relay.Function([a, x], relay.exp(x))
    with PassContext(opt_level=3):
        graph = kernel_graph(IRModule.from_expr(one), Target("llvm"), state={"a": 0})
    assert [graph.nodes[ref.node].name.startswith("keep") for ref in graph.held] == [False]
    graph, _ = graph_of([relay.tanh(a), relay.tanh(a), x], {"a": 0}, 0)
    assert len(graph.held) == 1


def test_a_result_that_is_also_returned_is_read_after_the_last_kernel():
    """The old value of a state, returned: the new one is copied there at the end."""
    a, x = (relay.var(name, shape=SHAPE) for name in "ax")
    graph, _ = graph_of([relay.reshape(a, (15,)), relay.tanh(a) + x], {"a": 1}, 0)
    memory = {"a": np.ones(SHAPE, "float32")}
    (old,) = run(graph, memory, {"x": np.zeros(SHAPE, "float32")})
    np.testing.assert_array_equal(old.ravel(), np.ones(15))
    np.testing.assert_allclose(memory["a"], np.tanh(np.ones(SHAPE)), rtol=1e-6)


def test_names_and_meanings_are_those_of_the_outputs_that_stay():
    a, x = (relay.var(name, shape=SHAPE) for name in "ax")
    results = [relay.exp(x), relay.tanh(a), relay.abs(x)]
    free = [a, x]
    main = relay.Function(free, relay.Tuple(results))
    main = main.with_attr("output_names", ("first", "next", "last"))
    told = [Meaning(0.5 * number, labels=(f"label {number}",)) for number in (1, 2, 3)]
    main = main.with_attr(*meanings_attribute({}, told)[0])
    with PassContext(opt_level=3):
        graph = kernel_graph(IRModule.from_expr(main), Target("llvm"), state={"a": "next"})
    assert graph.output_names == ("first", "last")
    assert graph.meanings.outputs == (told[0], told[2])
    assert len(graph.outputs) == 2


def test_a_constant_is_no_input():
    a, x = (relay.var(name, shape=SHAPE) for name in "ax")
    weight = relay.const(RNG.normal(size=SHAPE).astype("float32"))
    graph, _ = graph_of([relay.tanh(a) + x * weight], None, 3)
    (name,) = graph.params
    with pytest.raises(LoweringError, match=f"no input '{name}'.*It has 'a', 'x'"):
        graph_of([relay.tanh(a) + x * weight], {name: 0}, 3)


@pytest.mark.parametrize("number", [-1, 3])
def test_numbers_that_no_output_has_are_refused(number):
    a, x = (relay.var(name, shape=SHAPE) for name in "ax")
    with pytest.raises(LoweringError, match=f"output {number}, which the model lacks.*0 to 2"):
        graph_of([relay.tanh(a), relay.exp(a), x], {"a": number}, 0)
