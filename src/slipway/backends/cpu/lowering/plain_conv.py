"""Which convolutions of plain images stay plain: their positions are the lanes, not their channels.

Blocks of channels cost what brings data into them and results out of them, and the lanes that
channels leave idle.  Both ways' cycles are predicted from the target's description: the steps of
their tiles (`tile.step_cost`), and what is moved, at the rate of the second-level cache.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from slipway.backends.cpu.lowering.blocked_value import reshaped
from slipway.backends.cpu.lowering.layout_wish import note_plain
from slipway.backends.cpu.tile import choose_tile, fma
from slipway.backends.strategy import Problem, strategies
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple
from slipway.relay.visit import children, post_order
from slipway.target import Target

DEPTHWISE, POSITIONS = "conv2d.depthwise", "conv2d.positions"


@dataclass(frozen=True)
class OnBlocks:
    """A convolution on blocks: what its tiles run over, and what is moved beside it.

    `parts` groups, each of `depth` channels and `chunks` blocks of `block` filters; `moved` bytes
    are copied into blocks or out of them, and `moved_plain` if it stays plain instead.  `part`: of
    the definition's products, what is computed, without the taps beside the image or by Winograd's
    algorithm.
    """

    parts: int
    depth: int
    chunks: int
    block: int
    moved: int = 0
    moved_plain: int = 0
    part: float = 1.0

    def cycles(self, problem: Problem, lanes: int) -> float:
        """Return the cycles that it is predicted to take, copies included."""
        (data, kernel), (out,) = problem.in_types, problem.out_types
        positions = out.shape[0] * prod(out.shape[2:])
        # Vectors of few filters are narrow, and two may begin in a cycle: unless the image comes
        # from beyond the second-level cache, whose lines a tile of positions takes one by one.
        in_cache = 4 * prod(data.shape) <= problem.target.core.l2_bytes
        bits = 32 * self.block if in_cache and self.block < lanes else 0
        micro = replace(fma(problem.target, max(1, self.block // lanes)), bits=bits)
        step = micro.all_cycles(choose_tile(micro, positions, self.chunks), positions, self.chunks)
        taps = self.part * self.depth * prod(kernel.shape[2:])
        return float(self.parts * taps * step + _moving(self.moved, problem.target))


def stays_plain(call: Call, on_blocks: OnBlocks, target: Target, lanes: int) -> bool:
    """Return whether a 2-D convolution of a plain value takes less time so than on blocks."""
    types = [a.checked_type for a in call.args]
    problem = Problem(call.op.name, call.attrs, types, (call.checked_type,), target)
    if problem.is_open or call.tensor_type.rank != 4:
        return False
    by_channel = 1 < call.attrs.groups == _channels(call)
    for strategy in strategies(call.op.name, target):
        if strategy.name == (DEPTHWISE if by_channel else POSITIONS) and strategy.applies(
            call.attrs, types, target
        ):
            cycles = strategy.predicted(problem, strategy.knobs_for(problem))
            assert cycles is not None
            plain = cycles + _moving(on_blocks.moved_plain, target)
            blocked = on_blocks.cycles(problem, lanes)
            note_plain(call, plain, blocked)
            costs = target.core.costs
            gain = costs.plain_channel_gain if by_channel else costs.plain_gain
            return plain <= gain * blocked
    return False


def as_image(call: Call, data: Expr) -> Call:
    """Return an nn.conv1d of `data` by constant weights as one of images of a single row."""
    attrs, weight = call.attrs, call.args[1]
    assert isinstance(weight, Constant)
    filters, depth, taps = weight.array.shape
    batch, channels, length = data.tensor_type.shape
    make: Any = op_registry.make("nn.conv2d")
    made: Call = make(
        reshaped(data, (batch, channels, 1, length)),
        Constant(weight.array.reshape(filters, depth, 1, taps)),
        strides=(1, *attrs.strides), dilation=(1, *attrs.dilation),
        padding=(0, attrs.padding[0], 0, attrs.padding[1]), groups=attrs.groups,
    )  # fmt: skip
    return made


def _moving(size: int, target: Target) -> float:
    """Return the cycles of a copy: its bytes are read and written."""
    return 2 * size / target.core.l2_stream_bytes


def taps_inside(call: Call) -> float:
    """Return which part of a convolution's taps lies in the image, not in the zeros around it."""
    (_, _, *image), (_, _, *window) = (a.tensor_type.shape for a in call.args)
    attrs, part = call.attrs, 1.0
    for axis, (size, taps) in enumerate(zip(image, window, strict=True)):
        found = [
            0 <= i * attrs.strides[axis] + tap * attrs.dilation[axis] - attrs.padding[axis] < size
            for i in range(call.tensor_type.shape[2 + axis])
            for tap in range(taps)
        ]
        part *= sum(found) / len(found)
    return part


def read_in(function: Function, takers: Container[str]) -> dict[int, tuple[bool, bool]]:
    """Return of each value, by id, whether a reader takes blocks of it, and one the plain value.

    Those of the operators `takers` take blocks; pointwise ones as the readers of their results do.
    """
    found: dict[int, tuple[bool, bool]] = {}

    def read(expr: Expr, blocks: bool, plain: bool) -> None:
        before = found.get(id(expr), (False, False))
        found[id(expr)] = before[0] or blocks, before[1] or plain

    read(function.body, False, True)
    for expr in reversed(list(post_order(function, into_functions=False))):
        own = found.get(id(expr), (False, True))
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            if expr.op.name in takers:
                own = (True, False)
            elif not op_registry.is_pointwise(expr):
                own = (False, True)
        elif expr is not function and not isinstance(expr, Tuple):
            own = (False, True)
        if expr is not function:
            for child in children(expr):
                read(child, *own)
    return found


def read_by_channel(function: Function) -> set[int]:
    """Return the ids of values that convolutions of each channel by itself read.

    Those that read what pointwise operators make of a value read the value.
    """
    found: set[int] = set()
    for expr in reversed(list(post_order(function, into_functions=False))):
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        if expr.op.name.startswith("nn.conv") and 1 < expr.attrs.groups == _channels(expr):
            found.add(id(expr.args[0]))
        elif id(expr) in found and op_registry.is_pointwise(expr):
            found.update(map(id, children(expr)))
    return found


def _channels(conv: Call) -> Any:
    return conv.args[0].tensor_type.shape[1] if conv.args[0].tensor_type.rank > 1 else 0
