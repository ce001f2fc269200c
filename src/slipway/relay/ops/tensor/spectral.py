"""Fourier transforms as products with matrices of sines and cosines: dft and stft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.dims import is_open, range_text
from slipway.relay.expr import TupleWrapper
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.ops.build import call, counted, length, scalar, typed
from slipway.relay.ops.checks import need_float, need_rank
from slipway.relay.ops.dyn import needs_sizes, of_rank, sizes_may_be_tensors

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

MOST = 4096  # elements of a transform: its two matrices hold the square of that


def _matrices(size: Any, count: Any, dtype: str) -> tuple[Any, Any]:
    """Return the cosines and sines of `count` frequencies over `size` elements, a row each."""
    if is_open(size):
        return _open_matrices(size, dtype)
    if not 1 <= size <= MOST:
        raise BadArgument("n_fft", f"is {size}; a transform here has 1 to {MOST} elements")
    angles = np.outer(np.arange(count), np.arange(size)) % size * (2 * np.pi / size)
    return const(np.cos(angles).astype(dtype)), const(np.sin(angles).astype(dtype))


def _open_matrices(size: Any, dtype: str) -> tuple[Any, Any]:
    """Return the cosines and sines of all frequencies over an open number of elements."""
    if size.high is None or size.high > MOST:
        raise BadArgument("re_data", f"has {range_text(size)} elements; a transform here has 1 to "
                          f"{MOST}")  # fmt: skip
    numbers = counted(size, "int32")
    whole = length(numbers, 0, "int32")
    steps = call("floor_mod", call("multiply", call("expand_dims", numbers, 1), numbers), whole)
    # Between -1/2 and 1/2 of a circle, where an angle has its smallest error.
    beyond = call("greater", call("add", steps, steps), whole)
    steps = call("where", beyond, call("subtract", steps, whole), steps)
    parts = call("divide", call("cast", steps, dtype), call("cast", whole, dtype))
    angles = call("multiply", parts, scalar(2 * np.pi, dtype))
    return call("cos", angles), call("sin", angles)


@needs_sizes
def dft(re_data: ExprLike, im_data: ExprLike, inverse: bool = False) -> Any:
    """Return the real and imaginary parts of the Fourier transform along the last axis."""
    (real, own), (imaginary, other) = typed(re_data), typed(im_data)
    need_float("re_data", own)
    if other != own:
        raise BadArgument("im_data", f"must be {own} like the real part, got {other}")
    size = own.shape[-1]
    cosines, sines = _matrices(size, size, own.dtype)
    if inverse:
        whole = length(real, -1, own.dtype)
        cosines = call("divide", cosines, whole)
        sines = call("negative", call("divide", sines, whole))
    rows = [call("reshape", part, (-1, size)) for part in (real, imaginary)]

    made = (
        call("add", call("nn.dense", rows[0], cosines), call("nn.dense", rows[1], sines)),
        call("subtract", call("nn.dense", rows[1], cosines), call("nn.dense", rows[0], sines)),
    )
    return TupleWrapper(as_expr([call("reshape", part, own.shape) for part in made]), 2)


@sizes_may_be_tensors(
    result=lambda data: of_rank(data.rank + 2, data.dtype),
    tensors=("data", "window"),
    needs_shapes=True,
)
def stft(
    data: ExprLike,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: ExprLike | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Any:
    """Return the Fourier transforms of windows over a signal: (batch, frequency, frame, 2)."""
    x, own = typed(data)
    need_float("data", own)
    need_rank("data", own, 1, 2)
    hop = n_fft // 4 if hop_length is None else int(hop_length)
    width = n_fft if win_length is None else int(win_length)
    extent = own.shape[-1]
    if hop < 1 or not 1 <= width <= n_fft or extent < n_fft:
        raise BadArgument(
            "n_fft", f"is {n_fft} with windows of {width} every {hop} over {extent} elements: a "
            "window is at most n_fft wide, and the signal at least that long",
        )  # fmt: skip
    batch = own.shape[0] if own.rank == 2 else 1
    frames = 1 + (extent - n_fft) // hop
    starts = call("multiply", counted(frames, "int32"), scalar(hop, "int32"))
    positions = call("add", call("expand_dims", starts, 1), counted(n_fft, "int32"))
    cut = call("take", call("reshape", x, (batch, extent)), positions, 1)
    if window is not None:
        given, kind = typed(window)
        if kind.rank != 1 or kind.shape[0] != width:
            raise BadArgument("window", f"must have {width} elements, got {kind}")
        before = (n_fft - width) // 2
        if kind.dtype != own.dtype:
            given = call("cast", given, own.dtype)
        full = call("nn.pad", given, ((before, n_fft - width - before),))
        cut = call("multiply", cut, full)
    elif width < n_fft:
        before = (n_fft - width) // 2
        inside = np.zeros(n_fft, own.dtype)
        inside[before : before + width] = 1
        cut = call("multiply", cut, const(inside))
    count = n_fft // 2 + 1 if onesided else n_fft
    cosines, sines = _matrices(n_fft, count, own.dtype)
    scale = 1 / np.sqrt(n_fft) if normalized else 1.0
    both = np.stack([cosines.array, -sines.array], 1).reshape(2 * count, n_fft) * scale
    rows = call("reshape", cut, (batch * frames, n_fft))
    made = call("nn.dense", rows, const(both.astype(own.dtype)))
    parts = call("reshape", made, (batch, frames, count, 2))
    result = call("transpose", parts, (0, 2, 1, 3))
    return result if own.rank == 2 else call("reshape", result, (count, frames, 2))
