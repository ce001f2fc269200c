"""Applying the best of a log: kernels of models and templates find their choices in it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from contextvars import Token
from pathlib import Path
from typing import Any

from slipway.autotvm.measure import MeasureInput, MeasureResult
from slipway.autotvm.record import best_of, encode, key_of_template, load_from_file, write_whole
from slipway.autotvm.space import ConfigEntity
from slipway.autotvm.task.template import QUERIES, serialized
from slipway.backends.backend import compile_target
from slipway.backends.choices import using_records
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.space import Candidate

Trials = Iterable[tuple[MeasureInput, MeasureResult]]


class ApplyHistoryBest:
    """A context in which the best trials of a log are used."""

    def __init__(self, records: str | Path | Trials | None) -> None:
        self._best: dict[str, tuple[MeasureInput, MeasureResult]] = {}
        self._trials: list[tuple[MeasureInput, MeasureResult]] = []
        self._stacks: list[ExitStack] = []
        if records is not None:
            self.load(records)

    def load(self, records: str | Path | Trials) -> None:
        """Take the trials of one more log."""
        self._trials += load_from_file(records) if isinstance(records, str | Path) else records
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

    def _config(self, key: str) -> ConfigEntity | None:
        found = self._best.get(key)
        return found[0].config if found is not None else None

    def __enter__(self) -> ApplyHistoryBest:
        stack = ExitStack()
        folder = stack.enter_context(tempdir())
        kernels = [t for t in self._best.values() if isinstance(t[0].config, Candidate)]
        if kernels:
            path = Path(folder.path) / "best.records"
            write_whole(path, (encode(*t) for t in kernels))
            stack.enter_context(using_records(str(path)))
        token = QUERIES.set((self._config, *QUERIES.get()))
        stack.callback(QUERIES.reset, token)
        self._stacks.append(stack)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stacks.pop().close()


class ApplyConfig:
    """A context in which every template uses one configuration (classic)."""

    def __init__(self, config: ConfigEntity) -> None:
        self.config = config
        self._tokens: list[Token[Any]] = []

    def query(self, target: Target | str, workload: tuple[Any, ...]) -> ConfigEntity:
        """Return the configuration, for any workload."""
        del target, workload
        return self.config

    def __enter__(self) -> ApplyConfig:
        self._tokens.append(QUERIES.set((lambda _: self.config, *QUERIES.get())))
        return self

    def __exit__(self, *exception: object) -> None:
        QUERIES.reset(self._tokens.pop())


def apply_history_best(records: str | Path | Trials | None) -> ApplyHistoryBest:
    """Return the context in which `relay.build` and templates use the best of a log."""
    return ApplyHistoryBest(records)
