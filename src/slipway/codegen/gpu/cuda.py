"""CUDA C, as NVRTC and nvcc read it (with -fmad=false, as the processor computes)."""

from __future__ import annotations

from slipway.codegen.gpu.dialect import AXES, C_MACROS, CPP_WORDS, MATH, Dialect

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

CUDA = Dialect(
    name="cuda",
    head='extern "C" __global__ void{bounds}\n{name}({parameters})',
    bounds=" __launch_bounds__({most})",
    pointer="{type}* {restrict}{name}",
    scalar="{type} {name}",
    spaces={"global": "", "shared": "", "local": ""},
    shared="__shared__ __align__(16) ",
    indices={f"{kind}Idx.{a}": f"(int32_t){kind}Idx.{a}" for kind in ("block", "thread")
             for a in AXES},
    barrier="__syncthreads();",
    prologue=_PROLOGUE,
    builtins=MATH,
    function="static __device__ __forceinline__",
    restrict="__restrict__ ",
    has_warp_products=True,
    reserved=frozenset((CPP_WORDS + _WORDS).split()),
)  # fmt: skip
