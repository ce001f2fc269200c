"""Applying the best of a log: kernels of models and templates find their choices in it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from contextvars import Token
from io import TextIOBase
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from slipway.autotvm.measure import MeasureInput, MeasureResult
from slipway.autotvm.record import (
    best_of,
    encode,
    key_of_template,
    load_from_file,
    trials_of,
    write_whole,
)
from slipway.autotvm.space import ConfigEntity
from slipway.autotvm.task.template import QUERIES, config_for, is_template, serialized
from slipway.backends.backend import compile_target
from slipway.backends.choices import using_records
from slipway.errors import TuningError
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.space import Candidate

Trial = tuple[MeasureInput, MeasureResult]
Log = str | PathLike | TextIOBase  # type: ignore[type-arg]  # isinstance takes it so
Trials = Iterable[Trial | Log]
_NAMED = 4  # templates in a warning
_log = logging.getLogger("slipway.autotvm")


class _Present:
    """The contexts that are entered, as one."""

    def query(self, target: Target | str | None, workload: tuple[Any, ...] | None) -> Any:
        """Return the configuration of a workload; in a running template its own."""
        del target
        name, *args = workload or ("",)
        return config_for(name, args)

    def update(self, target: Target | str, workload: tuple[Any, ...], cfg: Any) -> None:
        """Use a configuration for a workload, in the innermost context that takes one."""
        for query in QUERIES.get():
            context = getattr(query, "__self__", None)
            if isinstance(context, FallbackContext):
                context.update(target, workload, cfg)
                return
        raise TuningError(
            "no context that is entered takes configurations: enter a FallbackContext, or an "
            "ApplyConfig of the one to use"
        )


class _HasCurrent(type):
    @property
    def current(cls) -> _Present:
        """The contexts that are entered."""
        return _Present()


class DispatchContext(metaclass=_HasCurrent):
    """What knows configurations of templates; `current` asks all that are entered.

    A class of a script's own overrides ``_query_inside(target, workload)``, which returns None for
    what it does not know.
    """

    def __init__(self) -> None:
        self._entered: list[Token[Any]] = []

    def _query_inside(self, target: Target | str, workload: tuple[Any, ...]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} knows no configurations")

    def query(self, target: Target | str, workload: tuple[Any, ...]) -> Any:
        """Return the configuration of a workload, None where it knows none."""
        return self._query_inside(target, workload)

    def __enter__(self) -> DispatchContext:
        self._entered.append(QUERIES.set((self.query, *QUERIES.get())))
        return self

    def __exit__(self, *exception: object) -> None:
        QUERIES.reset(self._entered.pop())


class ApplyHistoryBest(metaclass=_HasCurrent):
    """A context in which the best trials of a log are used."""

    def __init__(self, records: Log | Trials | None) -> None:
        self._best: dict[str, tuple[MeasureInput, MeasureResult]] = {}
        self._trials: list[tuple[MeasureInput, MeasureResult]] = []
        self._stacks: list[ExitStack] = []
        if records is not None:
            self.load(records)

    def load(self, records: Log | Trials) -> None:
        """Take the trials of one more log, or of several: paths, open files and trials."""
        for one in [records] if isinstance(records, Log) else records:
            if isinstance(one, TextIOBase):
                self._trials += trials_of(one, str(getattr(one, "name", "the log")))
            elif isinstance(one, str | PathLike):
                self._trials += load_from_file(fspath(one))
            elif isinstance(one, tuple) and one and isinstance(one[0], MeasureInput):
                self._trials.append(one)
            elif isinstance(one, Iterable):  # logs, or their trials, together
                self.load(one)
            else:
                raise TuningError(f"ApplyHistoryBest takes logs and trials, not {one!r}")
        self._best = best_of(self._trials)

    def query(self, target: Target | str, workload: tuple[Any, ...]) -> Any:
        """Return the best configuration of a task's workload, None where the log has none."""
        name, *args = workload
        known = self._config(key_of_template(name, serialized(args), compile_target(target)))
        if known is not None:
            return known
        if not all(isinstance(arg, tuple | list) and len(arg) == 3 for arg in args):
            return None  # a template's arguments, and the log has no trial of it
        tensors = [f"{dtype}[{', '.join(map(str, shape))}]" for _, shape, dtype in args]
        for inp, _ in self._best.values():
            if inp.task.name == name and list(inp.task.args) == tensors:
                return inp.config
        return None

    @property
    def best_by_targetkey(self) -> dict[tuple[str, tuple[Any, ...]], Trial]:
        """The best trials by (key of the target, workload)."""
        return {
            (key, trial[0].task.workload): trial
            for trial in self._best.values() for key in trial[0].target.keys
        }  # fmt: skip

    @property
    def best_by_model(self) -> dict[tuple[str, tuple[Any, ...]], Trial]:
        """The best trials by (model of the target, workload)."""
        return {(i.target.model, i.task.workload): (i, r) for i, r in self._best.values()}

    def _config(self, key: str) -> ConfigEntity | None:
        found = self._best.get(key)
        return found[0].config if found is not None else None

    def _tell_unused(self) -> None:
        """Say that lines of classic TVM's kernels change nothing: their templates are not here."""
        tasks = [i.task for i, _ in self._best.values() if not isinstance(i.config, Candidate)]
        names = sorted({task.name for task in tasks if not is_template(task.name)})
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            _log.warning(
                "the log has trials of %s%s: no template of that name is here, and they change "
                "nothing. A model's kernels are chosen from the target's description; slipway tune "
                "or a search of its tasks writes lines that are used",
                ", ".join(names[:_NAMED]), more,
            )  # fmt: skip

    def __enter__(self) -> ApplyHistoryBest:
        self._tell_unused()
        stack = ExitStack()
        folder = stack.enter_context(tempdir())
        kernels = [t for t in self._best.values() if isinstance(t[0].config, Candidate)]
        if kernels:
            path = Path(folder.path) / "best.records"
            write_whole(path, (encode(*t) for t in kernels))
            stack.enter_context(using_records(str(path)))
        token = QUERIES.set((self.query, *QUERIES.get()))
        stack.callback(QUERIES.reset, token)
        self._stacks.append(stack)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stacks.pop().close()


