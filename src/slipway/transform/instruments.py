"""Instruments: what may watch the passes of a PassContext.

::

    timer = PassTimingInstrument()
    with PassContext(instruments=[timer, VerifyEachPass(), PassDumper(print)]):
        slipway.build(s, args)
        print(timer.render())

Any object may be one; of the methods of `PassInstrument` it needs only those it uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from slipway.transform.verify import VerifyEachPass

if TYPE_CHECKING:
    from slipway.ir.function import IRModule, PrimFunc
    from slipway.transform.manager import Pass


class PassInstrument:
    """Base of instruments: every method does nothing, and every pass runs."""

    def enter_pass_ctx(self) -> None:
        """Begin: the PassContext is entered, or this instrument was put into a running one."""

    def exit_pass_ctx(self) -> None:
        """End: the PassContext is left, or this instrument is taken out of it."""

    def should_run(self, mod: IRModule | PrimFunc, info: Pass) -> bool:
        """Return False to leave the pass `info` out; a required pass is not asked for."""
        return True

    def run_before_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Look at `mod` before the pass `info`, which has `name`, `opt_level`, `required`."""

    def run_after_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Look at what the pass `info` made."""


def pass_instrument(pi_cls: type | None = None) -> Any:
    """Class decorator: make a class with some of the methods an instrument."""

    def make(cls: type) -> type:
        if issubclass(cls, PassInstrument):
            return cls
        inner = {"__doc__": cls.__doc__, "__module__": cls.__module__}
        return type(cls.__name__, (cls, PassInstrument), inner)

    return make if pi_cls is None else make(pi_cls)


class PassTimer(PassInstrument):
    """Measures the time of every pass; `seconds` sums them by name, in order of first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._started: list[float] = []  # passes may run inside each other

    def run_before_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Start the clock."""
        self._started.append(time.perf_counter())

    def run_after_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Add what the pass took."""
        spent = time.perf_counter() - self._started.pop()
        self.seconds[info.name] = self.seconds.get(info.name, 0.0) + spent
        self.calls[info.name] = self.calls.get(info.name, 0) + 1

    def render(self) -> str:
        """Return a table: pass, calls, milliseconds, share."""
        total = sum(self.seconds.values()) or 1.0
        lines = [f"{'pass':<22}{'calls':>6}{'ms':>10}{'share':>8}"]
        for name, spent in self.seconds.items():
            calls, share = self.calls[name], spent / total
            lines.append(f"{name:<22}{calls:>6}{spent * 1e3:>10.2f}{share:>8.1%}")
        return "\n".join(lines)


class _Profile:
    """One run of a pass, with those that ran inside it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin = time.perf_counter()
        self.seconds = 0.0
        self.inner: list[_Profile] = []


class PassTimingInstrument(PassInstrument):
    """Measures every run of a pass, those inside others indented under them.

    `render` inside the context: leaving it clears what was measured.
    """

    def __init__(self) -> None:
        self.profiles: list[_Profile] = []
        self._open: list[_Profile] = []

    def enter_pass_ctx(self) -> None:
        """Start with nothing measured."""
        self.profiles, self._open = [], []

    def exit_pass_ctx(self) -> None:
        """Forget what was measured."""
        self.profiles, self._open = [], []

    def run_before_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Start the clock of one run."""
        profile = _Profile(info.name)
        (self._open[-1].inner if self._open else self.profiles).append(profile)
        self._open.append(profile)

    def run_after_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Stop the clock of the innermost run."""
        if self._open:
            profile = self._open.pop()
            profile.seconds = time.perf_counter() - profile.begin

    def render(self) -> str:
        """Return a line a run: name, microseconds with and without the passes inside it, shares."""
        total = sum(profile.seconds for profile in self.profiles)
        lines: list[str] = []
        stack = [(profile, 0, total) for profile in self.profiles[::-1]]
        while stack:
            profile, depth, around = stack.pop()
            own = profile.seconds - sum(inner.seconds for inner in profile.inner)
            shares = [f"{100 * profile.seconds / part:.2f}%" if part else "-"
                      for part in (total, around)]  # fmt: skip
            lines.append(
                f"{'  ' * depth}{profile.name}: {profile.seconds * 1e6:.0f}us "
                f"[{own * 1e6:.0f}us] ({shares[0]}; {shares[1]})"
            )
            stack += [(inner, depth + 1, profile.seconds) for inner in profile.inner[::-1]]
        return "\n".join([*lines, f"Total time: {total * 1e6:.0f}us"]) if lines else ""


class PassDumper(PassInstrument):
    """Hands the text of the function to `write` after every pass that changed it.

    `only` names the passes to show; all of them where it is empty.
    """

    def __init__(self, write: Callable[[str], Any] = print, only: tuple[str, ...] = ()) -> None:
        self.write = write
        self.only = only
        self._before: list[Any] = []

    def run_before_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Remember the function."""
        self._before.append(mod)

    def run_after_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Write the function, when the pass made another of it."""
        before = self._before.pop()
        if mod is not before and (not self.only or info.name in self.only):
            self.write(f"# after {info.name}\n{mod}")


class PrintAfterAll(PassInstrument):
    """Prints what every pass made."""

    def run_after_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Print it."""
        print(f"After Running Pass: {info}\n{mod}")


class PrintBeforeAll(PassInstrument):
    """Prints what every pass is given."""

    def run_before_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Print it."""
        print(f"Before Running Pass: {info}\n{mod}")


class PassPrintingInstrument(PassInstrument):
    """Prints what the named passes are given, and what they make."""

    def __init__(
        self,
        print_before_pass_names: Iterable[str] = (),
        print_after_pass_names: Iterable[str] = (),
    ) -> None:
        self.before = frozenset(print_before_pass_names)
        self.after = frozenset(print_after_pass_names)

    def run_before_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Print what a named pass is given."""
        if info.name in self.before:
            print(f"Print IR before: {info.name}\n{mod}\n")

    def run_after_pass(self, mod: IRModule | PrimFunc, info: Pass) -> None:
        """Print what a named pass made."""
        if info.name in self.after:
            print(f"Print IR after: {info.name}\n{mod}\n")


__all__ = [
    "PassDumper",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimer",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "VerifyEachPass",
    "pass_instrument",
]
