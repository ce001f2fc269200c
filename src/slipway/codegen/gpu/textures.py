"""How OpenCL C spells the texels of images (`ir.instructions.texels`)."""

from __future__ import annotations

from slipway.ir.instructions.texels import LANE_BITS, LANES, MOST, ROW_BITS

PROLOGUE = """__constant sampler_t slw_texels =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
static inline float slw_number(float4 texel, int lane) {
  return lane == 0 ? texel.s0 : lane == 1 ? texel.s1 : lane == 2 ? texel.s2 : texel.s3;
}
"""


def coordinates(index: str) -> str:
    """Return the place of the texel of an element, whose index has a name, in OpenCL C."""
    first, row = LANE_BITS, LANE_BITS + ROW_BITS
    return f"(int2)(({index} >> {first}) & {MOST - 1}, {index} >> {row})"


def lane(index: str) -> str:
    """Return which number of its texel an element is, in C."""
    return f"{index} & {LANES - 1}"
