"""What a script says of an operation: pairs that are also looked up by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from slipway.arguments import table_of
from slipway.ir import ops
from slipway.ir.expr import FloatImm, IntImm


class OperationAttrs(tuple[tuple[str, Any], ...]):
    """Pairs of name and value, in the order of names; ``"x" in attrs`` and ``attrs["x"]`` too.

    Numbers are constants of the loop language, which have a `value`; lists are tuples of values.
    """

    __slots__ = ()

    @classmethod
    def of(cls, attrs: Mapping[str, Any] | None) -> OperationAttrs:
        """Return the pairs of a table."""
        return cls(
            (key, _value(value))
            for key, value in sorted(table_of(attrs, "attrs", '{"tag": 1}').items())
        )

    def __str__(self) -> str:
        return json.dumps({key: _plain(value) for key, value in self})

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or any(name == key for name, _ in self)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for name, value in self:
            if name == key:
                return value
        raise KeyError(key)

    def keys(self) -> list[str]:
        """Return the names."""
        return [name for name, _ in self]

    def items(self) -> list[tuple[str, Any]]:
        """Return the pairs."""
        return list(self)


def _value(given: Any) -> Any:
    if isinstance(given, (bool, int, float)):
        return ops.const(given)
    return tuple(_value(item) for item in given) if isinstance(given, (list, tuple)) else given


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, (IntImm, FloatImm)) else str(value)
