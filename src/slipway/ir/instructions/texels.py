"""Textures: memory between kernels in scope "global.texture", which OpenCL has as images.

An image has rows of texels of four numbers each.  Its memory is addressed as if each row had
`MOST` texels: what is left of an index without its last two bits is ``row << 14 | column``.
"""

from __future__ import annotations

from slipway.errors import CodegenError
from slipway.ir import ops
from slipway.ir.buffer import Buffer

SCOPE = "global.texture"
LANES = 4  # of a texel
LANE_BITS = 2
ROW_BITS = 14
MOST = (
    1 << ROW_BITS
)  # texels of a row, and rows: what OpenCL promises, and the classic system takes
DTYPES = ("float32", "float16")


def is_texture(scope: str) -> bool:
    """Return whether memory in a scope is a texture."""
    return scope.startswith(SCOPE)


def row_axes(scope: str, rank: int) -> int:
    """Return how many axes count an image's rows; the others but the last count its columns.

    The classic system's three: activations in blocks of channels, weights, and channels last.
    Raises CodegenError for a scope that it does not have.
    """
    if scope == SCOPE:
        return rank - 2
    if scope == f"{SCOPE}-weight":
        return 1
    if scope == f"{SCOPE}-nhwc":
        return 1 if rank == 3 else 2
    raise CodegenError(
        f'there is no scope {scope!r}; textures are in "{SCOPE}", "{SCOPE}-weight" or '
        f'"{SCOPE}-nhwc"'
    )


def sides(buffer: Buffer) -> tuple[int, int]:
    """Return the columns and the rows of a texture's memory, which is flat."""
    (size,) = buffer.shape
    count = ops.as_int(size) or 0
    row = MOST * LANES
    rows = -(-count // row)
    return (count - (rows - 1) * row) // LANES, rows
