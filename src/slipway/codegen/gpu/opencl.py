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
complex imaginary vector image2d_t sampler_t event_t uchar ushort uint ulong
size_t barrier mad fma slw_texels slw_number
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

_HALF_ARITHMETIC = """#ifndef cl_khr_fp16
#error "this device does not compute in float16 (cl_khr_fp16): compile without -supports_float16"
#endif
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define slw_as_half(x) as_half((ushort)(x))
#define slw_half_bits(x) as_ushort((half)(x))
#define slw_half_fma fma
"""

# By the device's own instruction where it says that it has one.
_DOTS = """#ifdef cl_khr_integer_dot_product
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
#endif
#ifdef cl_arm_integer_dot_product_accumulate_int8
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_accumulate_int8 : enable
#endif
#if defined(__opencl_c_integer_dot_product_input_4x8bit_packed)
#define SLW_DOT4(a, b, c, x, y, pair, as) \\
  ((c) + (int)dot_4x8packed_##pair##_##as(as_uint(a), as_uint(b)))
#else
#define SLW_DOT4(a, b, c, x, y, pair, as) \\
  slw_sum4(convert_int4(as_##x(a)) * convert_int4(as_##y(b)), c)
static inline int slw_sum4(int4 v, int c) { return c + v.s0 + v.s1 + v.s2 + v.s3; }
#endif
static inline int slw_dot4_ss(int a, int b, int c) {
#if defined(cl_arm_integer_dot_product_accumulate_int8)
  return arm_dot_acc(as_char4(a), as_char4(b), c);
#else
  return SLW_DOT4(a, b, c, char4, char4, ss, int);
#endif
}
static inline int slw_dot4_uu(int a, int b, int c) {
#if defined(cl_arm_integer_dot_product_accumulate_int8)
  return as_int(arm_dot_acc(as_uchar4(a), as_uchar4(b), as_uint(c)));
#else
  return SLW_DOT4(a, b, c, uchar4, uchar4, uu, uint);
#endif
}
static inline int slw_dot4_su(int a, int b, int c) {
  return SLW_DOT4(a, b, c, char4, uchar4, su, int);
}
static inline int slw_dot4_us(int a, int b, int c) {
  return SLW_DOT4(a, b, c, uchar4, char4, us, int);
}
"""

OPENCL = Dialect(
    name="opencl",
    head="__kernel{bounds}\nvoid {name}({parameters})",
    bounds=" __attribute__((reqd_work_group_size({threads})))",
    pointer="__global {type}* {restrict}{name}",
    scalar="{type} {name}",
    image="__{access}_only image2d_t {name}",
    spaces={"global": "__global ", "shared": "__local ", "local": ""},
    shared="__local ",
    dynamic_parameter="__local ulong2* slw_dynamic",
    indices={
        **{f"blockIdx.{a}": f"(int32_t)get_group_id({n})" for n, a in enumerate(AXES)},
        **{f"threadIdx.{a}": f"(int32_t)get_local_id({n})" for n, a in enumerate(AXES)},
    },
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    prologue=_PROLOGUE,
    builtins=MATH,
    halves=_HALVES,
    half_arithmetic=_HALF_ARITHMETIC,
    dots=_DOTS,
    externs=frozenset(_EXTERNS.union(_EXACT.split())),
    doubles="#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
    reserved=frozenset(_WORDS.split()),
)
