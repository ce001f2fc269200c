"""The short way of a call: arrays that fit as they are, copied into the executor's own memory.

`Model.__call__` takes lists, tensors, names, several batches, and asks what fits; for a small model
that costs many times its run.  Where each input is an array of the model's own shape and type, and
the model runs in this process on its processor, nothing has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.deploy.tensors import TensorSpec
from slipway.runtime.artifact import Artifact
from slipway.runtime.graph.plain_graph import NotPlainError, plain_graph

if TYPE_CHECKING:
    from slipway.runtime.graph.graph_executor import GraphModule

Array = np.ndarray[Any, Any]


class DirectCalls:
    """Runs an executor on arrays of exactly its inputs' shapes and types.

    `run` says whether it has run; where it has not, the long way tells why.
    """

    def __init__(
        self,
        run: Callable[[], bool],
        names: Sequence[str],
        inputs: Sequence[Array],
        outputs: Sequence[Array],
    ) -> None:
        self._run, self._names, self._inputs, self._outputs = run, names, inputs, outputs
        self._wanted = [(view.shape, view.dtype) for view in inputs]
        self._has_run = False

    def last_inputs(self) -> dict[str, Array]:
        """Return copies of what the last call was given; nothing before the first one."""
        pairs = zip(self._names, self._inputs, strict=True)
        return {name: view.copy() for name, view in pairs} if self._has_run else {}

    def run(self, given: Sequence[object], named: Mapping[str, object]) -> list[Array] | None:
        """Return copies of the outputs; None where something has to be asked first."""
        if named:
            if given or len(named) != len(self._names):
                return None
            given = [named.get(name) for name in self._names]
        if len(given) != len(self._wanted):
            return None
        arrays: list[Array] = []
        for value, (shape, dtype) in zip(given, self._wanted, strict=True):
            if type(value) is not np.ndarray or value.shape != shape:
                return None
            if value.dtype is not dtype and value.dtype != dtype:  # NumPy's own are one object each
                return None
            arrays.append(value)
        for view, array in zip(self._inputs, arrays, strict=True):
            np.copyto(view, array)
        if not self._run():
            return None
        self._has_run = True
        return [view.copy() for view in self._outputs]


def plain_calls(
    artifact: Artifact, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> DirectCalls | None:
    """Return the short way to an executor of its own, made without tvm-ffi; None as below."""
    if any(spec.is_open for spec in (*inputs, *outputs)):
        return None
    graph = plain_graph(artifact)
    names = [spec.name for spec in inputs]
    if graph is None or not set(names) <= set(graph.names):
        return None
    with suppress(NotPlainError):
        taken = [graph.view("get_input", graph.names.index(name)) for name in names]
        made = [graph.view("get_output", number) for number in range(len(outputs))]
        return DirectCalls(graph.run, names, taken, made)
    return None


def direct_calls(
    executor: GraphModule, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> DirectCalls | None:
    """Return the short way to an executor of this process; None where there is none.

    That is for open sizes, memory of a GPU, and types that NumPy does not have.
    """
    if any(spec.is_open for spec in (*inputs, *outputs)):
        return None
    with suppress(BufferError, RuntimeError, TypeError, ValueError):
        taken = [np.from_dlpack(executor.get_input(spec.name)) for spec in inputs]
        made = [np.from_dlpack(executor.get_output(i)) for i in range(len(outputs))]
        if all(view.flags.writeable for view in taken):

            def run() -> bool:
                if executor.has_given_memory:
                    return False
                executor.run()
                return True

            return DirectCalls(run, [spec.name for spec in inputs], taken, made)
    return None
