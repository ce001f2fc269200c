"""A random graph with states: inputs whose next value the graph computes and keeps between runs.

A state is an input that has the shape and dtype of something the graph computes; where there is
none, one is added that gathers a result.  After each run the state is held against the oracle,
which goes on from what was found there; a second session that nobody looks into ends in the same
bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.fuzz_graphs.attempt import Options, built, feeds
from benchmarks.fuzz_graphs.draw import draw
from benchmarks.fuzz_graphs.drawing import check
from benchmarks.fuzz_graphs.graph import LEAVES, Graph, Node, evaluate, relay_function
from benchmarks.fuzz_graphs.open_sizes import REFUSED, SKIPPED
from benchmarks.fuzz_graphs.values import UNIT, Unfit, Value, differs

STEPS = 4
MOST = 2  # states of one graph


def with_states(graph: Graph, rng: np.random.Generator) -> tuple[Graph, dict[int, int]]:
    """Return the graph with what its states become as outputs behind its own, and these pairs."""
    values = evaluate(graph)
    made = [
        n
        for n, node in enumerate(graph.nodes)
        if node.op not in LEAVES and isinstance(values[n], Value) and values[n].dtype != "bool"
    ]
    pairs: dict[int, int] = {}
    for state in rng.permutation(graph.inputs):
        array = graph.nodes[state].array
        fits = [n for n in made if values[n].shape == array.shape]
        fits = [n for n in fits if values[n].dtype == array.dtype.name and n not in pairs.values()]
        if fits and len(pairs) < MOST:
            pairs[int(state)] = int(rng.choice(fits))
    if not pairs:
        if not made:
            raise Unfit("nothing to keep")
        graph, pairs = _gathering(graph, values, int(rng.choice(made)), rng)
    positions = {s: len(graph.outputs) + i for i, s in enumerate(pairs)}
    return Graph(graph.nodes, (*graph.outputs, *pairs.values())), positions


def _gathering(graph: Graph, values: list[Any], source: int, rng: np.random.Generator):
    """Return the graph with a state that becomes itself and `source`, and is read beside it."""
    value, count = values[source], len(graph.nodes)
    low, high = (-1.0, 1.0) if value.dtype in UNIT else (0, 5)
    array = np.asarray(rng.uniform(low, high, value.shape)).astype(value.dtype)
    op = str(rng.choice(["add", "subtract", "maximum", "minimum"]))
    order = (count, source) if rng.random() < 0.5 else (source, count)
    state, gathered = Node("input", array=array), Node(op, order)
    other = Node("maximum", (count, source))
    graph = Graph((*graph.nodes, state, gathered, other), (*graph.outputs, count + 2))
    return graph, {count: count + 1}


def attempt_states(seed: int, options: Options) -> str:
    """Return what is wrong with a seed's graph with states; empty when nothing is."""
    from slipway.errors import InternalError, SlipwayError

    rng = np.random.default_rng([seed, 13])
    try:
        graph, positions = with_states(draw(seed, (1, 6)), rng)
        for value in evaluate(graph):
            for each in value if isinstance(value, list) else [value]:
                check(each)
    except Unfit as error:
        return f"{SKIPPED}{error}"
    state = {f"x{number}": position for number, position in positions.items()}
    first = {f"x{number}": graph.nodes[number].array for number in positions}
    try:
        factory = built(relay_function(graph), options, state=state, params=first)
    except InternalError as error:
        return f"build: {error}"
    except SlipwayError as error:
        return f"{REFUSED}{' '.join(str(error).split())}"
    except Exception as error:  # whatever else it raises is found
        return f"build: {type(error).__name__}: {error}"
    return _compared(factory, graph, positions)


def _compared(factory: Any, graph: Graph, positions: dict[int, int]) -> str:
    from slipway.runtime import cpu, set_num_threads
    from slipway.runtime.graph import graph_executor

    def session():
        made = graph_executor.GraphModule(factory["default"](cpu(0)))
        made.set_input(**{n: v for n, v in feeds(graph).items() if int(n[1:]) not in positions})
        return made

    def outputs(module):
        return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]

    def held(module):
        return {n: np.array(module.get_input(f"x{n}").numpy()) for n in positions}

    set_num_threads(1)
    looked, current, steps = session(), graph, []
    for step in range(STEPS):
        try:
            values = evaluate(current)
        except Unfit:  # as an index, say, what it holds by now points nowhere
            break
        problem = _step(looked, current, values, positions, held, outputs)
        if problem:
            return f"step {step}: {problem}"
        kept = held(looked)
        steps.append((outputs(looked), kept))
        nodes = list(current.nodes)
        for number, array in kept.items():
            nodes[number] = replace(nodes[number], array=array)
        current = Graph(tuple(nodes), graph.outputs)
        if not all(np.isfinite(a).all() for a in kept.values() if a.dtype.kind == "f"):
            break  # it has grown out of its dtype, and there is nothing to compare behind that
    set_num_threads(3)
    alone = session()
    for run in range(2):
        for step, (wanted, _) in enumerate(steps):
            if step == 1:
                saved = alone.save_state()
                alone.run()
                alone.load_state(saved)
            alone.run()
            if _bits(outputs(alone)) != _bits(wanted):
                return f"run {run}, step {step}, 3 threads: other bits than where states are read"
        if _bits(held(alone).values()) != _bits(steps[-1][1].values()):
            return f"run {run}: the states end in other bits"
        alone.reset()
    return ""


def _step(
    module: Any, graph: Graph, values: list[Any], positions: dict[int, int], held: Any, outputs: Any
) -> str:
    """Run once; hold outputs and states against the oracle's values."""
    module.run()
    wanted = [values[o] for o in graph.outputs]
    own = [w for i, w in enumerate(wanted) if i not in positions.values()]
    for number, (got, want) in enumerate(zip(outputs(module), own, strict=True)):
        problem = differs(got, want)
        if problem:
            return f"output {number}: {problem}"
    for number, got in held(module).items():
        problem = differs(got, wanted[positions[number]])
        if problem:
            return f"state x{number}: {problem}"
    return ""


def _bits(arrays: Any) -> list[bytes]:
    return [a.tobytes() for a in arrays]
