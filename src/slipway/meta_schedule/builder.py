"""Builders (classic): where candidates are compiled.

A script may compile by itself: ``LocalBuilder().build([BuilderInput(mod, target)])``.  A builder of
its own derives from `PyBuilder`; a search of functions (`tune_tir`) then compiles with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TimedOut
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.backends.backend import compile_target
from slipway.compiler.driver import build as build_loops
from slipway.compiler.relay_build import build as build_relay
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.ir.function import IRModule, PrimFunc
from slipway.meta_schedule.utils import Described
from slipway.runtime.packed_func import get_global_func, replacing_functions
from slipway.target import Target
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.builders import local_builder


@dataclass(frozen=True)
class BuilderInput:
    """What is compiled, for which target; `params` are those of a model."""

    mod: IRModule
    target: Target | str
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class BuilderResult:
    """The library, or why there is none."""

    artifact_path: str | None
    error_msg: str | None = None


class Builder(Described):
    """Compiles candidates."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Return a result for each input."""
        raise NotAvailableError(f"{type(self).__name__} has no build(build_inputs)")

    @staticmethod
    def create(kind: object = "local", *args: Any, **kwargs: Any) -> Builder:
        """Return a builder: itself, or by its kind, of which there is one."""
        if isinstance(kind, Builder):
            return kind
        if kind != "local":
            raise ArgumentValueError(f"there is no builder {kind!r}; it is 'local'")
        return LocalBuilder(*args, **kwargs)


create = Builder.create


class PyBuilder(Builder):
    """A builder of a script's own: it has `build(build_inputs)`."""


@dataclass(frozen=True)
class LocalBuilder(Builder):
    """Compiles candidates here: in `max_workers` processes, or in this one where that is None.

    A candidate takes `timeout_sec` seconds at most.  ``f_build(mod, target, params)`` returns a
    module and ``f_export(module)`` the path of its library; both are functions, or names of
    registered ones, and `initializer` may register them.
    """

    max_workers: int | None = None
    timeout_sec: float = 30.0
    f_build: Callable[..., Any] | str | None = None
    f_export: Callable[..., Any] | str | None = None
    initializer: Callable[[], Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Raise ArgumentValueError for a function that nobody has registered."""
        if self.initializer is not None:
            with replacing_functions():
                self.initializer()
        self._function(self.f_build)
        self._function(self.f_export)

    @property
    def is_own(self) -> bool:
        """Whether a function of the script's compiles."""
        return self.f_build is not None or self.f_export is not None

    @cached_property
    def builder(self) -> EngineBuilder:
        """It as the engine's; its processes end with this object."""
        return local_builder(self.max_workers or 1, self.timeout_sec)

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Compile each input into a library in a folder of its own, which is the caller's."""
        return [self._result(one) for one in build_inputs]

    def _result(self, one: BuilderInput) -> BuilderResult:
        pool = ThreadPoolExecutor(1)  # a thread alone: what a script's function holds stays usable
        try:
            path = pool.submit(self._built, one).result(self.timeout_sec)
            return BuilderResult(str(path), None)
        except TimedOut:
            text = f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds"
            return BuilderResult(None, text)
        except Exception as error:  # of a function of the script's, too
            text = f"LocalBuilder: An exception occurred\n{type(error).__name__}: {error}"
            return BuilderResult(None, text)
        finally:
            pool.shutdown(wait=False)

    def _built(self, one: BuilderInput) -> str:
        target = compile_target(one.target)
        compiled = self._function(self.f_build) or _compiled
        export = self._function(self.f_export) or exported
        return str(export(compiled(one.mod, target, one.params)))

    def _function(self, given: Callable[..., Any] | str | None) -> Callable[..., Any] | None:
        if not isinstance(given, str):
            return given
        function: Callable[..., Any] | None = get_global_func(given, allow_missing=True)
        if function is None:
            raise ArgumentValueError(
                f"LocalBuilder: no function {given!r} is registered: register_func it, before or "
                "in `initializer`"
            )
        return function


def _compiled(mod: IRModule, target: Target, params: Mapping[str, Any] | None) -> Any:
    if any(isinstance(func, PrimFunc) for _, func in mod.items()):
        return build_loops(mod, target=target)
    return build_relay(mod, target, params=params)


def exported(module: Any) -> str:
    """Write a module as a library in a new folder and return its path."""
    path = Path(tempfile.mkdtemp(prefix="slipway-built-")) / "tvm_tmp_mod.tar"
    module.export_library(str(path))
    return str(path)


explain_all(globals(), ["LocalBuilder"], COMMON)
