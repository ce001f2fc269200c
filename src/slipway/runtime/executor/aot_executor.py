"""Running a program that was compiled ahead of time, as a graph's executor runs one."""

from __future__ import annotations

import re
from typing import Any

from slipway.errors import ExecutionError
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.ndarray import NDArray

__all__ = ["AotModule"]


class AotModule(GraphModule):
    """A model compiled ahead of time, whose inputs also go by their names in C.

    The input ``input:0`` is ``input_0`` there, unless another input is called so.
    """

    def _set_one(self, key: str | int, value: Any) -> None:
        super()._set_one(self._known(key), value)

    def get_input(self, index: str | int, out: NDArray | None = None) -> NDArray:
        """Return an input by name or number, as `get_output` does."""
        return super().get_input(self._known(index), out)

    def get_input_index(self, name: str) -> int:
        """Return the number of an input.  Raises ExecutionError if there is none of that name."""
        return super().get_input_index(str(self._known(name)))

    def _known(self, key: str | int) -> str | int:
        """Return the model's own name of an input that is given by either name."""
        if not isinstance(key, str) or super().get_input_index(key) >= 0:
            return key
        names = [self.get_input_name(i) for i in range(self.get_num_inputs())]
        alike = [name for name in names if re.sub(r"[^A-Za-z0-9_]", "_", name) == key]
        if len(alike) != 1:
            raise ExecutionError(
                f"Invalid input name. The model has no input {key!r}. Its inputs are: "
                f"{', '.join(map(repr, names))}."
            )
        return alike[0]
