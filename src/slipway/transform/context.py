"""PassContext: which passes run, with which options, and who watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slipway.entered import Entered
from slipway.errors import LoweringError
from slipway.transform.config import CONFIG, check_config
from slipway.transform.names import check_names

_PER_THREAD = threading.local()
_ENTERED: Entered[PassContext] = Entered("pass contexts")


class PassContext:
    """Options for all passes that a thread, or a task of asyncio, runs inside ``with``.

    `opt_level` 0 to 4 turns groups of graph passes on, more does what 4 does; `required_pass` and
    `disabled_pass` name passes to force or leave out; `config` maps keys of transform.config to
    values; `instruments` are called around every pass, and so is `trace`, of TVM up to 0.7:
    ``trace(node, info, is_before)``.  Raises LoweringError for an unknown key or pass, and for a
    value that would have no effect.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Callable[..., object] | None = None,
    ) -> None:
        check_config({} if config is None else config)
        if not isinstance(opt_level, int) or opt_level < 0:
            raise LoweringError(f"opt_level is a number from 0 to 4, got {opt_level!r}")
        self.opt_level = opt_level
        self.required_pass = _passes(required_pass, "required_pass")
        self.disabled_pass = _passes(disabled_pass, "disabled_pass")
        self.instruments = _instruments(() if instruments is None else instruments)
        if trace is not None:
            self.instruments += (_Tracing(trace),)
        self.config = dict({} if config is None else config)

    def __enter__(self) -> PassContext:
        self._enter_instruments()
        _ENTERED.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        if not _ENTERED.leave(self):
            raise LoweringError("a PassContext is left that this thread has not entered")
        self._exit_instruments(self.instruments)

    def _enter_instruments(self) -> None:
        """Let the instruments begin.  Where one fails, those before it end, and none is left."""
        begun: list[Any] = []
        try:
            for instrument in self.instruments:
                _call(instrument, "enter_pass_ctx")
                begun.append(instrument)
        except BaseException:
            self._exit_instruments(tuple(begun))
            self.instruments = ()
            raise

    def _exit_instruments(self, instruments: tuple[Any, ...]) -> None:
        """Let instruments end, in order.  Where one fails, none of the context's is left."""
        try:
            for instrument in instruments:
                _call(instrument, "exit_pass_ctx")
        except BaseException:
            self.instruments = ()
            raise

    def override_instruments(self, instruments: Iterable[Any]) -> None:
        """End this context's instruments and let others begin in their place, now."""
        self._exit_instruments(self.instruments)
        self.instruments = _instruments(instruments)
        self._enter_instruments()

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context of this thread or task, or the thread's default one."""
        found = _ENTERED.innermost()
        if found is not None:
            return found
        if not hasattr(_PER_THREAD, "default"):
            _PER_THREAD.default = PassContext()
        return _PER_THREAD.default  # type: ignore[no-any-return]

    @staticmethod
    def list_configs() -> dict[str, str]:
        """Return every config key with its meaning."""
        return {name: f"{key.kind}: {key.meaning}" for name, key in CONFIG.items()}

    def is_enabled(self, name: str) -> bool:
        """Return whether the pass `name` was not disabled."""
        return name not in self.disabled_pass

    def requires(self, name: str) -> bool:
        """Return whether the pass `name` runs whatever the opt_level and the instruments say."""
        return name in self.required_pass

    def option(self, key: str, default: Any = None) -> Any:
        """Return the config value of `key`."""
        return self.config.get(key, default)


_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class _Tracing:
    """A function that is called before and after each pass, as an instrument."""

    def __init__(self, function: Callable[..., object]) -> None:
        if not callable(function):
            raise LoweringError(f"trace is a function (module, info, is_before), got {function!r}")
        self.function = function

    def run_before_pass(self, node: Any, info: Any) -> None:
        self.function(node, info, True)

    def run_after_pass(self, node: Any, info: Any) -> None:
        self.function(node, info, False)


def _passes(given: Iterable[str] | None, option: str) -> frozenset[str]:
    return check_names(() if given is None else given, option)


def _instruments(given: Iterable[Any]) -> tuple[Any, ...]:
    """Return instruments; each has a method that is called.  Raises LoweringError."""
    if not isinstance(given, Iterable):
        raise LoweringError(f"instruments is a list, got {given!r}: [{given!r}]")
    found = tuple(given)
    for instrument in found:
        if isinstance(instrument, type) or not any(hasattr(instrument, m) for m in _METHODS):
            raise LoweringError(
                f"instruments: {instrument!r} is none; it has to be an object with one of the "
                f"methods {', '.join(_METHODS)}"
            )
    return found


def _call(instrument: Any, method: str, *arguments: Any) -> Any:
    function = getattr(instrument, method, None)
    return function(*arguments) if function is not None else None
