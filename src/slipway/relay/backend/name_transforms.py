"""Names of C as classic scripts make them from names of models: ``tvmgen_default_fused_add``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slipway.errors import ArgumentValueError

__all__ = [
    "mangle_module_name", "prefix_generated_name", "prefix_name", "sanitize_name",
    "to_c_constant_style", "to_c_function_style", "to_c_variable_style",
]  # fmt: skip


def prefix_name(names: Sequence[str] | str) -> str:
    """Return ``TVM_a_b`` for the names a and b."""
    return "_".join(["TVM", *_checked(names)])


def prefix_generated_name(names: Sequence[str] | str) -> str:
    """Return ``TVMGen_a_b`` for the names a and b."""
    return "_".join(["TVMGen", *_checked(names)])


def to_c_function_style(original_name: str) -> str:
    """Return the name of a function: ``TVMGen_model_run`` becomes ``TVMGenModelRun``."""
    words = re.split("_+", _prefixed(original_name, "Function")[3:])
    return "TVM" + "".join(word.capitalize() for word in words)


def to_c_variable_style(original_name: str) -> str:
    """Return the name of a variable: ``TVMGen_model`` becomes ``tvmgen_model``."""
    return _prefixed(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """Return the name of a constant: ``TVMGen_model`` becomes ``TVMGEN_MODEL``."""
    return _prefixed(original_name, "Constant").upper()


def sanitize_name(original_name: str) -> str:
    """Return a name with "_" for each character that C does not take."""
    return re.sub(r"[^A-Za-z0-9_]", "_", _checked(original_name)[0])


def mangle_module_name(mod_name: str | None) -> str:
    """Return what the functions of a module's C begin with: ``tvmgen_default``."""
    if mod_name is not None and not re.fullmatch(r"\w+", mod_name, re.ASCII):
        raise ArgumentValueError(f"{mod_name!r} contains invalid characters for a name of C")
    return f"tvmgen_{mod_name}" if mod_name else "tvmgen"


def _checked(names: Sequence[str] | str) -> list[str]:
    given = [names] if isinstance(names, str) else list(names)
    if not given:
        raise ArgumentValueError("Name segments empty: give one name at least")
    if "" in given:
        what = "Name" if isinstance(names, str) else "Name segment"
        raise ArgumentValueError(f"{what} is empty")
    return given


def _prefixed(name: str, what: str) -> str:
    if not name:
        raise ArgumentValueError(f"{what} name is empty")
    if not name.startswith("TVM"):
        raise ArgumentValueError(
            f"{what} not TVM prefixed: {name!r} is to begin as prefix_name makes it"
        )
    return name
