"""PassContext: which passes run, with which options, and who watches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from slipway.transform.config import CONFIG, check_config
from slipway.transform.names import check_names

_PER_THREAD = threading.local()


def _entered() -> list[PassContext]:
    """Return the contexts that this thread is in, the innermost last."""
    stack: list[PassContext] = _PER_THREAD.__dict__.setdefault("stack", [])
    return stack


class PassContext:
    """Options for all passes that this thread runs inside ``with PassContext(...):``.

    `opt_level` 0 to 4 turns groups of graph passes on; `required_pass` and `disabled_pass` name
    passes to force or leave out; `config` maps keys of transform.config to values; `instruments`
    are called around every pass.  Raises LoweringError for an unknown key or pass, and for a value
    that would have no effect.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        check_config(config or {})
        self.opt_level = opt_level
        self.required_pass = check_names(required_pass or (), "required_pass")
        self.disabled_pass = check_names(disabled_pass or (), "disabled_pass")
        self.instruments = tuple(instruments or ())
        self.config = dict(config or {})

    def __enter__(self) -> PassContext:
        self._enter_instruments()
        _entered().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _entered().remove(self)
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
        self.instruments = tuple(instruments)
        self._enter_instruments()

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context of this thread, or the thread's default one."""
        entered = _entered()
        if entered:
            return entered[-1]
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


def _call(instrument: Any, method: str, *arguments: Any) -> Any:
    function = getattr(instrument, method, None)
    return function(*arguments) if function is not None else None
