"""Metal's language, 2.2 and later; it has no float64."""

from __future__ import annotations

from slipway.codegen.gpu.dialect import AXES, C_MACROS, CPP_WORDS, MATH, Dialect
from slipway.ir.instructions.simdgroup_products import SIMDGROUP_PRODUCTS, metal_function
from slipway.ir.instructions.warp_products import symbol

_PROLOGUE = (
    """#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
"""
    + C_MACROS
)
_WORDS = """
kernel device constant threadgroup thread vertex fragment half bfloat uchar ushort uint ulong
float2 float4 int2 int4 sampler texture2d array atomic metal mem_flags simd min max clamp mix
sign dot cross length select abs exp log pow sin cos tan sqrt floor ceil trunc rint round all any
fma fmod fabs copysign saturate step distance normalize
"""
# By the number of a thread in its SIMD-group, which may be several rows: neighbours follow each
# other in both.
_EXCHANGE = """template <typename T>
static inline T slw_shuffle(T value, int place, int width, ushort lane) {
  return simd_shuffle(value, (lane & ~(width - 1)) + (place & (width - 1)));
}
template <typename T>
static inline T slw_shuffle_by(T value, int delta, int width, ushort lane) {
  int place = (lane & (width - 1)) + delta;
  return simd_shuffle(value, place >= 0 && place < width ? lane + delta : lane);
}
"""

_HALF_ARITHMETIC = """#define slw_as_half(x) as_type<half>((uint16_t)(x))
#define slw_half_bits(x) as_type<uint16_t>((half)(x))
#define slw_half_fma fma
#define slw_from_half(x) (float)slw_as_half(x)
#define slw_to_half(x) slw_half_bits(x)
"""

METAL = Dialect(
    name="metal",
    head="{bounds}kernel void {name}({parameters}, uint3 slw_block [[threadgroup_position_in_grid]]"
    ", uint3 slw_thread [[thread_position_in_threadgroup]]{lane})",
    bounds="[[max_total_threads_per_threadgroup({most})]]\n",
    pointer="device {type}* {name} [[buffer({number})]]",
    scalar="constant {type}& {name} [[buffer({number})]]",
    spaces={"global": "device ", "shared": "threadgroup ", "local": "thread "},
    shared="threadgroup ",
    dynamic_parameter="threadgroup uint8_t* slw_dynamic [[threadgroup(0)]]",
    indices={
        f"{kind}Idx.{a}": f"(int32_t)slw_{kind}.{a}" for kind in ("block", "thread") for a in AXES
    },
    barrier="threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);",
    prologue=_PROLOGUE,
    builtins=MATH,
    doubles=None,
    half_arithmetic=_HALF_ARITHMETIC,
    shuffles={
        "warp_shuffle": "slw_shuffle({value}, {position}, {width}, slw_lane)",
        "warp_shuffle_up": "slw_shuffle_by({value}, -({position}), {width}, slw_lane)",
        "warp_shuffle_down": "slw_shuffle_by({value}, {position}, {width}, slw_lane)",
    },
    products={
        name: metal_function(entry, symbol(name)) for name, entry in SIMDGROUP_PRODUCTS.items()
    },
    lane=", ushort slw_lane [[thread_index_in_simdgroup]]",
    exchange=_EXCHANGE,
    reserved=frozenset((CPP_WORDS + _WORDS).split()),
)
