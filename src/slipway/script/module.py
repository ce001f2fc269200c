"""Modules of functions written as Python: a class of them, or the text of one."""

from __future__ import annotations

import inspect
import itertools
import linecache
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from slipway.errors import ModelError
from slipway.ir.function import IRModule, PrimFunc
from slipway.script import tir

_TEXTS = itertools.count()
_ATTRS = "__module_attrs__"  # the name under which a class keeps those of its module


def ir_module(given: type | None = None, **_: Any) -> Any:
    """Class decorator: return the functions of a class, each made by ``T.prim_func``, as a module.

    It takes options in parentheses, and has none.  Raises ModelError for a class without any.
    """
    if given is None:
        return ir_module
    functions = {k: f for k, f in vars(given).items() if isinstance(f, PrimFunc)}
    if not functions:
        raise ModelError(f"the class {given.__name__} has no function decorated with @T.prim_func")
    return IRModule(tuple(functions.items()), vars(given).get(_ATTRS, ()))


def module_attrs(attrs: Mapping[str, Any]) -> None:
    """Give the module whose class this is called in attributes: ``I.module_attrs({...})``."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    frame.f_back.f_locals[_ATTRS] = tuple(attrs.items())


def from_source(text: str, **names: Any) -> Any:
    """Return what the text of a decorated class or function makes: the last such in it.

    `names` are further values that the text uses.  Raises ModelError where it makes nothing.
    """
    file = f"<script {next(_TEXTS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {
        "__name__": file, "tvm": SimpleNamespace(script=_LANGUAGE), "T": tir, "I": _I, **names
    }  # fmt: skip
    before = set(scope)
    try:
        exec(compile(text, file, "exec"), scope)
    except SyntaxError as error:
        raise ModelError(f"script, line {error.lineno}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ModelError(
            "the script has expressions or statements inside each other, more than Python can "
            "read: give parts names of their own"
        ) from None
    made = [v for k, v in scope.items() if k not in before and isinstance(v, IRModule | PrimFunc)]
    if not made:
        raise ModelError("the script makes neither a module nor a function")
    return made[-1]


_I = SimpleNamespace(ir_module=ir_module, module_attrs=module_attrs)
_LANGUAGE = SimpleNamespace(ir_module=ir_module, tir=tir, ir=_I)  # what a printed module speaks of
