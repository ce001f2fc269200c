"""What a script says of an operation: pairs that are also looked up by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class OperationAttrs(tuple[tuple[str, Any], ...]):
    """Pairs of name and value, in the order of names; ``"x" in attrs`` and ``attrs["x"]`` too."""

    __slots__ = ()

    @classmethod
    def of(cls, attrs: Mapping[str, Any] | None) -> OperationAttrs:
        """Return the pairs of a table."""
        return cls(sorted(attrs.items()) if attrs else ())

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
