"""Spelling of dtypes, constants and small helper functions in C11."""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from importlib import resources

from slipway import dtypes
from slipway.codegen.legalize import SUPPORT
from slipway.codegen.llvm.types import bfloat_bits, float_bits, half_bits

DEEPEST = 2_000  # nodes inside each other: Zig's C compiler takes 2,048 brackets


@cache
def c_type(dtype: str) -> str:
    """Return the C type of one lane of `dtype`, in registers and in memory.

    float16 and bfloat16 are carried as their 16 bits, bool and what is smaller as a byte.
    """
    code, bits, _ = dtypes.parse(dtype)
    if code == "bool":
        return "uint8_t"
    if code == "handle":
        return "void*"
    if code == "bfloat" or (code == "float" and bits == 16):
        return "uint16_t"
    if code == "float":
        return "float" if bits == 32 else "double"
    if dtypes.is_carried(dtype):
        return "int8_t" if code == "int" else "uint8_t"
    return f"{'' if code == 'int' else 'u'}int{bits}_t"


def int_text(value: int, dtype: str) -> str:
    """Return an integer constant."""
    code, bits, _ = dtypes.parse(dtype)
    if code == "handle":
        return "((void*)0)" if value == 0 else f"((void*){value}u)"
    if code in ("uint", "bool"):
        return f"{value}u" if bits < 64 else f"UINT64_C({value})"
    if bits == 64:
        return f"INT64_C({value})" if value > -(2**63) else "(-INT64_C(9223372036854775807) - 1)"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    return str(value) if value >= 0 else f"({value})"


def float_text(value: float, dtype: str, helpers: set[str]) -> str:
    """Return a floating point constant, exactly (hexadecimal where decimal would not be)."""
    code, bits, _ = dtypes.parse(dtype)
    if code == "bfloat":
        return f"{bfloat_bits(value)}u"
    if bits == 16:
        return f"{half_bits(value)}u"
    if bits == 32:
        word = float_bits(value)
        if word & 0x7F800000 == 0x7F800000:
            helpers.add("slw_f32_of")
            return f"slw_f32_of(0x{word:08X}u)"
    elif not math.isfinite(value):
        helpers.add("slw_f64_of")
        word = 0x7FF8 << 48 if value != value else (0x7FF0 if value > 0 else 0xFFF0) << 48
        return f"slw_f64_of(UINT64_C(0x{word:016X}))"
    if bits == 32:
        value = struct.unpack("<f", struct.pack("<I", float_bits(value)))[0]
    suffix = "f" if bits == 32 else ""
    if (
        value == int(value)
        and abs(value) < 1e6
        and not (value == 0 and math.copysign(1, value) < 0)
    ):
        return f"{value:.1f}{suffix}" if value >= 0 else f"({value:.1f}{suffix})"
    text = value.hex()
    return f"{text}{suffix}" if value > 0 else f"({text}{suffix})"


def c_string(text: str) -> str:
    """Return a string literal."""
    special = {34: '\\"', 92: "\\\\", 10: "\\n"}
    out = "".join(
        special.get(byte) or (chr(byte) if 32 <= byte <= 126 else f"\\{byte:03o}")
        for byte in text.encode()
    )
    return '"' + out.replace("??", "?\\077") + '"'


def _union(name: str, into: str, of: str) -> str:
    return (
        f"static inline {into} {name}({of} x) {{\n"
        f"  union {{\n    {of} from;\n    {into} to;\n  }} u;\n"
        "  u.from = x;\n  return u.to;\n}\n"
    )


_SQRT = """/* The square root without libm: an instruction where the compiler can be told of one. */
static inline {ty} {name}({ty} x) {{
  (void){to}; /* not every path below needs them */
  (void){of};
#if defined(__NO_MATH_ERRNO__)
  return {builtin}(x);
#elif defined(__SSE2__)
  {ty} y;
  __asm__("sqrts{x} %1, %0" : "=x"(y) : "x"(x));
  return y;
#elif defined(__aarch64__)
  {ty} y;
  __asm__("fsqrt %{a}0, %{a}1" : "=w"(y) : "w"(x));
  return y;
#elif defined(__ARM_FP) && (__ARM_FP & {fp}) && defined(__ARM_PCS_VFP)
  {ty} y;
  __asm__("vsqrt.f{bits} %{p}0, %{p}1" : "={c}"(y) : "{c}"(x));
  return y;
#elif defined(__riscv_fsqrt) && defined(__riscv_flen) && __riscv_flen >= {bits}
  {ty} y;
  __asm__("fsqrt.{r} %0, %1" : "=f"(y) : "f"(x));
  return y;
#else
  uint{bits}_t word = {to}(x), sign = word >> ({bits} - 1), exponent, root = 0, bit, trial;
  int64_t power;
  if ((word << 1) == 0 || word == {inf} || (word << 1) > ({inf} << 1)) {{
    return x + x;
  }}
  if (sign != 0) {{
    return {of}({nan});
  }}
  exponent = word >> {mant};
  word &= ({one} << {mant}) - 1;
  power = (int64_t)exponent - {bias};
  if (exponent == 0) {{
    power = 1 - {bias};
    while ((word >> {mant}) == 0) {{
      word <<= 1;
      --power;
    }}
  }} else {{
    word |= {one} << {mant};
  }}
  if ((power & 1) != 0) {{
    word <<= 1;
    --power;
  }}
  word <<= 1;
  for (bit = {one} << ({mant} + 1); bit != 0; bit >>= 1) {{ /* root: twice what is known of it */
    trial = root + bit;
    if (trial <= word) {{
      root = trial + bit;
      word -= trial;
    }}
    word <<= 1;
  }}
  root >>= 1; /* one bit more than the result has; it is never half way between two */
  root += root & 1;
  return {of}((root >> 1) + (((uint{bits}_t)(power / 2 + {bias} - 1)) << {mant}));
#endif
}}
"""

