"""MergeComposite: what matches a pattern of an accelerator's becomes a function, called there.

    nn.relu(nn.bias_add(nn.conv2d(%x, %w), %b))
        ->  fn(%x, %b, Composite="npu.conv") { ... }(%x, %b)

Patterns are taken in the order of the table; what one has taken the next leave alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway.errors import LoweringError
from slipway.relay.dataflow_pattern import DFPattern, partition
from slipway.relay.expr import Expr, Function

# (name, pattern) or (name, pattern, check)
Entry = tuple[Any, ...]


def merge_composite(function: Function, table: Sequence[Entry]) -> Function:
    """Return `function` with composite functions.  Raises LoweringError for a table that is none.

    `check` sees the last operator of a match and says whether it is taken.
    """
    for entry in table:
        if len(entry) not in (2, 3) or not isinstance(entry[1], DFPattern):
            raise LoweringError(
                "an entry of a pattern table is (name, pattern) or (name, pattern, check); "
                f"got {entry!r}"
            )
        name, pattern, *rest = entry
        check: Callable[[Expr], bool] = rest[0] if rest else _any
        function = partition(pattern, function, {"Composite": name}, check)  # type: ignore[assignment]
    return function


def _any(expr: Expr) -> bool:
    return True
