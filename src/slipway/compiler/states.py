"""States of a model: inputs that keep their memory between runs, and that a run writes.

`bind_states` pairs an input with the output that is its next value, and takes that output away: its
value lies in the input's memory after the run.  How it gets there, best way first:

    in place   updates of regions (`dynamic_update_slice`) of the state write the regions alone
    directly   the kernel that computes the value writes it there, if nobody reads the old one later
    copied     after everything else

The memory planners ask `ModelGraph.held` which results lie in a state's memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from slipway.compiler.graph import content_name
from slipway.compiler.model_graph import NOP, GraphNode, ModelGraph, TensorRef
from slipway.errors import LoweringError, did_you_mean
from slipway.relay import op_registry
from slipway.relay.expr import Function, Var
from slipway.relay.ops.tensor.update import in_place_update
from slipway.relay.types import TensorType

State = Mapping[str, str | int]


def bind_states(
    graph: ModelGraph, state: State, initial: Mapping[str, Any], mod_name: str = "default"
) -> ModelGraph:
    """Let the inputs of `state` hold what the outputs that they are paired with have computed.

    `initial` has what they hold at first, by name; zeros where it says nothing.  Raises
    LoweringError for names that the model lacks, and for a pair of two types.
    """
    binder = _Binder(graph, mod_name)
    pairs = binder.pairs(state)
    for name in state:
        if name in initial:
            graph.initial[name] = _initial(name, graph.type_of(binder.inputs[name]), initial[name])
    for source, number in pairs:
        binder.bind(source, graph.outputs[number])
        graph.states.append(graph.nodes[source.node].name)
    dropped = {number for _, number in pairs}
    kept = [i for i in range(len(graph.outputs)) if i not in dropped]
    graph.output_names = tuple(graph.output_names[i] for i in kept) if graph.output_names else ()
    graph.outputs = [graph.outputs[i] for i in kept]
    outputs = graph.meanings.outputs
    graph.meanings = graph.meanings._replace(outputs=tuple(outputs[i] for i in kept if outputs))
    return graph


def _initial(name: str, type_: TensorType, value: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value, order="C")
    if tuple(type_.shape) != array.shape or type_.dtype != array.dtype.name:
        raise LoweringError(
            f"the state {name!r} is {type_}, and what it is to hold at first is "
            f"{array.dtype.name}{array.shape}: give a value of its type"
        )
    return array


class _Binder:
    def __init__(self, graph: ModelGraph, mod_name: str) -> None:
        self.graph = graph
        self.prefix = f"tvmgen_{mod_name}_"
        self.copies: dict[TensorType, str] = {}  # the kernel that copies a tensor of a type
        self.inputs = {
            node.name: TensorRef(number)
            for number, node in enumerate(graph.nodes)
            if not node.function and node.name not in graph.params
        }
        self.root: dict[TensorRef, TensorRef] = {}
        for number, node in enumerate(graph.nodes):
            for position in range(len(node.types)):
                ref = TensorRef(number, position)
                self.root[ref] = self.root[node.inputs[0]] if node.function == NOP else ref
        # The steps that read each tensor's memory; what is returned is read after the last.
        self.readers: dict[TensorRef, list[float]] = {ref: [] for ref in self.root.values()}
        for number, node in enumerate(graph.nodes):
            for ref in node.inputs if node.function != NOP else ():
                self.readers[self.root[ref]].append(number)
        for ref in graph.outputs:
            self.readers[self.root[ref]].append(inf)

    def pairs(self, state: State) -> list[tuple[TensorRef, int]]:
        """Return (input, number of the output) of each state."""
        found: dict[int, str] = {}
        listed = []
        for name, output in state.items():
            if name not in self.inputs:
                raise LoweringError(
                    f"state: the model has no input {name!r}.{did_you_mean(name, self.inputs)} It "
                    f"has {', '.join(map(repr, self.inputs)) or 'none'}."
                )
            number = self._output(name, output)
            if number in found:
                raise LoweringError(
                    f"state: {name!r} and {found[number]!r} are both paired with the output "
                    f"{output!r}: return it twice for two states"
                )
            found[number] = name
            source, result = self.inputs[name], self.graph.outputs[number]
            own, new = self.graph.type_of(source), self.graph.type_of(result)
            if own != new:
                raise LoweringError(
                    f"state: the input {name!r} is {own}, and the output {output!r} that is to be "
                    f"its next value is {new}: a state keeps its type"
                )
            listed.append((source, number))
        return listed

    def _output(self, name: str, output: str | int) -> int:
        names = self.graph.output_names
        count = len(self.graph.outputs)
        if isinstance(output, str) and output in names:
            return names.index(output)
        if isinstance(output, int) and 0 <= output < count:
            return output
        known = ", ".join(map(repr, names)) if names else f"the numbers 0 to {count - 1}"
        raise LoweringError(
            f"state: {name!r} is to hold the output {output!r}, which the model lacks; its outputs "
            f"are {known}"
        )

    def bind(self, source: TensorRef, result: TensorRef) -> None:
        """Bring the value `result` into the memory of the input `source`."""
        made = self.root[result]
        if made == source:
            return  # it is never written
        updates = self._updates(source, made)
        if updates:
            for number in updates:
                self._write_region_only(number)
                self.graph.held[TensorRef(number)] = source
        elif self.graph.nodes[made.node].function and made.node > max(
            self.readers[source], default=-1
        ):
            self.graph.held[made] = source
        else:
            self._copy(source, result)

    def _updates(self, source: TensorRef, made: TensorRef) -> list[int]:
        """Return the updates of regions that lead from a state to its next value, if all may.

        Nobody may read an older value when the next one has been written over it.
        """
        found: list[int] = []
        while made != source:
            node = self.graph.nodes[made.node]
            if not node.function or node.function == NOP:
                return []
            if in_place_update(self.graph.kernels[node.function]) is None:
                return []
            before = self.root[node.inputs[0]]
            others = list(self.readers[before])
            others.remove(made.node)
            if any(number >= made.node for number in others):
                return []
            found.append(made.node)
            made = before
        return found

    def _write_region_only(self, number: int) -> None:
        graph, node = self.graph, self.graph.nodes[number]
        name = f"{node.function}_in_place"
        if name not in graph.kernels:
            updated = in_place_update(graph.kernels[node.function])
            assert updated is not None
            graph.kernels[name] = updated
        graph.nodes[number] = replace(node, function=name)
        if all(other.function != node.function for other in graph.nodes):
            del graph.kernels[node.function]

    def _copy(self, source: TensorRef, result: TensorRef) -> None:
        graph, type_ = self.graph, self.graph.type_of(result)
        if type_ not in self.copies:
            var = Var("p0", type_)
            function = Function((var,), op_registry.make("copy")(var), None, (("Primitive", 1),))
            base = name = content_name(function, self.prefix)
            while name in graph.kernels:
                name = f"{base}_{len(self.copies) + len(name)}"
            self.copies[type_] = name
            graph.kernels[name] = function
        name = graph.nodes[source.node].name
        graph.nodes.append(GraphNode(f"keep_{name}", self.copies[type_], (result,), (type_,)))
        graph.held[TensorRef(len(graph.nodes) - 1)] = source