# Small functions that expressions may call: text and the others they need.
HELPERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "slw_f32_of": (_union("slw_f32_of", "float", "uint32_t"), ()),
    "slw_u32_of": (_union("slw_u32_of", "uint32_t", "float"), ()),
    "slw_f64_of": (_union("slw_f64_of", "double", "uint64_t"), ()),
    "slw_u64_of": (_union("slw_u64_of", "uint64_t", "double"), ()),
    "slw_fabs32": (
        "static inline float slw_fabs32(float x) {\n"
        "  return slw_f32_of(slw_u32_of(x) & 0x7FFFFFFFu);\n}\n",
        ("slw_f32_of", "slw_u32_of"),
    ),
    "slw_fabs64": (
        "static inline double slw_fabs64(double x) {\n"
        "  return slw_f64_of(slw_u64_of(x) & UINT64_C(0x7FFFFFFFFFFFFFFF));\n}\n",
        ("slw_f64_of", "slw_u64_of"),
    ),
    "slw_copysign32": (
        "static inline float slw_copysign32(float x, float y) {\n"
        "  return slw_f32_of((slw_u32_of(x) & 0x7FFFFFFFu) | (slw_u32_of(y) & 0x80000000u));\n}\n",
        ("slw_f32_of", "slw_u32_of"),
    ),
    "slw_copysign64": (
        "static inline double slw_copysign64(double x, double y) {\n"
        "  return slw_f64_of((slw_u64_of(x) & UINT64_C(0x7FFFFFFFFFFFFFFF)) |\n"
        "                    (slw_u64_of(y) & UINT64_C(0x8000000000000000)));\n}\n",
        ("slw_f64_of", "slw_u64_of"),
    ),
    "slw_sqrt32": (
        _SQRT.format(ty="float", name="slw_sqrt32", builtin="__builtin_sqrtf", x="s", a="s", fp=4,
                     bits=32, p="", c="t", r="s", to="slw_u32_of", of="slw_f32_of",
                     inf="0x7F800000u", nan="0x7FC00000u", mant=23, bias=127, one="1u"),
        ("slw_f32_of", "slw_u32_of"),
    ),
    "slw_sqrt64": (
        _SQRT.format(ty="double", name="slw_sqrt64", builtin="__builtin_sqrt", x="d", a="d", fp=8,
                     bits=64, p="P", c="w", r="d", to="slw_u64_of", of="slw_f64_of",
                     inf="UINT64_C(0x7FF0000000000000)", nan="UINT64_C(0x7FF8000000000000)",
                     mant=52, bias=1023, one="UINT64_C(1)"),
        ("slw_f64_of", "slw_u64_of"),
    ),
    "slw_share": (  # the first step of a task; of the next one: where it ends
        "static inline int64_t slw_share(int64_t steps, int32_t task, int32_t tasks) {\n"
        "  const int64_t first = (steps + tasks - 1) / tasks * task;\n"
        "  return first < steps ? first : steps;\n}\n",
        (),
    ),
    "slw_popcount": (
        "static inline uint32_t slw_popcount(uint64_t x) {\n"
        "  x = x - ((x >> 1) & UINT64_C(0x5555555555555555));\n"
        "  x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));\n"
        "  x = (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);\n"
        "  return (uint32_t)((x * UINT64_C(0x0101010101010101)) >> 56);\n}\n",
        (),
    ),
    "slw_clz": (
        "static inline uint32_t slw_clz(uint64_t x, uint32_t bits) {\n"
        "  uint32_t count = bits;\n"
        "  while (x != 0) {\n    x >>= 1;\n    --count;\n  }\n"
        "  return count;\n}\n",
        (),
    ),
}  # fmt: skip


def helper_text(names: set[str]) -> str:
    """Return the definitions of the named helpers and of what they need, in a fixed order."""
    support = [name for name in SUPPORT if name in names]
    wanted = set(names) - set(support)
    for name in tuple(wanted):
        wanted.update(HELPERS[name][1])
    parts = [text for name, (text, _) in HELPERS.items() if name in wanted]
    if support:
        whole = resources.files("slipway.codegen").joinpath("glue/support.c").read_text()
        parts.append(whole[whole.index("typedef signed") : whole.index("/* BEGIN")])
        for name in support:
            section = whole.split(f"/* BEGIN {name} */")[1].split("/* END */")[0]
            parts.append(re.sub(rf"^(\w+ {name}\()", r"static \1", section, flags=re.M))
    return "\n".join(parts)
