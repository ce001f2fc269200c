"""Templates: functions that schedule a computation by knobs, and their tasks."""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import islice
from typing import Any

from slipway import te
from slipway.autotvm.entities import InstantiationError
from slipway.autotvm.env import GLOBAL_SCOPE
from slipway.autotvm.record import hashable, key_of_template
from slipway.autotvm.space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from slipway.backends.backend import compile_target
from slipway.errors import ArgumentTypeError, SlipwayError, TuningError, did_you_mean
from slipway.ir.expr import Add, Div, IntImm, Max, Min, Mul, ProducerLoad, Reduce, Sub
from slipway.ir.node import Node
from slipway.ir.visit import children
from slipway.target import Target
from slipway.te.operation import ComputeOp
from slipway.tuning.schedules.scheduled import ScheduledTask, type_of
from slipway.tuning.space import Candidate, Choices

Template = Callable[..., tuple[te.Schedule, list[Any]]]
FIRST = 64  # configurations among which one has to be legal
_log = logging.getLogger("slipway.autotvm")
_TEMPLATES: dict[str, Template] = {}
_CONFIG: ContextVar[ConfigSpace | ConfigEntity | None] = ContextVar("configuration", default=None)
# What finds the configuration of (target, (template, *arguments)): contexts, from the inside out.
Query = Callable[[Target | str, tuple[Any, ...]], ConfigEntity | None]
QUERIES: ContextVar[tuple[Query, ...]] = ContextVar("histories in use", default=())


def get_config() -> ConfigSpace | ConfigEntity:
    """Return the configuration that the running template is to use.

    Outside of a template it is one of its own, in which each knob has its first choice.
    """
    config = _CONFIG.get()
    return FallbackConfigEntity() if config is None else config


def template(task_name: str | Template) -> Any:
    """Return what makes a function a template: one that asks `get_config` how to schedule.

    Without a name, as ``@autotvm.template``, it is called as the function is.

    It returns (schedule, arguments).  Called by itself it uses the best configuration of
    ``with apply_history_best(log)``, or the first of its space.
    """
    if callable(task_name):
        return template(task_name.__name__)(task_name)

    def decorate(function: Template) -> Template:
        _TEMPLATES[task_name] = function

        @functools.wraps(function)
        def call(*args: Any) -> tuple[te.Schedule, list[Any]]:
            if _CONFIG.get() is not None:  # inside of another template, whose knobs these are too
                return function(*args)
            with _using(config_for(task_name, args)):
                return function(*args)

        return call

    return decorate


def config_for(task_name: str, args: Sequence[Any]) -> ConfigSpace | ConfigEntity:
    """Return the configuration of a template with arguments.

    That of the running task, else the best of the logs in use, else one in which each knob has its
    first choice.
    """
    running = _CONFIG.get()
    if running is not None:
        return running
    for query in QUERIES.get():
        config = query(compile_target(None), (task_name, *args))
        if config is not None:
            return config
    if not GLOBAL_SCOPE.silent:
        _log.warning(
            "the log has no configuration of %s%s for %s: the first of its space is used",
            task_name, tuple(args), compile_target(None),
        )  # fmt: skip
    return FallbackConfigEntity()


def register(task_name: str, function: Template) -> None:
    """Let a function be the template of a name."""
    _TEMPLATES[task_name] = function


def is_template(name: str) -> bool:
    """Return whether a function is registered as the template `name`."""
    return name in _TEMPLATES


def create(
    task_name: str | Callable[..., Any],
    args: Sequence[Any],
    target: Target | str,
    target_host: Target | str | None = None,
    template_key: str | None = None,
) -> TemplateTask:
    """Return the task of a template, given by its name or itself, with arguments.

    Raises TuningError for an unknown name; `template_key` says nothing here.
    """
    if callable(task_name):
        known = {function: name for name, function in _TEMPLATES.items()}
        plain = getattr(task_name, "__wrapped__", task_name)
        task_name = known.get(plain, getattr(plain, "__name__", "?"))
    if task_name not in _TEMPLATES:
        raise TuningError(
            f"there is no template {task_name!r}; @autotvm.template(name) makes one."
            f"{did_you_mean(task_name, _TEMPLATES)}"
        )
    return TemplateTask(task_name, tuple(args), compile_target(target, target_host))


