"""What a module has to offer: its own names, and none of those that it imports to work with."""

from __future__ import annotations

from types import ModuleType


def offered(module: ModuleType) -> dict[str, object]:
    """Return the public classes and functions that `module` defines, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }
