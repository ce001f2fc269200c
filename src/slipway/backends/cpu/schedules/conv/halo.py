"""The padding of zeros around an image: what of a window lies inside, without a padded copy.

Sums run over the taps that are inside; loops over positions and taps carry a hint, so that they
are cut where that changes (`transform/loop/cut_loops.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.stages import shape_of

if TYPE_CHECKING:
    from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs


def window_at(
    data: te.Tensor, at: Sequence[Any], taps: Sequence[Any], attrs: BlockedConvAttrs
) -> tuple[list[Any], Any]:
    """Return where in `data`, N C spatial c, the window at `at` has its tap `taps`.

    The second value is the condition under which that is inside the image; None: it always is.
    """
    indices, tests = [], []
    size = shape_of(data)[2:-1]
    for axis, (i, tap) in enumerate(zip(at, taps, strict=True)):
        before, after = attrs.padding[axis], attrs.padding[axis + len(at)]
        index = i * attrs.strides[axis] + tap * attrs.dilation[axis] - before
        indices.append(index)
        if before:
            tests.append(index >= 0)
        if after:
            tests.append(index < size[axis])
    return indices, te.all(*tests) if tests else None


def cut(stage: te.Stage, *axes: Any) -> None:
    """Cut loops of a stage where conditions change."""
    for axis in axes:
        stage.pragma(axis, "loop_partition_hint", True)
