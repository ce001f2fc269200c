"""What a language of kernels is to the walk that writes one: a table of spellings.

All of them are C or C++ with other words for memory, threads and barriers, and with functions of
their own; `codegen.c` walks the loops for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dialect:
    """One language.

    - `head`: a kernel's first line, with ``{bounds}``, ``{name}`` and ``{parameters}``
    - `bounds`: how many threads a block has, where that is known: ``{threads}`` along each axis,
      ``{most}`` in all
    - `pointer`, `scalar`: a parameter, with ``{type}``, ``{name}``, ``{number}``; a pointer has
      ``{restrict}`` too, which is `restrict` where nothing else points there
    - `image`: a parameter that is a texture (textures.py), with ``{access}`` and ``{name}``; "":
      there is none
    - `spaces`: words in front of the type that a pointer points to, for memory that is "global",
      "shared" or "local"
    - `shared`: words in front of a declaration of memory that a block shares
    - `dynamic_declared`: declares the shared memory that a launch gives (dynamic_shared.py);
      `dynamic_parameter`: the parameter of a kernel that it is
    - `indices`: the number of a block or a thread along an axis
    - `function`: words in front of a function that kernels call
    - `builtins`: the language's functions for intrinsics on float32 and float64
    - `externs`: functions of the language that a kernel may call by name (call_extern)
    - `prologue`: defines C's names of types, and whatever else the walk takes for granted
    - `doubles`: stands in front where float64 occurs; None for a language without it
    - `reserved`: words that no variable may have
    - `halves`: defines ``slw_from_half`` and ``slw_to_half``, the device's own conversions of the
      16 bits of a float16; None: they are arithmetic on integers
    - `half_arithmetic`: makes numbers of such 16 bits and back, ``slw_as_half`` and
      ``slw_half_bits``, for the operators of the language, and defines ``slw_half_fma`` and the two
      conversions, where `halves` does not
    - `dots`: defines ``slw_dot4_ss`` and so on (ir/instructions/dot4.py); None: they are spelled
      out
    - `products`: functions, by name of a product of a warp (ir/instructions/warp_products.py,
      simdgroup_products.py)
    - `shuffles`: spellings of the shuffles (ir/instructions/warp_shuffles.py), with ``{mask}``,
      ``{value}``, ``{position}`` and ``{width}``; {}: it has none
    - `copies`: defines ``slw_async_copy`` and so on (ir/instructions/async_copies.py)
    - `active`: a bit for each thread of the warp that is here
    - `lane`: a parameter of kernels with shuffles, in the head's ``{lane}``
    - `exchange`: defines what `shuffles` calls
    """

    name: str
    head: str
    bounds: str
    pointer: str
    scalar: str
    spaces: Mapping[str, str]
    shared: str
    indices: Mapping[str, str]
    barrier: str
    prologue: str
    builtins: Mapping[str, str] = field(default_factory=dict)
    externs: frozenset[str] = frozenset()
    function: str = "static inline"
    restrict: str = "restrict "
    doubles: str | None = ""
    reserved: frozenset[str] = frozenset()
    halves: str | None = None
    half_arithmetic: str = ""
    dots: str | None = None
    products: Mapping[str, str] = field(default_factory=dict)
    shuffles: Mapping[str, str] = field(default_factory=dict)
    active: str = "0xffffffffu"
    dynamic_declared: str = ""
    dynamic_parameter: str = ""
    copies: str = ""
    image: str = ""
    lane: str = ""
    exchange: str = ""


AXES = ("x", "y", "z")
MATH = {
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
CPP_WORDS = """
alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl const_cast
constexpr decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public reinterpret_cast static_assert
static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor
xor_eq
"""
C_MACROS = """typedef int32_t slw_s32;
typedef uint32_t slw_w32;
typedef int64_t slw_s64;
typedef uint64_t slw_w64;
"""
