"""``@memoize(key)``: a function without arguments, or of hashable ones, computes each result once.

Results are kept as long as the process runs.  Classic TVM also pickles them into the working
directory and loads them in a later run; here no file is written, and none is trusted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_KEPT: dict[tuple[str, str, tuple[Any, ...]], Any] = {}


def memoize(key: str, save_at_exit: bool = False) -> Callable[[F], F]:
    """Return a decorator that keeps results under `key`, by what the function is and is given.

    The variables that a function inside another one uses count with its arguments.
    """

    def decorate(function: F) -> F:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())

        @functools.wraps(function)
        def kept(*arguments: Any) -> Any:
            known = (key, function.__qualname__, (*map(_hashable, (*cells, *arguments)),))
            if known not in _KEPT:
                _KEPT[known] = function(*arguments)
            return _KEPT[known]

        return kept  # type: ignore[return-value]

    return decorate


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value
