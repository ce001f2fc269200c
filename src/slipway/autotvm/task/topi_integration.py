"""Templates in two functions (classic): one computes, one schedules what was computed.

::

    @autotvm.register_topi_compute("my_conv.x86")
    def my_conv(cfg, data, kernel, strides):
        ...

    @autotvm.register_topi_schedule("my_conv.x86")
    def schedule_my_conv(cfg, outs):
        ...

Both are called without `cfg`, which is the best configuration that is known for the arguments of
the first; ``autotvm.task.create("my_conv.x86", args, target)`` is their task.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from slipway import te
from slipway.autotvm.space import ConfigEntity, ConfigSpace
from slipway.autotvm.task.template import args_to_workload, config_for, register
from slipway.errors import ArgumentTypeError, TuningError
from slipway.te.operation import PlaceholderOp

_COMPUTES: dict[str, Callable[..., Any]] = {}
_SCHEDULES: dict[str, Callable[..., Any]] = {}
# What was computed -> of which workload, by which configuration.
_MADE: WeakKeyDictionary[te.Operation, tuple[tuple[Any, ...], ConfigSpace | ConfigEntity]] = (
    WeakKeyDictionary()
)


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Return what makes ``f(cfg, *args)`` the computation of a template, called as ``f(*args)``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise ArgumentTypeError(
                    f"the template {task_name!r} takes its arguments by position, as they are "
                    f"what a log knows it by; by name it was given {', '.join(kwargs)}"
                )
            config = config_for(task_name, args)
            made = function(config, *args)
            for tensor in _tensors(made):
                _MADE[tensor.op] = args_to_workload(args, task_name), config
            return made

        _COMPUTES[task_name] = call
        _pair(task_name)
        return call

    return decorate if func is None else decorate(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Return what makes ``f(cfg, outs)`` the schedule of a template, called as ``f(outs)``.

    `outs` are what its computation returned, or stages that follow it.  Raises TuningError where
    they hold nothing of it.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(outs: Any, *args: Any, **kwargs: Any) -> Any:
            found = _made_by(_tensors(outs), task_name)
            if found is None:
                raise TuningError(
                    f"the schedule of the template {task_name!r} was given nothing that its "
                    "computation made: decorate that with "
                    f"@autotvm.register_topi_compute({task_name!r}), and call it before"
                )
            return function(found[1], outs, *args, **kwargs)

        _SCHEDULES[task_name] = call
        _pair(task_name)
        return call

    return decorate if func is None else decorate(func)


def get_workload(
    outs: te.Tensor | Sequence[te.Tensor], task_name: str | None = None
) -> tuple[Any, ...] | None:
    """Return the workload of what a template computed, or of what comes before; None: of none."""
    found = _made_by(_tensors(outs), task_name)
    return None if found is None else found[0]


def _pair(task_name: str) -> None:
    """Make the template of both functions, once they are there."""
    if task_name not in _COMPUTES or task_name not in _SCHEDULES:
        return

    def both(*args: Any) -> tuple[te.Schedule, list[Any]]:
        outs = _tensors(_COMPUTES[task_name](*args))
        inputs = list(dict.fromkeys(_inputs(outs)))
        return _SCHEDULES[task_name](outs), [*outs, *inputs]

    register(task_name, both)


def _tensors(made: Any) -> list[te.Tensor]:
    return [made] if isinstance(made, te.Tensor) else list(made)


def _before(tensors: Sequence[te.Tensor]) -> Iterable[te.Operation]:
    """Yield the operations of tensors and of all that they read, the first computed first."""
    seen: set[te.Operation] = set()
    waiting = [(t.op, False) for t in reversed(tensors)]
    while waiting:
        op, is_read = waiting.pop()
        if is_read:
            yield op
        elif op not in seen:
            seen.add(op)
            waiting += [(op, True), *((t.op, False) for t in reversed(op.input_tensors))]


def _made_by(tensors: Sequence[te.Tensor], task_name: str | None) -> Any:
    for op in _before(tensors):
        found = _MADE.get(op)
        if found is not None and task_name in (None, found[0][0]):
            return found
    return None


def _inputs(tensors: Sequence[te.Tensor]) -> list[te.Tensor]:
    return [op.output(0) for op in _before(tensors) if isinstance(op, PlaceholderOp)]
