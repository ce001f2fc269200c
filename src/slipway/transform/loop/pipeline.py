"""The pipeline: from the loops that te makes to loops that a code generator takes.

`PIPELINE` is the list, in order; `run_pipeline` applies it, calling the instruments of the
PassContext around every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slipway.errors import LoweringError
from slipway.ir.function import PrimFunc
from slipway.ir.visit import nesting
from slipway.transform.context import PassContext
from slipway.transform.loop.cut_loops import cut_loops
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.hoist_choice import hoist_choice
from slipway.transform.loop.inject_double_buffer import inject_double_buffer
from slipway.transform.loop.inject_prefetch import inject_prefetch
from slipway.transform.loop.instrument_bounds import instrument_bounds
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.lower_custom_calls import lower_custom_calls
from slipway.transform.loop.remove_assertions import remove_assertions
from slipway.transform.loop.remove_unused import remove_unused
from slipway.transform.loop.serialize_threads import serialize_threads
from slipway.transform.loop.simplify import simplify
from slipway.transform.loop.storage_rewrite import storage_rewrite
from slipway.transform.loop.transpose_loads import transpose_loads
from slipway.transform.loop.unroll_loop import unroll_loop
from slipway.transform.loop.vectorize_loop import vectorize_loop

Pass = Callable[[PrimFunc], PrimFunc]

PIPELINE: tuple[Pass, ...] = (
    serialize_threads,
    lower_custom_calls,
    flatten_storage,
    inject_prefetch,
    inject_double_buffer,
    remove_unused,
    storage_rewrite,
    cut_loops,
    loop_partition,
    hoist_choice,
    vectorize_loop,
    unroll_loop,
    transpose_loads,
    simplify,
    remove_unused,
)


def run_pipeline(
    func: PrimFunc,
    target: Any = None,
    config: Mapping[str, Any] | None = None,
    instruments: Iterable[Any] = (),
) -> PrimFunc:
    """Return `func` ready for a code generator.

    `config` and `instruments` are added to those of the current PassContext.  An instrument may
    define ``should_run(func, info)``, ``run_before_pass(func, info)`` and
    ``run_after_pass(func, info)``; `info.name` is the pass's name.
    """
    outer = PassContext.current()
    if (config or {}).get("tir.noalias", outer.option("tir.noalias", True)) is False:
        func = func.with_attr("noalias", False)
    if target is not None and func.attr("target") is None:
        func = func.with_attr("target", target)
    if not config and not instruments:
        return _run(func, outer)
    context = PassContext(
        outer.opt_level,
        outer.required_pass,
        outer.disabled_pass,
        (*outer.instruments, *instruments),
        {**outer.config, **(config or {})},
    )
    with context:
        return _run(func, context)


class PassInfo:
    """What an instrument is told about a pass."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.opt_level = 0
        self.required: list[str] = []

    def __repr__(self) -> str:
        return f"PassInfo({self.name})"


def _run(func: PrimFunc, context: PassContext) -> PrimFunc:
    try:
        return _run_steps(func, context)
    except RecursionError:
        raise LoweringError(
            f"function {func.name!r} has {nesting(func.body)} expressions or statements inside "
            "each other, more than the passes can follow: keep parts in temporaries, or in "
            "functions of their own"
        ) from None


def _run_steps(func: PrimFunc, context: PassContext) -> PrimFunc:
    for step in _with_extra(context):
        name = getattr(step, "__name__", str(step))
        if not context.is_enabled(name):
            continue
        if not context.instruments:
            func = step(func)
            continue
        info = PassInfo(name)
        if all(_ask(i, "should_run", func, info) is not False for i in context.instruments):
            for instrument in context.instruments:
                _ask(instrument, "run_before_pass", func, info)
            func = step(func)
            for instrument in context.instruments:
                _ask(instrument, "run_after_pass", func, info)
    return func


def _with_extra(context: PassContext) -> list[Pass]:
    """The pipeline with the passes that options ask for."""
    steps: list[Pass] = []
    if context.option("tir.disable_assert"):
        steps.append(remove_assertions)
    if context.option("tir.instrument_bound_checkers"):
        steps.append(instrument_bounds)
    extra = context.option("tir.add_lower_pass") or ()
    behind = {0: "flatten_storage", 1: "unroll_loop"}
    for step in PIPELINE:
        steps.append(step)
        steps += [p for phase, p in extra if behind.get(phase) == step.__name__]
    return steps + [p for phase, p in extra if phase not in behind]


def _ask(instrument: Any, method: str, *arguments: Any) -> Any:
    function = getattr(instrument, method, None)
    return function(*arguments) if function is not None else None
