"""Fourier transforms as products with matrices of sines and cosines: dft and stft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import TupleWrapper
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.ops.build import call, typed
from slipway.relay.ops.checks import need_float, need_rank
from slipway.relay.ops.dyn import needs_sizes, of_rank, sizes_may_be_tensors

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

MOST = 4096  # elements of a transform: its two matrices hold the square of that


def _matrices(size: int, count: int, dtype: str) -> tuple[Any, Any]:
    """Return the cosines and sines of `count` frequencies over `size` elements, a row each."""
    if not 1 <= size <= MOST:
        raise BadArgument("n_fft", f"is {size}; a transform here has 1 to {MOST} elements")
    angles = np.outer(np.arange(count), np.arange(size)) % size * (2 * np.pi / size)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


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
        cosines, sines = cosines / size, -sines / size
    rows = [call("reshape", part, (-1, size)) for part in (real, imaginary)]

    def product(part: Any, matrix: Any) -> Any:
        return call("nn.dense", part, const(matrix.astype(own.dtype)))

    made = (
        call("add", product(rows[0], cosines), product(rows[1], sines)),
        call("subtract", product(rows[1], cosines), product(rows[0], sines)),
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
    length = own.shape[-1]
    if hop < 1 or not 1 <= width <= n_fft or length < n_fft:
        raise BadArgument(
            "n_fft", f"is {n_fft} with windows of {width} every {hop} over {length} elements: a "
            "window is at most n_fft wide, and the signal at least that long",
        )  # fmt: skip
    batch = own.shape[0] if own.rank == 2 else 1
    frames = 1 + (length - n_fft) // hop
    positions = np.arange(frames)[:, None] * hop + np.arange(n_fft)
    cut = call("take", call("reshape", x, (batch, length)), const(positions.astype(np.int32)), 1)
    if window is not None:
        given, kind = typed(window)
        if kind.rank != 1 or kind.shape[0] != width:
            raise BadArgument("window", f"must have {width} elements, got {kind}")
        before = (n_fft - width) // 2
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
    both = np.stack([cosines, -sines], 1).reshape(2 * count, n_fft) * scale
    rows = call("reshape", cut, (batch * frames, n_fft))
    made = call("nn.dense", rows, const(both.astype(own.dtype)))
    parts = call("reshape", made, (batch, frames, count, 2))
    result = call("transpose", parts, (0, 2, 1, 3))
    return result if own.rank == 2 else call("reshape", result, (count, frames, 2))