class ApplyConfig(DispatchContext):
    """A context in which every template uses one configuration (classic)."""

    def __init__(self, config: ConfigEntity) -> None:
        super().__init__()
        self.config = config

    def _query_inside(self, target: Target | str, workload: tuple[Any, ...]) -> ConfigEntity:
        del target, workload
        return self.config


class FallbackContext(DispatchContext):
    """A context without records, whose class may choose the configuration of a workload (classic).

    A class of it overrides `_query_inside`; None is what the template itself falls back to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[Any, Any] = {}

    def _query_inside(self, target: Target | str, workload: tuple[Any, ...]) -> Any:
        return self.memory.get((str(target), workload))

    def clear_cache(self, target: Target | str, workload: tuple[Any, ...]) -> None:
        """Forget the configuration of a workload."""
        self.memory.pop((str(target), workload), None)

    def update(self, target: Target | str, workload: tuple[Any, ...], cfg: ConfigEntity) -> None:
        """Use a configuration for a workload."""
        self.memory[str(target), workload] = cfg

    def __enter__(self) -> FallbackContext:
        self._entered.append(QUERIES.set((self.query,)))
        return self


def clear_fallback_cache(target: Target | str, workload: tuple[Any, ...]) -> None:
    """Forget what a context took for a workload; without one nothing is kept."""
    for query in QUERIES.get():
        context = getattr(query, "__self__", None)
        if isinstance(context, FallbackContext):
            context.clear_cache(target, workload)


def apply_history_best(records: Log | Trials | None) -> ApplyHistoryBest:
    """Return the context in which `relay.build` and templates use the best of a log, or several."""
    return ApplyHistoryBest(records)
