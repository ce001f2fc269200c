"""An attribute of an operator for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slipway.ir.op_attrs import op_attr, reset_op_attr, set_op_attr


@contextmanager
def TempOpAttr(op_name: str, attr_key: str, attr_value: Any) -> Iterator[None]:
    """Within the block, an operator has an attribute, as a rule under "FTVMLegalize"."""
    before = op_attr(op_name, attr_key)
    reset_op_attr(op_name, attr_key)
    set_op_attr(op_name, attr_key, attr_value)
    try:
        yield
    finally:
        reset_op_attr(op_name, attr_key)
        if before is not None:
            set_op_attr(op_name, attr_key, before)
