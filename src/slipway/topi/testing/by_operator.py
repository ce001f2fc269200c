"""The NumPy reference of an operator, called with arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway.relay.construct import var
from slipway.relay.expr import Function
from slipway.relay.interpret import interpret


def reference(make: Callable[..., Any], *arrays: Any, **attributes: Any) -> Any:
    """Return what an operator's reference gives for arrays; `make` makes a call to it."""
    given = [np.asarray(array) for array in arrays]
    inputs = [var(f"x{n}", shape=a.shape, dtype=str(a.dtype)) for n, a in enumerate(given)]
    called = make(*inputs, **attributes)
    called = called.astuple() if hasattr(called, "astuple") else called
    return interpret(Function(tuple(inputs), called), *given)