class TemplateTask(ScheduledTask):
    """A template with arguments, for a target; `config_space` is what it defines."""

    def __init__(self, name: str, args: tuple[Any, ...], target: Target) -> None:
        self.name, self.target = name, target
        self.args = tuple(hashable(serialized(a)) if isinstance(a, te.Tensor) else a for a in args)
        self.kwargs: dict[str, Any] = {}
        self.key = key_of_template(name, serialized(args), target)
        self.workload = (name, *self.args)
        self.config_space = ConfigSpace()
        schedule, _ = self._run(self.config_space)
        self.flop = self.config_space.flop or _flop(schedule)

    @cached_property
    def space(self) -> Choices:
        """The space for a search.  Raises the first error where no configuration is legal."""
        first: SlipwayError | None = None
        known = filter(self.config_space.is_index_valid, range(self.config_space.range_length))
        for index in islice(known, FIRST):
            try:
                self.lowered(self.config_space.candidate(index))
            except SlipwayError as error:
                first = first or error
            else:
                return self.config_space.choices(index)
        raise first or TuningError(f"multi_filter of the template {self.name!r} refuses everything")

    @property
    def head(self) -> dict[str, Any]:
        """What a line of a log begins with."""
        return {"input": [str(self.target), self.name, serialized(self.args), {}]}

    def instantiate(self, config: ConfigEntity) -> tuple[te.Schedule, list[Any]]:
        """Return (schedule, arguments) of a configuration."""
        return self._run(config)

    def config_of(self, candidate: Candidate) -> ConfigEntity:
        """Return what a search chose as a configuration."""
        return self.config_space.get(self.config_space.index_of(candidate))

    def candidate_of(self, config: ConfigEntity) -> Candidate | None:
        """Return a logged configuration as the search knows it, None if the space has it not."""
        if not self.config_space.is_index_valid(config.index):
            return None
        same = self.config_space.get(config.index) == config
        return self.config_space.candidate(config.index) if same else None

    def scheduled(self, candidate: Candidate) -> tuple[te.Schedule, list[Any]]:
        """Return (schedule, arguments) of a candidate.

        Raises InstantiationError with what the template says against it.
        """
        config = self.config_of(candidate)
        made = self._run(config)
        if not config.valid():
            raise InstantiationError(
                f"the template {self.name!r} refuses {config}: {'; '.join(config.errors)}"
            )
        return made

    def _run(self, config: ConfigSpace | ConfigEntity) -> tuple[te.Schedule, list[Any]]:
        with _using(config), self.target:
            schedule, args = _TEMPLATES[self.name](*deserialize_args(self.args))
        return schedule, list(args)

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={{}})"


@contextmanager
def _using(config: ConfigSpace | ConfigEntity) -> Iterator[None]:
    token = _CONFIG.set(config)
    try:
        yield
    finally:
        _CONFIG.reset(token)


def serialized(args: Any) -> Any:
    """Return arguments as JSON has them.  Raises TuningError for what it has not."""

    def plain(value: Any) -> Any:
        if isinstance(value, te.Tensor):
            return ["TENSOR", list(type_of(value).shape), value.dtype]
        if isinstance(value, IntImm):
            return int(value)
        raise ArgumentTypeError(type(value).__name__)

    try:
        return json.loads(json.dumps(args, default=plain))
    except (TypeError, ValueError) as error:
        raise TuningError(
            f"the arguments {args!r} of a template are not numbers, words, tensors and lists of "
            f"them ({error})"
        ) from None


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments as a tuple that can be a dictionary's key: tensors by shape and type.

    Raises TuningError for what a template's arguments cannot be.
    """
    return tuple(map(hashable, serialized(list(args))))


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Return the arguments that `serialize_args` made a tuple of, with placeholders for tensors."""
    return [
        te.placeholder(arg[1], dtype=arg[2])
        if isinstance(arg, tuple | list) and len(arg) == 3 and arg[0] == "TENSOR"
        else arg
        for arg in args
    ]


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """Return the workload of arguments, which begins with the task's name where it is given."""
    return (*([task_name] if task_name is not None else []), *serialize_args(args))


def compute_flop(sch: te.Schedule) -> float:
    """Return the arithmetic operations of a schedule's computation.

    Raises TuningError where there are none, or sizes are open.
    """
    found = _flop(sch)
    if not found:
        raise TuningError(
            "compute_flop: the computation has no arithmetic that can be counted; say how much it "
            "does with cfg.add_flop(...) in the template"
        )
    return found


def _flop(schedule: te.Schedule) -> float:
    """Return the arithmetic operations of a schedule's stages, 0 where sizes are open."""
    total = 0.0
    for stage in schedule.stages:
        op = stage.op
        if not isinstance(op, ComputeOp):
            continue
        extents = [axis.extent for axis in (*op.axis, *op.reduce_axis)]
        if not all(isinstance(n, int | IntImm) for n in extents):
            return 0.0
        first = op.body[0]
        parts = (
            [first] if not isinstance(first, Reduce) else [*first.source, *first.combiner.result]
        )
        steps = sum(map(_steps, parts))
        total += steps * math.prod(int(n) for n in extents)  # type: ignore[call-overload]
    return total


def _steps(value: Node) -> int:
    """Return the arithmetic operations of an expression, but for those of indices."""
    if isinstance(value, ProducerLoad):
        return 0
    own = isinstance(value, Add | Sub | Mul | Div | Max | Min)
    return own + sum(map(_steps, children(value)))
