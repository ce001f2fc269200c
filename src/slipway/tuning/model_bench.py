"""A whole model on a device, compiled with some choices and timed beside others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from slipway.backends.choices import using_records
from slipway.compiler.relay_build import build
from slipway.errors import RPCError
from slipway.ir.function import IRModule
from slipway.relay.expr import Function
from slipway.relay.interpret import interpret
from slipway.relay.open_dims import has_open
from slipway.relay.types import TensorType
from slipway.target import Target
from slipway.tuning.measure import differences, random_array
from slipway.tuning.records import Choice, write_choices
from slipway.tuning.runner import Runner
from slipway.tuning.session import Array, ModelSession, opened, twice
from slipway.tuning.space import Candidate


def is_timed_whole(module: IRModule) -> bool:
    """Return whether "main" takes tensors of fixed sizes, for which values can be made up."""
    main = module["main"]
    types = [p.checked_type for p in main.params] if isinstance(main, Function) else []
    return bool(types) and all(isinstance(t, TensorType) and not has_open(t) for t in types)


class ModelBench:
    """Times a model compiled with records, on one device; a context that ends the session."""

    def __init__(
        self,
        module: IRModule,
        target: Target,
        params: Mapping[str, Any],
        runner: Runner,
        folder: Path,
    ) -> None:
        self.module, self.target, self.params = module, target, dict(params)
        self.runner, self.folder = runner, folder
        main = module["main"]
        assert isinstance(main, Function)
        given = [p for p in main.params if p.name_hint not in self.params]
        types = {p.name_hint: p.checked_type for p in given}
        self.inputs = {
            name: random_array(t, i)
            for i, (name, t) in enumerate(types.items())
            if isinstance(t, TensorType)
        }
        self._session: ModelSession | None = None
        self._wanted: list[Array] | None = None
        self._number = 0

    def __enter__(self) -> ModelBench:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def build(self, choices: Iterable[Choice]) -> Path:
        """Compile the model with some choices; SlipwayError where one is refused."""
        self._number += 1
        path = self.folder / f"model_{self._number}{self.target.upload_suffix}"
        records = write_choices(path.with_suffix(".records"), choices)
        with using_records(str(records)):
            build(self.module, self.target, params=self.params).export_library(str(path))
        return path

    def times(self, paths: Mapping[Candidate, Path], rounds: int) -> dict[Candidate, list[float]]:
        """Return the seconds of a run with each candidate; RPCError when the device is lost."""
        session = self._open()
        try:
            times = session.times(paths, rounds)
        except RPCError:
            self.__exit__()
            raise
        session.keep(set(paths.values()))
        return times

    def verify(self, path: Path) -> str:
        """Return how the outputs on the device differ from the reference's; "" if not.

        Raises RPCError when the device is lost, and again on a new session.
        """
        if self._wanted is None:
            found = interpret(self.module, params=self.params, **self.inputs)
            self._wanted = [np.asarray(a) for a in (found if isinstance(found, tuple) else [found])]
        wanted = self._wanted
        return twice(lambda: self._difference(path, wanted))

    def difference(self, path: Path, beside: Path) -> str:
        """Return how one library's outputs are wrong where another's are right; "" if they are not.

        The reference, which takes its time, is asked where the two differ on the device.  Raises
        RPCError as `verify` does.
        """
        found = twice(lambda: self._difference(path, self._first(beside)))
        return found if found and self.verify(path) and not self.verify(beside) else ""

    def _first(self, path: Path) -> list[Array]:
        try:
            return list(next(iter(self._open().results(path))))
        except RPCError:
            self.__exit__()
            raise

    def _difference(self, path: Path, wanted: list[Array]) -> str:
        try:
            return next(filter(None, differences(self._open().results(path), wanted)), "")
        except RPCError:
            self.__exit__()
            raise

    def _open(self) -> ModelSession:
        if self._session is None:
            begin = partial(ModelSession, inputs=self.inputs)
            self._session = opened(self.runner, "the whole model", begin)
        return self._session
