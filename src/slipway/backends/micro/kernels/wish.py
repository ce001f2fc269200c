"""Which of the kernels in hand-written C a record or a user wants for a layer.

    {"op": "written:qnn.conv2d_nhwc", "attrs": ..., "inputs": [...], "strategy": "dsp_wide"}

The strategy is a family of kernels, or "loops" for none of them: generated loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from slipway.backends.choices import WRITTEN, forced_for
from slipway.backends.micro.kernels.library import LibraryKernel
from slipway.backends.strategy import Problem
from slipway.errors import ScheduleError, did_you_mean
from slipway.relay.expr import Call
from slipway.target import Target

LOOPS = "loops"


@dataclass(frozen=True)
class WrittenProblem:
    """A layer that hand-written kernels compute, and their families, the default first."""

    problem: Problem
    families: tuple[str, ...]


_MET: ContextVar[list[WrittenProblem] | None] = ContextVar("layers met", default=None)


@contextmanager
def written_met() -> Iterator[list[WrittenProblem]]:
    """Collect the layers that compilations in the block have kernels for."""
    met: list[WrittenProblem] = []
    token = _MET.set(met)
    try:
        yield met
    finally:
        _MET.reset(token)


def wanted_kernels(
    call: Call, target: Target, kernels: Sequence[LibraryKernel], others: Sequence[LibraryKernel]
) -> list[LibraryKernel]:
    """Return the kernels for a layer whose sums are `call`, what a record wants before the rest.

    `others` are those that are taken only where they are wanted.  Raises ScheduleError for a family
    that has no kernel for the layer.
    """
    types = [a.checked_type for a in call.args]
    op = getattr(call.op, "name", "")
    problem = Problem(WRITTEN + op, call.attrs, types, (call.checked_type,), target)
    every = [*kernels, *others]
    families = [*dict.fromkeys(k.family for k in every), LOOPS]
    met = _MET.get()
    if met is not None:
        met.append(WrittenProblem(problem, tuple(families)))
    wish = forced_for(problem)
    if wish is None:
        return list(kernels)
    if wish.strategy == LOOPS:
        return []
    found = [k for k in every if k.family == wish.strategy]
    if not found:
        raise ScheduleError(
            f"no kernel of the family {wish.strategy!r} computes this {op} on {target}."
            f"{did_you_mean(wish.strategy, families)} These do: {', '.join(families)}"
        )
    return [*found, *(k for k in kernels if k not in found)]
