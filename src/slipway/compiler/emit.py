"""`build_module`: target-ready PrimFuncs to a `CompiledModule`, through the target's backend."""

from __future__ import annotations

from collections.abc import Mapping

from slipway.backends.backend import backend_of
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.names import check_names
from slipway.errors import CodegenError
from slipway.ir.function import IRModule, PrimFunc
from slipway.target import Target
from slipway.version import VERSION

COMPILER = f"slipway {VERSION}"


def build_module(
    module: IRModule | PrimFunc | Mapping[str, PrimFunc], target: Target, entry: str | None = None
) -> CompiledModule:
    """Compile loop functions for a target.

    The functions are exported under their names in the module; `entry` (by default the first) is
    the one that calling the loaded module runs.  Raises CodegenError for what the target's
    generator cannot express, a name that no symbol can have, or a module without functions, and
    TargetError without a backend.
    """
    functions = _functions_of(module)
    if not functions:
        raise CodegenError("there is nothing to compile: the module has no loop function")
    first = entry if entry is not None else next(iter(functions))
    if first not in functions:
        raise CodegenError(f"the entry {first!r} is not a function of the module")
    backend = backend_of(target, "kernels")
    check_names(functions, target)
    return backend.emit(functions, target, first, COMPILER)


def _functions_of(module: IRModule | PrimFunc | Mapping[str, PrimFunc]) -> dict[str, PrimFunc]:
    if isinstance(module, PrimFunc):
        return {module.name: module}
    pairs = module.items()
    return {str(name): func for name, func in pairs if isinstance(func, PrimFunc)}
