"""Tensorize: replace a loop nest by one hardware operation."""

from __future__ import annotations

from typing import Any

from slipway.ir.expr import IterVar
from slipway.ir.stmt import Stmt
from slipway.te.stage import Stage


def find_tensorized(stage: Stage) -> IterVar | None:
    """Return the axis that the schedule tensorizes, or None."""
    for axis, mark in stage.iter_var_attrs.items():
        if mark.tensor_intrin is not None:
            return axis
    return None


def tensorized_stage(lowering: Any, stage: Stage) -> Stmt:
    """Return the statement of a stage with a tensorized axis."""
    raise NotImplementedError("tensorize")
