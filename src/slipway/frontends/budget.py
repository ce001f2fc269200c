"""One budget for what an import may make: nodes, and bytes of constants.

A model file of a kilobyte can ask for functions that call the next one twice, thirty levels deep,
or for a constant that is doubled until no memory holds it.  Each importer opens a budget, and
whatever writes something out takes from it: nodes as they are converted, constants as they are
folded, tables of positions, masks and matrices.  The error names the node at which it was spent.

``PassContext(config={"relay.frontend.budget": 4})`` and ``slipway --import-budget 4`` give an
import four times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil, prod
from typing import Protocol

from slipway.errors import ModelError
from slipway.transform.context import PassContext

MAX_NODES = 200_000  # after unrolling loops and writing out functions
BYTES = 1 << 28  # of constants that the import computes, and beside it so many times the weights:
WEIGHTS_FACTOR = 8
TABLE_BYTES = 8  # of an element of a table

_factor = 1


def set_default_factor(factor: int) -> None:
    """Give imports `factor` times the usual, where no PassContext says otherwise."""
    global _factor
    _factor = factor


class ModelNode(Protocol):
    """A node of any format."""

    def unsupported(self, why: str, /) -> Exception:
        """Return the error to raise."""


class ImportBudget:
    """What is left to one import; `node` is the name of the node at work, for the error."""

    def __init__(self, weights_bytes: int, factor: int) -> None:
        self.nodes = MAX_NODES * factor
        self.bytes = (BYTES + WEIGHTS_FACTOR * weights_bytes) * factor
        self.factor = factor
        self.nodes_left = self.nodes
        self.bytes_left = self.bytes
        self.node = ""

    def take_node(self, name: str) -> None:
        """Count a node that is converted.  Raises ModelError when it is one too many."""
        self.node = name
        self.take_nodes(1)

    def take_nodes(self, count: int) -> None:
        """Count what the node at work becomes.  Raises ModelError when it is too much."""
        self.nodes_left -= count
        if self.nodes_left < 0:
            raise ModelError(
                f"the model becomes more than {self.nodes} nodes when its functions and loops are "
                f"expanded, which the node {self.node!r} exceeds. " + self._more(2.0)
            )

    def take_bytes(self, count: int) -> None:
        """Count bytes of a constant before it is made.  Raises ModelError for too many."""
        if count > self.bytes_left:
            raise ModelError(
                f"the node {self.node!r} needs a constant of {count} bytes, computed while the "
                f"model is read; {self.bytes_left} of {self.bytes} are left. "
                + self._more((self.bytes - self.bytes_left + count) / self.bytes)
            )
        self.bytes_left -= count

    def _more(self, times: float) -> str:
        factor = ceil(times * self.factor)
        return (
            f"If the model is meant so, allow {factor} times the usual: slipway --import-budget "
            f'{factor}, or PassContext(config={{"relay.frontend.budget": {factor}}})'
        )


_current: ContextVar[ImportBudget | None] = ContextVar("import_budget", default=None)


@contextmanager
def import_budget(weights_bytes: int) -> Iterator[ImportBudget]:
    """Open the budget of one import, whose file has so many bytes of weights."""
    factor = PassContext.current().option("relay.frontend.budget", _factor)
    if factor < 1:
        raise ModelError(f"the budget of an import is {factor} times the usual; give 1 or more")
    made = ImportBudget(weights_bytes, factor)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def current_budget() -> ImportBudget:
    """Return the budget of the import at work, or outside of any the usual one."""
    return _current.get() or ImportBudget(0, 1)


def take_bytes(count: int) -> None:
    """Take bytes from the import at work; outside of any, nothing is counted."""
    budget = _current.get()
    if budget is not None:
        budget.take_bytes(count)


def take_nodes(count: int) -> None:
    """Take as many nodes as one becomes from the import at work."""
    budget = _current.get()
    if budget is not None:
        budget.take_nodes(count)


def check_table(node: ModelNode, *extents: int) -> None:
    """Take a table of these extents from the budget.

    Raises ModelError when that is spent, the node's error when no table has such extents.
    """
    if any(extent < 0 for extent in extents):
        raise node.unsupported(f"it needs a constant of the extents {extents}")
    take_table(*extents)


def take_table(*extents: int) -> None:
    """Take a table of these extents from the import at work."""
    take_bytes(TABLE_BYTES * prod(extents))
