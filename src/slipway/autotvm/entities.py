"""One choice of a knob of a template, and what it does to a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from slipway import te
from slipway.errors import TuningError
from slipway.ir.expr import IterVar

Stage = te.Tensor | te.Operation


class InstantiationError(TuningError, ValueError):
    """A configuration that a template refuses itself, by ``cfg.raise_error``."""


class Refusing(Protocol):
    """What takes the reason why a configuration is none."""

    def raise_error(self, msg: str) -> None:
        """Note the reason."""


@dataclass(frozen=True, repr=False)
class SplitEntity:
    """The lengths of the axes that one is split into, the outermost first; -1: what is left."""

    size: list[int]
    code = "sp"

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return list(self.size)

    def apply(self, sch: te.Schedule, op: Stage, axis: IterVar) -> list[IterVar]:
        """Split `axis` of a stage and return the parts, the outermost first."""
        found = []
        for i in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, math.prod(self.size[i:]))
            found.append(outer)
        return [*found, axis]

    def __repr__(self) -> str:
        return str(self.size)


@dataclass(frozen=True, repr=False)
class ReorderEntity:
    """An order of axes, by their numbers."""

    perm: Sequence[int]
    code = "re"

    def __post_init__(self) -> None:
        object.__setattr__(self, "perm", tuple(self.perm))

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return list(self.perm)

    def apply(self, sch: te.Schedule, op: Stage, axes: Sequence[IterVar]) -> list[IterVar]:
        """Reorder axes of a stage and return them in their new order.

        Where there are fewer axes than the knob has, those that are there keep that order.
        """
        found = [axes[i] for i in self.perm if i < len(axes)]
        sch[op].reorder(*found)
        return found

    def __repr__(self) -> str:
        return str(list(self.perm))


@dataclass(frozen=True, repr=False)
class OtherOptionEntity:
    """A choice of a list of values."""

    val: Any
    code = "ot"

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return self.val

    def __repr__(self) -> str:
        return str(self.val)


@dataclass(frozen=True, repr=False)
class AnnotateEntity:
    """What is done to each of some axes.

    "none", "unroll", "vec", "fuse" (with the next one), or a thread's name to bind it to; of a knob
    that places caches the numbers of the axes at which they are computed.
    """

    anns: Sequence[Any]
    code = "an"

    def __post_init__(self) -> None:
        object.__setattr__(self, "anns", tuple(self.anns))

    @property
    def plain(self) -> Any:
        """The choice as JSON's values."""
        return list(self.anns)

    def apply(
        self,
        sch: te.Schedule,
        op: Stage,
        axes: Sequence[IterVar],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Refusing | None = None,
        source: Sequence[Sequence[Stage]] | None = None,
    ) -> list[IterVar]:
        """Annotate axes of a stage and return them.

        With `axis_lens` no axis longer than `max_unroll` is unrolled, and none whose length
        `vec_size` has not gets lanes; `cfg` is told that it is no configuration then.  `source`:
        stages that are computed at the axes that the choice says.
        """
        found = list(axes)
        if source is not None:
            for stages, at in zip(source, self.anns, strict=False):
                for stage in stages:
                    sch[stage].compute_at(sch[op], found[at])
            return found
        for number, what in enumerate(self.anns):
            length = axis_lens[number] if axis_lens is not None else None
            if what == "unroll":
                if max_unroll and length is not None and length > max_unroll:
                    _refuse(cfg, f"an axis of {length} is unrolled {max_unroll} times at most")
                else:
                    sch[op].unroll(found[number])
            elif what == "vec":
                if vec_size and length is not None and length not in vec_size:
                    _refuse(cfg, f"an axis of {length} is none of {list(vec_size)} lanes")
                else:
                    sch[op].vectorize(found[number])
            elif what == "fuse":
                found[number + 1] = sch[op].fuse(found[number], found[number + 1])
            elif what != "none":
                sch[op].bind(found[number], te.thread_axis(what))
        return found

    def __repr__(self) -> str:
        return str(list(self.anns))


def _refuse(cfg: Refusing | None, why: str) -> None:
    if cfg is not None:
        cfg.raise_error(why)


Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity
KINDS: dict[str, Callable[[Any], Entity]] = {
    "sp": lambda plain: SplitEntity([int(n) for n in plain]),
    "re": lambda plain: ReorderEntity([int(n) for n in plain]),
    "an": lambda plain: AnnotateEntity([a if isinstance(a, int) else str(a) for a in plain]),
    "ot": OtherOptionEntity,
}
