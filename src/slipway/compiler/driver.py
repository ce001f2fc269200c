"""`lower` and `build`: the way from a te schedule to a module that can be called or exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway import te
from slipway.arguments import items_of, text_of
from slipway.backends.backend import backend_of, compile_target
from slipway.compiler.artifact.system_library import with_runtime
from slipway.compiler.emit import build_module
from slipway.compiler.operator_module import OperatorModule
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir.function import IRModule, PrimFunc
from slipway.relay.backend import Runtime
from slipway.target import Target
from slipway.transform.loop.pipeline import run_pipeline


def lower(
    inputs: te.Schedule | PrimFunc | IRModule,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """Return the loops of a schedule as a module that prints readably.

    `args` are the function's parameters in order: tensors, variables, buffers.  With `simple_mode`
    the loops are left as te made them, many-dimensional and not yet vectorised; else they have
    been through the whole pipeline.  A PrimFunc or IRModule goes through the pipeline alone.
    Raises ScheduleError or LoweringError.
    """
    functions = _functions(inputs, args, name, binds)
    if not simple_mode:
        functions = {key: run_pipeline(func) for key, func in functions.items()}
    return IRModule.from_functions(functions)


def schedule_to_module(
    sch: te.Schedule,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
) -> IRModule:
    """Return the loops of a schedule before any pass of loops, as `lower` begins with them."""
    if not isinstance(sch, te.Schedule):
        raise ArgumentTypeError(f"schedule_to_module takes a te schedule, not {sch!r}")
    return IRModule.from_functions(_functions(sch, args, name, binds))


def build(
    inputs: te.Schedule | PrimFunc | IRModule,
    args: Sequence[Any] | Target | str | None = None,
    target: Target | str | Mapping[str, Any] | None = None,
    target_host: Target | str | None = None,
    runtime: Any = None,
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
) -> OperatorModule:
    """Compile a schedule (or lowered functions) for `target`.

    A module or function needs no `args`: a target in their place, ``build(mod, "llvm")``, is the
    target.  Without one, that of ``with Target(...):`` or "llvm".  `target_host` is that of the
    code around a GPU's kernels.  Every `runtime` (relay.backend.Runtime) gives the same code; with
    "system-lib" a saved object lists its functions.  The module runs in this process if the target
    is this machine; otherwise export it.  Raises TargetError, ScheduleError, LoweringError or
    CodegenError.
    """
    Runtime.checked(runtime)
    if isinstance(args, Target | str | Mapping):
        if target is not None:
            raise ArgumentValueError(
                f"build got {args!r} in the place of `args`, and target={target!r} besides: give "
                "one target"
            )
        args, target = None, args
    chosen = compile_target(target, target_host, "kernels")
    ready = loops_for(inputs, args, chosen, name, binds)
    return OperatorModule(with_runtime(build_module(ready, chosen), runtime))


def loops_for(
    inputs: te.Schedule | PrimFunc | IRModule,
    args: Sequence[Any] | None,
    target: Target,
    name: str = "main",
    binds: Mapping[Any, Any] | None = None,
) -> dict[str, PrimFunc]:
    """Return by name the loops that the code generator of `target` takes."""
    functions = _functions(inputs, args, name, binds)
    passes = backend_of(target).loop_passes(target)
    return {key: run_pipeline(func, target, passes=passes) for key, func in functions.items()}


def _functions(
    inputs: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None
) -> dict[str, PrimFunc]:
    if isinstance(inputs, te.Schedule):
        if args is None:
            raise ArgumentValueError(
                "a schedule needs `args`: the function's tensors in order, for example "
                "build(s, [A, B], target='llvm')"
            )
        text_of(name, "the name of the function", "'main'")
        order = items_of(args, "`args`", "[A, B]: the function's tensors in order")
        if binds is not None and not isinstance(binds, Mapping):
            raise ArgumentTypeError(f"binds is {binds!r}; write a table, {{A: buffer}}")
        return {name: te.lower(inputs, order, name=name, binds=dict(binds or {}))}
    if isinstance(inputs, PrimFunc):
        return {str(inputs.attr("global_symbol", name)): inputs}
    if isinstance(inputs, IRModule):
        loops = {key: func for key, func in inputs.items() if isinstance(func, PrimFunc)}
        if len(loops) < len(inputs.functions):
            raise ArgumentValueError("the module holds graphs; compile it with relay.build")
        return loops
    if isinstance(inputs, (list, tuple)) and inputs:  # functions that were lowered one by one
        found = [_functions(one, args, name, binds) for one in inputs]
        merged = {key: func for one in found for key, func in one.items()}
        if len(merged) < sum(map(len, found)):
            raise ArgumentValueError(
                "two of the functions have one name: give each its own, lower(s, args, name='f')"
            )
        return merged
    other = "; slipway.compile reads model files" if isinstance(inputs, str | Path) else ""
    raise ArgumentTypeError(
        f"cannot build a {type(inputs).__name__}: give a te schedule with its args, a PrimFunc, or "
        f"an IRModule{other}"
    )
