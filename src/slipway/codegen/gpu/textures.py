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
ROW_BITS = 14
MOST = (
    1 << ROW_BITS
)  # texels of a row, and rows: what OpenCL promises, and the classic system takes
DTYPES = ("float32", "float16")
_LANE_BITS = 2
PROLOGUE = """__constant sampler_t slw_texels =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
static inline float slw_number(float4 texel, int lane) {
  return lane == 0 ? texel.s0 : lane == 1 ? texel.s1 : lane == 2 ? texel.s2 : texel.s3;
}
"""


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


def coordinates(index: str) -> str:
    """Return the place of the texel of an element, whose index has a name, in OpenCL C."""
    first, row = _LANE_BITS, _LANE_BITS + ROW_BITS
    return f"(int2)(({index} >> {first}) & {MOST - 1}, {index} >> {row})"


def lane(index: str) -> str:
    """Return which number of its texel an element is, in C."""
    return f"{index} & {LANES - 1}"
