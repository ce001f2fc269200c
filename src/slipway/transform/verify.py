"""Laws of programs between passes: who checks them, and who is told.

`VerifyEachPass` looks at what goes into a pass and at what comes out.  It runs as an instrument, or
for the options "relay.verify" (graphs) and "tir.verify" (loops), which SLIPWAY_VERIFY=1 turns on
everywhere; the tests run under it.  A fault in what was given is an error of whoever made it, a
LoweringError; one that a pass of ours put there is a defect of ours, an InternalError that names
the pass.

What the laws are stands with the programs: `ir.verify` for loops, and for graphs `relay.verify`,
which `transform.graph` enters into `LAWS`, as this floor knows no graphs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol

from slipway.errors import InternalError, LoweringError
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.verify import stage_after, verify_faults
from slipway.version import VERSION

LISTED = 8  # faults that a message shows


class Step(Protocol):
    """What is asked of a pass."""

    name: str
    by_user: bool


class Laws(Protocol):
    """The laws of one kind of program.  One object follows one program through its passes."""

    def given(self, node: Node) -> list[str]:
        """Return what is wrong in a program that no pass has touched yet."""
        ...

    def before(self, node: Node) -> object:
        """Return what is to be known, when a pass is over, of what it was given."""
        ...

    def after(self, step: Step, before: object, node: Node) -> list[str]:
        """Return what is wrong in the result of a pass; `before` is what `before` returned."""
        ...


class LoopLaws:
    """The laws of a PrimFunc, which grow stricter as it is lowered."""

    def __init__(self) -> None:
        self.passed: set[str] = set()

    def given(self, node: Node) -> list[str]:
        """Return what is wrong in loops as they are written."""
        assert isinstance(node, PrimFunc)
        return verify_faults(node, "loops")

    def before(self, node: Node) -> object:
        """Return the loops, and the stage at which they were verified."""
        return node, stage_after(self.passed)

    def after(self, step: Step, before: object, node: Node) -> list[str]:
        """Return what is wrong behind the passes so far; loops, immutable, stay right."""
        assert isinstance(node, PrimFunc)
        self.passed.add(step.name)
        stage = stage_after(self.passed)
        return [] if before == (node, stage) else verify_faults(node, stage)


# By the class of a program: the option that asks for its verification, and its laws.
LAWS: dict[type[Node], tuple[str, Callable[[], Laws]]] = {PrimFunc: ("tir.verify", LoopLaws)}


def asked_everywhere() -> bool:
    """Return whether the environment asks to verify programs between all passes."""
    return os.environ.get("SLIPWAY_VERIFY", "") not in ("", "0")


class VerifyEachPass:
    """An instrument that verifies programs before and after every pass."""

    def __init__(self) -> None:
        self._laws: dict[type[Node], Laws] = {}
        self._last: Node | None = None  # verified already
        self._running: list[tuple[Step, Laws, object]] = []

    def enter_pass_ctx(self) -> None:
        """Forget what earlier compilations left."""
        self._laws, self._last, self._running = {}, None, []

    def run_before_pass(self, node: Node, info: Step) -> None:
        """Verify what `info` is given, unless it comes out of the pass before."""
        kind = type(node)
        if kind not in LAWS:
            return
        # A pass that runs others, on modules of its own, gives them what it has learned.
        nested = kind is not PrimFunc and bool(self._running)
        if kind not in self._laws or not (nested or node is self._last):
            self._laws[kind] = LAWS[kind][1]()
        laws = self._laws[kind]
        faults = [] if node is self._last else laws.given(node)
        if faults:
            raise LoweringError(f"what pass {info.name} is given is not legal:{listed(faults)}")
        self._running.append((info, laws, laws.before(node)))

    def run_after_pass(self, node: Node, info: Step) -> None:
        """Verify what `info` has made."""
        running = [number for number, (step, _, _) in enumerate(self._running) if step is info]
        if not running:
            return
        _, laws, before = self._running[running[-1]]
        del self._running[running[-1] :]  # with those inside that ended in an exception
        faults = laws.after(info, before, node)
        self._last = node
        if faults:
            raise fault_error(info, faults)


def listed(faults: Sequence[str]) -> str:
    """Return the first faults as lines of a message."""
    more = f"\n  and {len(faults) - LISTED} more" if len(faults) > LISTED else ""
    return "".join(f"\n  {fault}" for fault in faults[:LISTED]) + more


def fault_error(step: Step, faults: Sequence[str]) -> Exception:
    """Return what to raise for a pass whose result breaks laws."""
    broken = f"after pass {step.name}:{listed(faults)}"
    if step.by_user:
        return LoweringError(f"a pass of yours made a program that is not legal, {broken}")
    return InternalError(
        f"a defect of Slipway {VERSION}, not of what it was given: the program is not legal "
        f"{broken}\nPlease report it with these lines and the model, or the part that shows it"
    )
