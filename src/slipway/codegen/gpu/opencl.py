"""OpenCL C 1.2."""

from __future__ import annotations

from slipway.codegen.gpu.dialect import AXES, MATH, Dialect

_PROLOGUE = """#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef int slw_s32;
typedef uint slw_w32;
typedef long slw_s64;
typedef ulong slw_w64;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
"""
_WORDS = """
kernel global local private constant read_only write_only read_write uniform pipe generic half quad
complex imaginary vector image2d_t sampler_t event_t uchar ushort uint ulong size_t barrier mad fma
min max clamp mix step sign dot cross length select abs exp log pow sin cos tan sqrt floor ceil
trunc rint round all any shuffle degrees radians distance normalize hypot atomic
"""
# OpenCL's own functions, which schedules of that language name.
_FAST = "cos divide exp exp10 exp2 log log10 log2 powr recip rsqrt sin sqrt tan"
_EXACT = """
acos asin atan atan2 cbrt clamp cos cosh erf erfc exp exp10 exp2 expm1 fabs fmax fmin hypot log
log10 log1p log2 mad mix popcount pow rsqrt sin sinh sqrt tan tanh
"""
_EXTERNS = {f"{kind}_{name}" for kind in ("native", "half") for name in _FAST.split()}

# Both are in every OpenCL, also where half is no type to compute with, and exact.
_HALVES = """static inline float slw_from_half(ushort x) {
  return vload_half(0, (const __private half*)&x);
}
static inline ushort slw_to_half(float x) {
  ushort made;
  vstore_half_rte(x, 0, (__private half*)&made);
  return made;
}
"""

OPENCL = Dialect(
    name="opencl",
    head="__kernel{bounds}\nvoid {name}({parameters})",
    bounds=" __attribute__((reqd_work_group_size({threads})))",
    pointer="__global {type}* {restrict}{name}",
    scalar="{type} {name}",
    spaces={"global": "__global ", "shared": "__local ", "local": ""},
    shared="__local ",
    indices={
        **{f"blockIdx.{a}": f"(int32_t)get_group_id({n})" for n, a in enumerate(AXES)},
        **{f"threadIdx.{a}": f"(int32_t)get_local_id({n})" for n, a in enumerate(AXES)},
    },
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    prologue=_PROLOGUE,
    builtins=MATH,
    halves=_HALVES,
    externs=frozenset(_EXTERNS.union(_EXACT.split())),
    doubles="#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
    reserved=frozenset(_WORDS.split()),
)
