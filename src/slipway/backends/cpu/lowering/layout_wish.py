"""What a record or a user wants the layout pass to make of a convolution or a product.

    {"op": "layout:nn.conv2d", "attrs": ..., "inputs": [...], "target": ...,
     "strategy": "blocked", "knobs": {"read": 1, "written": 16}}

"plain" leaves it as it is; "blocked" brings its data into blocks of `read` channels and its result
into blocks of `written`; "winograd" the same for F(tile x tile, 3x3); "panels" is a product whose
weights lie in blocks of `units`.  Without a wish the pass decides by itself, from the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from slipway.backends.choices import LAYOUT, forced_for
from slipway.backends.strategy import Problem
from slipway.errors import ScheduleError, did_you_mean
from slipway.relay.expr import Call, Constant, Expr, Op
from slipway.relay.layout import parse_layout
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.graph.precision.widen_products import has_known_weight

LayoutSpace = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True)
class LayoutWish:
    """A strategy, and what it is to use; 0: what the pass would take."""

    strategy: str
    read: int = 0
    written: int = 0
    tile: int = 0
    units: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the operator stays as it is."""
        return self.strategy == "plain"


@dataclass
class LayoutProblem:
    """An operator that the layout pass met, and what could be wanted of it.

    `decided` is what the pass made of it by itself: a strategy with its knobs, None where it was
    told.  `plain_part`: of the time on blocks, what the plain way is predicted to take; None where
    the pass did not have to compare the two.
    """

    problem: Problem
    space: LayoutSpace
    call: Call
    decided: tuple[str, dict[str, int]] | None = None
    plain_part: float | None = None


_MET: ContextVar[list[LayoutProblem] | None] = ContextVar("met by the layout pass", default=None)


@contextmanager
def layouts_met() -> Iterator[list[LayoutProblem]]:
    """Collect what layout passes in the block meet and could be told something about."""
    met: list[LayoutProblem] = []
    token = _MET.set(met)
    try:
        yield met
    finally:
        _MET.reset(token)


def layout_wish(call: Call, target: Target | None, lanes: int, winograd: bool) -> LayoutWish | None:
    """Return what is wanted for a call that the layout pass may change, None for nothing.

    Raises ScheduleError for what does not apply to it.
    """
    if target is None:
        return None
    types = [a.checked_type for a in call.args]
    problem = Problem(LAYOUT + call.op.name, call.attrs, types, (call.checked_type,), target)
    if problem.is_open:
        return None
    space = layout_space(call, lanes, winograd)
    met = _MET.get()
    if met is not None and len(space) > 1:
        met.append(LayoutProblem(problem, space, call))
    forced = forced_for(problem)
    if forced is None:
        return None
    _check(problem, forced.strategy, forced.knobs, space)
    return LayoutWish(forced.strategy, **forced.knobs)


def note_layout(call: Call, made: Expr | None) -> None:
    """Be told what the layout pass made of a call: an expression on blocks, None for nothing."""
    met = _MET.get()
    for layout in met or ():
        if layout.call is call and forced_for(layout.problem) is None:
            layout.decided = _decided(layout.space, made)


def note_plain(call: Call, cycles: float, on_blocks: float) -> None:
    """Be told what a call is predicted to take if it stays plain, and on blocks."""
    for layout in _MET.get() or ():
        if layout.call is call and on_blocks > 0:
            layout.plain_part = cycles / on_blocks


def _decided(space: LayoutSpace, made: Expr | None) -> tuple[str, dict[str, int]]:
    """Return what an expression is by the words of a wish."""
    for expr in reversed(list(post_order(made))) if made is not None else ():
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        if expr.op.name == "nn.contrib_dense_pack":
            return "panels", {"units": expr.args[1].tensor_type.shape[-1]}
        if "_conv" not in expr.op.name or "contrib" not in expr.op.name:
            continue
        blocks = [parse_layout(text) for text in (expr.attrs.data_layout, expr.attrs.out_layout)]
        read, written = (layout.block_of("C") for layout in blocks)
        knobs = {"read": read, "written": written}
        strategy = "winograd" if "winograd" in expr.op.name else "blocked"
        if strategy == "winograd":
            knobs["tile"] = expr.args[1].tensor_type.shape[2] - 2  # its kernels are transformed
        known = space.get(strategy, {})
        return strategy, {name: value for name, value in knobs.items() if name in known}
    return "plain", {}


def layout_space(call: Call, lanes: int, winograd: bool) -> LayoutSpace:
    """Return the strategies for a call and the legal values of their knobs."""
    blocks = [n for n in (4, 8, 16, 32, 64) if n <= lanes]
    if call.op.name == "nn.dense":
        panels = {"units": [*blocks, *(n * lanes for n in (2, 3, 4))]}
        return {"plain": {}, **({"panels": panels} if isinstance(call.args[1], Constant) else {})}
    kernel, groups = call.args[1].tensor_type, call.attrs.groups
    space: dict[str, dict[str, Sequence[int]]] = {"plain": {}}
    if groups == 1:
        space["blocked"] = {"read": (1, *blocks), "written": blocks}
        small = kernel.shape[2:] == (3, 3) and {*call.attrs.strides, *call.attrs.dilation} == {1}
        if winograd and small and has_known_weight(call):
            space["winograd"] = {"tile": (2, 4), "read": blocks, "written": blocks}
    elif kernel.shape[1] == 1:
        space["blocked"] = {"written": blocks}
    elif isinstance(call.args[1], Constant):
        space["blocked"] = {"read": (1, *blocks)}
    return space


def _check(
    problem: Problem, strategy: str, knobs: Mapping[str, object], space: LayoutSpace
) -> None:
    if strategy not in space:
        raise ScheduleError(
            f"{strategy!r} cannot be wanted of the layout of this "
            f"{problem.op.removeprefix(LAYOUT)}.{did_you_mean(strategy, space)} It can be "
            f"{', '.join(space)}"
        )
    for name, value in knobs.items():
        legal = space[strategy].get(name)
        if legal is None:
            raise ScheduleError(
                f"the layout {strategy} has no knob {name!r}."
                f"{did_you_mean(name, space[strategy])} It has: "
                f"{', '.join(space[strategy]) or 'none'}"
            )
        if value not in legal:
            raise ScheduleError(
                f"the knob {name} of the layout {strategy} cannot be {value!r} here: its legal "
                f"values are {', '.join(map(str, legal))}"
            )
