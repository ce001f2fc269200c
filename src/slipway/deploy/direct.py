"""The short way of a call: arrays that fit as they are, copied into the executor's own memory.

`Model.__call__` takes lists, tensors, names, several batches, and asks what fits; for a small model
that costs many times its run.  Where each input is an array of the model's own shape and type, and
the model runs in this process on its processor, nothing has to be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from slipway.deploy.tensors import TensorSpec
from slipway.runtime.graph.graph_executor import GraphModule

Array = np.ndarray[Any, Any]


class DirectCalls:
    """Runs an executor on arrays of exactly its inputs' shapes and types."""

    def __init__(self, executor: GraphModule, inputs: list[Array], outputs: list[Array]) -> None:
        self._executor, self._inputs, self._outputs = executor, inputs, outputs
        self._wanted = [(view.shape, view.dtype) for view in inputs]

    def run(self, given: Sequence[object]) -> list[Array] | None:
        """Return copies of the outputs; None where something has to be asked first."""
        if len(given) != len(self._wanted) or self._executor.has_given_memory:
            return None
        arrays: list[Array] = []
        for value, (shape, dtype) in zip(given, self._wanted, strict=True):
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return None
            arrays.append(value)
        for view, array in zip(self._inputs, arrays, strict=True):
            np.copyto(view, array)
        self._executor.run()
        return [view.copy() for view in self._outputs]


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
            return DirectCalls(executor, taken, made)
    return None
