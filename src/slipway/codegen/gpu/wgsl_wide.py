"""Integers of 64 bits in WGSL, which has none: two words, the low one first.

A value of int64 or uint64 is a ``vec2<u32>``, in registers and in memory, where it has the bytes
and the alignment that the host's numbers have.  `HELPERS` are functions of WGSL by name; each is
written into a module whose kernels use it, with those that it calls.
"""

from __future__ import annotations

import re

WIDE = ("int64", "uint64")
KIND = "vec2<u32>"

HELPERS: dict[str, str] = {
    "slw_add64": """
fn slw_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
""",
    "slw_sub64": """
fn slw_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
""",
    "slw_mul64": """
fn slw_mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let al = a.x & 0xffffu;
  let ah = a.x >> 16u;
  let bl = b.x & 0xffffu;
  let bh = b.x >> 16u;
  let low = al * bl;
  let cross = ah * bl + (low >> 16u);
  let other = al * bh + (cross & 0xffffu);
  let high = ah * bh + (cross >> 16u) + (other >> 16u);
  return vec2<u32>((other << 16u) | (low & 0xffffu), high + a.x * b.y + a.y * b.x);
}
""",
    "slw_less_uint64": """
fn slw_less_uint64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.y < b.y) || ((a.y == b.y) && (a.x < b.x));
}
""",
    "slw_less_int64": """
fn slw_less_int64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (bitcast<i32>(a.y) < bitcast<i32>(b.y)) || ((a.y == b.y) && (a.x < b.x));
}
""",
    "slw_shl64": """
fn slw_shl64(a: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(0u, a.x << (by & 31u)); }
  return vec2<u32>(a.x << by, (a.y << by) | (a.x >> (32u - by)));
}
""",
    "slw_shr_uint64": """
fn slw_shr_uint64(a: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(a.y >> (by & 31u), 0u); }
  return vec2<u32>((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}
""",
    "slw_shr_int64": """
fn slw_shr_int64(a: vec2<u32>, by: u32) -> vec2<u32> {
  let high = bitcast<i32>(a.y);
  if (by == 0u) { return a; }
  if (by >= 32u) {
    return vec2<u32>(bitcast<u32>(high >> (by & 31u)), bitcast<u32>(high >> 31u));
  }
  return vec2<u32>((a.x >> by) | (a.y << (32u - by)), bitcast<u32>(high >> by));
}
""",
    "slw_size64": """
fn slw_size64(a: vec2<u32>) -> vec2<u32> {
  if ((a.y >> 31u) == 0u) { return a; }
  return slw_sub64(vec2<u32>(0u, 0u), a);
}
""",
    "slw_div_uint64": """
fn slw_div_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if ((a.y | b.y) == 0u) { return vec2<u32>(a.x / b.x, 0u); }
  var whole = vec2<u32>(0u, 0u);
  var rest = vec2<u32>(0u, 0u);
  for (var bit = 64u; bit > 0u; bit--) {
    let over = rest.y >> 31u;
    let next = slw_shr_uint64(a, bit - 1u).x & 1u;
    rest = slw_shl64(rest, 1u) | vec2<u32>(next, 0u);
    whole = slw_shl64(whole, 1u);
    if ((over == 1u) || !slw_less_uint64(rest, b)) {
      rest = slw_sub64(rest, b);
      whole.x = whole.x | 1u;
    }
  }
  return whole;
}
""",
    "slw_div_int64": """
fn slw_div_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let whole = slw_div_uint64(slw_size64(a), slw_size64(b));
  if (((a.y ^ b.y) >> 31u) == 0u) { return whole; }
  return slw_sub64(vec2<u32>(0u, 0u), whole);
}
""",
    "slw_float_of_uint64": """
fn slw_float_of_uint64(a: vec2<u32>) -> f32 {
  if ((a.x | a.y) == 0u) { return 0.0f; }
  var zeros = countLeadingZeros(a.y);
  if (a.y == 0u) { zeros = 32u + countLeadingZeros(a.x); }
  let top = slw_shl64(a, zeros);
  let word = top.y | select(0u, 1u, top.x != 0u);
  let rest = word & 0xffu;
  var kept = word >> 8u;
  if ((rest > 0x80u) || ((rest == 0x80u) && ((kept & 1u) == 1u))) { kept++; }
  return f32(kept) * bitcast<f32>((167u - zeros) << 23u);
}
""",
    "slw_float_of_int64": """
fn slw_float_of_int64(a: vec2<u32>) -> f32 {
  let size = slw_float_of_uint64(slw_size64(a));
  return select(size, -size, (a.y >> 31u) == 1u);
}
""",
    "slw_uint64_of_float": """
fn slw_uint64_of_float(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let power = (bits >> 23u) & 0xffu;
  if (power < 127u) { return vec2<u32>(0u, 0u); }
  let digits = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  if (power < 150u) { return slw_shr_uint64(digits, 150u - power); }
  return slw_shl64(digits, min(power - 150u, 40u));
}
""",
    "slw_int64_of_float": """
fn slw_int64_of_float(x: f32) -> vec2<u32> {
  let size = slw_uint64_of_float(x);
  if ((bitcast<u32>(x) >> 31u) == 0u) { return size; }
  return slw_sub64(vec2<u32>(0u, 0u), size);
}
""",
}


def with_callees(used: set[str]) -> list[str]:
    """Return the helpers of a module in the order of the table, with those that they call."""
    todo, found = list(used), set(used)
    while todo:
        for name in re.findall(r"\b(slw_\w+)\(", HELPERS[todo.pop()]):
            if name not in found:
                found.add(name)
                todo.append(name)
    return [text for name, text in HELPERS.items() if name in found]


def constant(value: float) -> str:
    """Return a number."""
    bits = int(value) & 0xFFFFFFFFFFFFFFFF
    return f"vec2<u32>({bits & 0xFFFFFFFF}u, {bits >> 32}u)"


def binary(op: str, dtype: str, a: str, b: str) -> str:
    """Return `a` op `b`, of which a shift is by the low word of `b`."""
    if op in ("and", "or", "xor"):
        return f"{a} {dict(zip(('and', 'or', 'xor'), '&|^', strict=True))[op]} {b}"
    if op == "shl":
        return f"slw_shl64({a}, {b}.x)"
    if op == "shr":
        return f"slw_shr_{dtype}({a}, {b}.x)"
    return f"slw_div_{dtype}({a}, {b})" if op == "div" else f"slw_{op}64({a}, {b})"


def compare(op: str, dtype: str, a: str, b: str) -> str:
    """Return whether `a` op `b` holds."""
    if op in ("==", "!="):
        return f"{'all' if op == '==' else 'any'}({a} {op} {b})"
    first, second = (a, b) if op in ("<", ">=") else (b, a)
    return f"{'' if op in ('<', '>') else '!'}slw_less_{dtype}({first}, {second})"


def convert(source: str, dtype: str, text: str) -> str:
    """Return a number of `source`, which may be 64 bits, as one of `dtype`, which may be."""
    if source in WIDE and dtype in WIDE:
        return text
    if dtype in WIDE:
        if source == "float32":
            return f"slw_{dtype}_of_float({text})"
        if source.startswith("uint"):
            return f"vec2<u32>({text}, 0u)"
        return f"vec2<u32>(bitcast<u32>({text}), bitcast<u32>({text} >> 31u))"
    if dtype == "float32":
        return f"slw_float_of_{source}({text})"
    return f"{text}.x" if dtype.startswith("uint") else f"bitcast<i32>({text}.x)"
