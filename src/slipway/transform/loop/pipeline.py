"""The pipeline: from the loops that te makes to loops that a code generator takes.

`PIPELINE` is the list, in order, and `run_pipeline` runs it.  A backend may have a list of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from slipway.ir.function import PrimFunc
from slipway.transform.context import PassContext
from slipway.transform.loop.cut_loops import cut_loops
from slipway.transform.loop.flatten_storage import flatten_storage, not_flat
from slipway.transform.loop.hoist_choice import hoist_choice
from slipway.transform.loop.inject_double_buffer import inject_double_buffer
from slipway.transform.loop.inject_prefetch import inject_prefetch
from slipway.transform.loop.instrument_bounds import instrument_bounds
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.lower_blocks import has_blocks, lower_blocks
from slipway.transform.loop.lower_custom_calls import lower_custom_calls
from slipway.transform.loop.lower_custom_datatypes import lower_custom_datatypes
from slipway.transform.loop.remove_assertions import remove_assertions
from slipway.transform.loop.remove_unused import remove_unused
from slipway.transform.loop.serialize_threads import serialize_threads
from slipway.transform.loop.simplify import simplify
from slipway.transform.loop.storage_rewrite import storage_rewrite
from slipway.transform.loop.transpose_loads import transpose_loads
from slipway.transform.loop.unroll_loop import unroll_loop
from slipway.transform.loop.vectorize_loop import vectorize_loop
from slipway.transform.manager import Pass, Setting, always, is_ours, never_missed, run_passes

if TYPE_CHECKING:
    from slipway.target import Target

LoopPass = Callable[[PrimFunc], PrimFunc]


def loop_pass(
    run: LoopPass,
    applies: Callable[[Setting], bool] = always,
    missed: Callable[[PrimFunc], str] = never_missed,
) -> Pass:
    """Return a function over loops as a pass of its name."""
    return Pass(
        getattr(run, "__name__", str(run)),
        0,
        lambda func, setting: run(func),
        applies=applies,
        by_user=not is_ours(run),
        missed=missed,
    )


def reduce_over_threads(func: PrimFunc) -> PrimFunc:
    """Return `func` with the loops that its blocks reduce over, by threads, marked so."""
    if not has_blocks(func):
        return func
    from slipway.blocks import thread_reduction

    return thread_reduction.reduce_over_threads(func)


def _has_option(name: str) -> Callable[[Setting], bool]:
    return lambda setting: bool(setting.context.option(name))


# Before everything else: loops of blocks, and what options ask for.
BY_OPTION: tuple[Pass, ...] = (
    loop_pass(reduce_over_threads),
    loop_pass(lower_blocks),
    loop_pass(remove_assertions, _has_option("tir.disable_assert")),
    loop_pass(instrument_bounds, _has_option("tir.instrument_bound_checkers")),
)
PIPELINE: tuple[Pass, ...] = (
    loop_pass(serialize_threads),
    loop_pass(lower_custom_calls),
    loop_pass(lower_custom_datatypes),
    loop_pass(flatten_storage, missed=not_flat),
    loop_pass(inject_prefetch),
    loop_pass(inject_double_buffer),
    loop_pass(remove_unused),
    loop_pass(storage_rewrite),
    loop_pass(cut_loops),
    loop_pass(loop_partition),
    loop_pass(hoist_choice),
    loop_pass(vectorize_loop),
    loop_pass(unroll_loop),
    loop_pass(transpose_loads),
    loop_pass(simplify),
    loop_pass(remove_unused),
)
# Phase of the option "tir.add_lower_pass" -> the passes that its functions run before, whichever
# of them comes first: 0 loops as te made them, 1 flat storage, 2 loops cut, vectorized and
# unrolled.  Phase 3 comes after everything.
_PHASES = {
    0: ("serialize_threads",),
    1: ("inject_prefetch", "inject_double_buffer", "remove_unused", "cut_loops"),
    2: ("transpose_loads", "simplify"),
}


def run_pipeline(
    func: PrimFunc,
    target: Target | None = None,
    config: Mapping[str, Any] | None = None,
    instruments: Iterable[Any] = (),
    passes: Sequence[Pass] = PIPELINE,
) -> PrimFunc:
    """Return `func` ready for a code generator.

    `config` and `instruments` are added to those of the current PassContext.  An instrument may
    define ``should_run(func, info)``, ``run_before_pass(func, info)`` and
    ``run_after_pass(func, info)``; `info.name` is the pass's name.
    """
    context = PassContext.current()
    if config or instruments:
        context = PassContext(
            context.opt_level,
            context.required_pass,
            context.disabled_pass,
            (*context.instruments, *instruments),
            {**context.config, **(config or {})},
        )
    if context.option("tir.noalias", True) is False:
        func = func.with_attr("noalias", False)
    if target is not None and func.attr("target") is None:
        func = func.with_attr("target", target)
    steps = _with_extra(passes, context)
    entered = context is PassContext.current()  # where passes read their options
    with nullcontext() if entered else context:
        for _, result in run_passes(steps, func, Setting(target, context)):
            func = result
    return func


def _with_extra(passes: Sequence[Pass], context: PassContext) -> list[Pass]:
    """Return the passes with those that options ask for at their phases."""
    extra = [(phase, _own_pass(own)) for phase, own in context.option("tir.add_lower_pass") or ()]
    steps: list[Pass] = list(BY_OPTION)
    for step in passes:
        ready = [pair for pair in extra if step.name in _PHASES.get(pair[0], ())]
        steps += [own for _, own in ready]
        extra = [pair for pair in extra if pair not in ready]
        steps.append(step)
    return steps + [own for _, own in extra]


def _own_pass(own: Any) -> Pass:
    """Return a pass, or a function over loops, as a pass of the pipeline."""
    return own if isinstance(own, Pass) else loop_pass(own)
