"""The languages of kernels as tables: what each calls the parts of a kernel.

All of them are C with other words for memory, threads and barriers, and with functions of their
own; `codegen.c` walks the loops for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dialect:
    """One language.

    `head` is the kernel's first line with ``{name}``, ``{parameters}`` and ``{threads}``; `pointer`
    and `scalar` a parameter with ``{type}``, ``{name}``, ``{number}``; `spaces` the words in front
    of a type for memory that is "global", "shared", "local"; `indices` the number of a block or
    thread along an axis.  `builtins` names the language's function for an intrinsic on float32 and
    float64.  `prologue` defines C's names of types and whatever else the walk takes for granted,
    `doubles` is put in front where float64 occurs.  `reserved` are words no variable may have.
    """

    name: str
    suffix: str
    head: str
    pointer: str
    scalar: str
    spaces: Mapping[str, str]
    indices: Mapping[str, str]
    barrier: str
    prologue: str
    builtins: Mapping[str, str] = field(default_factory=dict)
    doubles: str = ""
    reserved: frozenset[str] = frozenset()


_AXES = ("x", "y", "z")
_MATH = {
    "sqrt": "sqrt",
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "nearbyint": "rint",
    "fma": "fma",
    "fmod": "fmod",
    "slw_fmod32": "fmod",
    "slw_fmod64": "fmod",
    "slw_fma32": "fma",
    "slw_fma64": "fma",
    "copysign": "copysign",
}
_OPENCL_PROLOGUE = """#pragma OPENCL FP_CONTRACT OFF
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
_OPENCL_WORDS = """
kernel global local private constant read_only write_only read_write uniform pipe generic half quad
complex imaginary vector image2d_t sampler_t event_t uchar ushort uint ulong size_t barrier mad fma
min max clamp mix step sign dot cross length select abs exp log pow sin cos tan sqrt floor ceil
trunc rint round all any shuffle degrees radians distance normalize hypot atomic
"""

OPENCL = Dialect(
    name="opencl",
    suffix="cl",
    head="__kernel __attribute__((reqd_work_group_size({threads})))\nvoid {name}({parameters})",
    pointer="__global {type}* {restrict}{name}",
    scalar="{type} {name}",
    spaces={"global": "__global ", "shared": "__local ", "local": ""},
    indices={
        **{f"blockIdx.{a}": f"(int32_t)get_group_id({n})" for n, a in enumerate(_AXES)},
        **{f"threadIdx.{a}": f"(int32_t)get_local_id({n})" for n, a in enumerate(_AXES)},
    },
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    prologue=_OPENCL_PROLOGUE,
    builtins=_MATH,
    doubles="#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
    reserved=frozenset(_OPENCL_WORDS.split()),
)
