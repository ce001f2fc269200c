"""CUDA C, as NVRTC and nvcc read it (with -fmad=false, as the processor computes), and HIP's."""

from __future__ import annotations

from dataclasses import replace

from slipway.codegen.gpu.dialect import AXES, C_MACROS, CPP_WORDS, MATH, Dialect
from slipway.ir.instructions import async_copies
from slipway.ir.instructions.amd_products import AMD_PRODUCTS, hip_function
from slipway.ir.instructions.warp_products import WARP_PRODUCTS, cuda_function, symbol

_PROLOGUE = (
    """#ifdef __CUDACC_RTC__ // NVRTC has no headers of C
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#else
#include <stdint.h>
#endif
"""
    + C_MACROS
)
_WORDS = """
__global__ __device__ __shared__ __constant__ threadIdx blockIdx blockDim gridDim warpSize dim3
min max abs exp log pow sin cos tan sqrt floor ceil trunc rint round fma fmod
float2 float4 int2 int4
"""

_DOTS = """#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
#define SLW_DOT4(name, first, second, kinds)                                       \\
  static __device__ __forceinline__ int name(int a, int b, int c) {                \\
    int r;                                                                         \\
    asm("dp4a." kinds " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \\
    return r;                                                                      \\
  }
#else
#define SLW_DOT4(name, first, second, kinds)                                       \\
  static __device__ __forceinline__ int name(int a, int b, int c) {                \\
    for (int j = 0; j < 32; j += 8) {                                              \\
      c += (first)(a >> j) * (second)(b >> j);                                     \\
    }                                                                              \\
    return c;                                                                      \\
  }
#endif
SLW_DOT4(slw_dot4_ss, signed char, signed char, "s32.s32")
SLW_DOT4(slw_dot4_su, signed char, unsigned char, "s32.u32")
SLW_DOT4(slw_dot4_us, unsigned char, signed char, "u32.s32")
SLW_DOT4(slw_dot4_uu, unsigned char, unsigned char, "u32.u32")
"""

_HALF_ARITHMETIC = """#include <cuda_fp16.h>
#define slw_as_half(x) __ushort_as_half((uint16_t)(x))
#define slw_half_bits(x) __half_as_ushort(x)
#define slw_half_fma __hfma
#define slw_from_half(x) __half2float(slw_as_half(x))
#define slw_to_half(x) __half_as_ushort(__float2half_rn(x))
"""

CUDA = Dialect(
    name="cuda",
    head='extern "C" __global__ void{bounds}\n{name}({parameters})',
    bounds=" __launch_bounds__({most})",
    pointer="{type}* {restrict}{name}",
    scalar="{type} {name}",
    spaces={"global": "", "shared": "", "local": ""},
    shared="__shared__ __align__(16) ",
    dynamic_declared="extern __shared__ __align__(16) uint8_t slw_dynamic[];",
    indices={f"{kind}Idx.{a}": f"(int32_t){kind}Idx.{a}" for kind in ("block", "thread")
             for a in AXES},
    barrier="__syncthreads();",
    prologue=_PROLOGUE,
    builtins=MATH,
    function="static __device__ __forceinline__",
    restrict="__restrict__ ",
    half_arithmetic=_HALF_ARITHMETIC,
    dots=_DOTS,
    products={name: cuda_function(entry) for name, entry in WARP_PRODUCTS.items()},
    shuffles={
        f"warp_shuffle{end}": f"__shfl{end}_sync({{mask}}, {{value}}, {{position}}, {{width}})"
        for end in ("", "_up", "_down")
    },
    active="__activemask()",
    copies=async_copies.CUDA,
    reserved=frozenset((CPP_WORDS + _WORDS).split()),
)  # fmt: skip

HIP = replace(
    CUDA,
    name="hip",
    prologue=_PROLOGUE.replace(
        "__CUDACC_RTC__ // NVRTC has", "__HIPCC_RTC__ // hipRTC has"
    ).replace("#include <stdint.h>", "#include <hip/hip_runtime.h>\n#include <stdint.h>"),
    half_arithmetic=_HALF_ARITHMETIC.replace("cuda_fp16.h", "hip/hip_fp16.h"),
    products={name: hip_function(entry, symbol(name)) for name, entry in AMD_PRODUCTS.items()},
    shuffles={
        f"warp_shuffle{end}": f"__shfl{end}({{value}}, {{position}}, {{width}})"
        for end in ("", "_up", "_down")
    },
    active="0xffffffffu",
    copies="",
)
