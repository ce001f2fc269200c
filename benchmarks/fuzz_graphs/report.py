"""A finding as files: a script that stands alone, its arrays, and the relay text."""

from __future__ import annotations

import itertools
import pprint
from pathlib import Path

import numpy as np

from benchmarks.fuzz_graphs.attempt import Options, attempt, feeds
from benchmarks.fuzz_graphs.campaign import isolated
from benchmarks.fuzz_graphs.graph import (
    IN_LISTS,
    OF_BODIES,
    PART,
    Graph,
    Node,
    bodies_of,
    list_ends,
    relay_function,
    results,
)
from benchmarks.fuzz_graphs.shrink import shrink

SCRIPT = '''"""{title}

{problem}
"""

from pathlib import Path

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.op_registry import load_ops, make
from slipway.runtime import cpu

load_ops()
arrays = dict(np.load(Path(__file__).with_suffix(".npz")))
{body}
function = relay.Function([{params}], {result})
with tvm.transform.PassContext(opt_level={opt_level}):
    library = relay.build(tvm.IRModule.from_expr(function), target="{target}")
module = graph_executor.GraphModule(library["default"](cpu(0)))
module.run({feeds})
for index in range({count}):
    got = module.get_output(index).numpy()
    want, allowed = arrays[f"want{{index}}"], arrays[f"allowed{{index}}"]
    wrong = ~(np.abs(got.astype(np.float64) - want.astype(np.float64)) <= allowed)
    wrong &= np.isfinite(allowed)
    print(f"output {{index}}: {{int(wrong.sum())}} of {{wrong.size}} elements differ")
    print("got", got, "want", want, sep="\\n")
'''


def problem_of(graph: Graph, options: Options) -> str:
    """Return what is wrong with a graph, in a process of its own."""
    return next(isolated(lambda _: attempt(graph, options), [0])).problem


def kind_of(problem: str) -> str:
    """What a smaller graph's problem has to have in common with the first one."""
    parts = problem.split(":")
    return ":".join(parts[:2]) if parts[0] == "build" else parts[0].split(" ")[0]


def save(name: str, graph: Graph, options: Options, problem: str, folder: Path) -> str:
    """Shrink a graph that fails and write the script; return a line about it."""

    def fails(candidate: Graph) -> bool:
        found = problem_of(candidate, options)
        return bool(found) and kind_of(found) == kind_of(problem)

    small = shrink(graph, fails)
    problem = problem_of(small, options) or problem
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(script(small, options, name, problem))
    np.savez(path.with_suffix(".npz"), **arrays_of(small))
    return f"{path}: {len(small.nodes)} nodes: {problem}"


def arrays_of(graph: Graph) -> dict[str, np.ndarray]:
    """The leaves, what the outputs should be, and how far from it they may be."""
    found = _leaves(graph, "x")
    for number, value in enumerate(results(graph)):
        found[f"want{number}"], found[f"allowed{number}"] = value.exact, value.error
    return found


def _leaves(graph: Graph, names: str) -> dict[str, np.ndarray]:
    found = {}
    for number, node in enumerate(graph.nodes):
        if node.array is not None:
            found[f"{names}{number}"] = node.array
        for name, body in bodies_of(node).items():
            found |= _leaves(body, f"{names}{number}_{name}_")
    return found


def script(graph: Graph, options: Options, title: str, problem: str) -> str:
    """Return a Python script that builds and runs the graph, and says what differs."""
    outputs = [f"x{o}" for o in graph.outputs]
    return SCRIPT.format(
        title=title,
        problem=problem.replace("\\", "/"),
        body="\n".join(_lines(graph, "x")),
        params=", ".join(feeds(graph)),
        result=f"relay.Tuple([{', '.join(outputs)}])" if len(outputs) > 1 else outputs[0],
        opt_level=options.opt_level,
        target=options.target_text,
        feeds=", ".join(f'{name}=arrays["{name}"]' for name in feeds(graph)),
        count=len(outputs),
    )


def _lines(graph: Graph, names: str) -> list[str]:
    """Return a statement for each node, whose variables begin with `names`."""
    lines = []
    for number, node in enumerate(graph.nodes):
        own, given = f"{names}{number}", [f"{names}{a}" for a in node.args]
        for name, body in bodies_of(node).items():
            inner = f"{own}_{name}_"
            lines += _lines(body, inner)
            params = ", ".join(f"{inner}{n}" for n in body.inputs)
            results = [f"{inner}{o}" for o in body.outputs]
            result = results[0] if name == "condition" else f"relay.Tuple([{', '.join(results)}])"
            lines.append(f"{own}_{name} = relay.Function([{params}], {result})")
        lines.append(f"{own} = {_expression(node, own, given)}")
    return lines


def _expression(node: Node, own: str, given: list[str]) -> str:
    """Return how a node is written, given its own name and those of its arguments."""
    attrs = [f"{k}={_literal(v)}" for k, v in node.attrs.items() if not isinstance(v, Graph)]
    if node.op == "input":
        return f'relay.var("{own}", shape={node.array.shape}, dtype="{node.array.dtype}")'
    if node.op == "const":
        return f'relay.op_registry.const(arrays["{own}"])'
    if node.op == PART:
        return f"{given[0]}[{node.attrs['index']}]"
    if node.op.startswith("qnn.op."):
        return f"relay.{node.op}({', '.join([*given, *attrs])})"
    if node.op in IN_LISTS:
        return f'make("{node.op}")([{", ".join(given)}], {", ".join(attrs)})'
    if node.op == "gather":
        return f'make("gather")({given[0]}, {node.attrs["axis"]}, {given[1]})'
    if node.op in OF_BODIES:
        parts = [f"{own}_{name}" for name in bodies_of(node)]
        ends = [0, 1, len(given)] if node.op == "branch" else list_ends(node)
        lists = [f"[{', '.join(given[a:b])}]" for a, b in itertools.pairwise(ends)]
        if node.op == "branch":
            parts, lists = [given[0], *parts], lists[1:]
        more = [f"{k}={node.attrs[k]}" for k in ("reverse", "steps") if k in node.attrs]
        return f'make("{node.op}")({", ".join([*parts, *lists, *more])})'
    return f'make("{node.op}")({", ".join([*given, *attrs])})'


def _literal(value) -> str:
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()}, {value.dtype.name!r})"
    return pprint.pformat(value, compact=True)


def relay_text(graph: Graph) -> str:
    """Return the graph as relay text."""
    return str(relay_function(graph))
