"""Texts of instruction sequences that sum taps of a window, channel by channel, on x86.

    c[i] += a0[i] * b[i, 0] + a1[i] * b[i, 1] + a2[i] * b[i, 2] + a3[i] * b[i, 3]

vpdpbusd adds four neighbouring products, so the four vectors of bytes are interleaved first, by
unpacking bytes and then words.  Unpacking works in parts of 128 bits: of r registers of sums, part
h of number q holds the channels 16 h + 4 q and the next three.  Sums and weights are brought into
that order and back; between two steps LLVM takes both ways away.  Without vpdpbusd, vpmaddwd sums
two taps of 16 bits in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable


def _shuffle(kind: str, x: str, y: str, size: int, order: Iterable[int]) -> str:
    picked = list(order)
    mask = ", ".join(f"i32 {m}" for m in picked)
    ty = f"<{size} x {kind}>"
    return f"shufflevector {ty} {x}, {ty} {y}, <{len(picked)} x i32> <{mask}>"


def _unpack(size: int, parts: int, high: int) -> list[int]:
    """Order of elements that unpacklo or unpackhi gives, of two vectors of `size` elements."""
    each = size // parts
    start = each // 2 if high else 0
    return [
        part * each + start + i // 2 + (size if i % 2 else 0)
        for part in range(parts)
        for i in range(each)
    ]


def llvm_text(width: int) -> str:
    """LLVM instructions for registers of `width` bytes, as `HardwareIntrinsic.llvm` holds them."""
    parts, sums = width // 16, width // 4
    name, bytes_, words = (
        f"@llvm.x86.avx512.vpdpbusd.{8 * width}",
        f"<{width} x i8>",
        f"<{sums} x i32>",
    )
    lines = [
        f"declare {words} {name}({words}, {bytes_}, {bytes_})",
        f"weights = bitcast <{4 * width} x i8> {{b}} to <{width} x i32>",
    ]
    for x in (0, 2):
        for high in (0, 1):
            order = _unpack(width, parts, high)
            lines += [
                f"p{x}{high} = " + _shuffle("i8", f"{{a{x}}}", f"{{a{x + 1}}}", width, order),
                f"w{x}{high} = bitcast {bytes_} {{p{x}{high}}} to <{width // 2} x i16>",
            ]
    for q in range(4):
        order = _unpack(width // 2, parts, q % 2)
        own = [16 * part + 4 * q + i for part in range(parts) for i in range(4)]
        lines += [
            f"t{q} = " + _shuffle("i16", f"{{w0{q // 2}}}", f"{{w2{q // 2}}}", width // 2, order),
            f"u{q} = bitcast <{width // 2} x i16> {{t{q}}} to {bytes_}",
            f"c{q} = " + _shuffle("i32", "{c}", "poison", width, own),
            f"k{q} = " + _shuffle("i32", "{weights}", "poison", width, own),
            f"s{q} = bitcast {words} {{k{q}}} to {bytes_}",
            f"d{q} = call {words} {name}({words} {{c{q}}}, {bytes_} {{u{q}}}, {bytes_} {{s{q}}})",
        ]
    lines += [
        f"e{x} = " + _shuffle("i32", f"{{d{x}}}", f"{{d{x + 1}}}", sums, range(2 * sums))
        for x in (0, 2)
    ]
    back = [i % 16 // 4 * sums + 4 * (i // 16) + i % 4 for i in range(width)]
    return "\n".join([*lines, _shuffle("i32", "{e0}", "{e2}", 2 * sums, back)])


def pairs_text(width: int, multiply: str) -> str:
    """LLVM instructions for two taps of int16, in registers of `width` bytes.

    `multiply` names the intrinsic that adds products in pairs.
    """
    n, sums, parts = width // 2, width // 4, width // 16
    ty, words = f"<{n} x i16>", f"<{sums} x i32>"
    name = f"@llvm.{multiply}"
    lines = [
        f"declare {words} {name}({ty}, {ty})",
        f"weights = bitcast <{2 * n} x i16> {{b}} to <{n} x i32>",
    ]
    for high in (0, 1):
        own = [8 * part + 4 * high + i for part in range(parts) for i in range(4)]
        lines += [
            f"u{high} = " + _shuffle("i16", "{a0}", "{a1}", n, _unpack(n, parts, high)),
            f"c{high} = " + _shuffle("i32", "{c}", "poison", n, own),
            f"k{high} = " + _shuffle("i32", "{weights}", "poison", n, own),
            f"s{high} = bitcast {words} {{k{high}}} to {ty}",
            f"m{high} = call {words} {name}({ty} {{u{high}}}, {ty} {{s{high}}})",
            f"d{high} = add {words} {{c{high}}}, {{m{high}}}",
        ]
    back = [i % 8 // 4 * sums + 4 * (i // 8) + i % 4 for i in range(n)]
    return "\n".join([*lines, _shuffle("i32", "{d0}", "{d1}", sums, back)])


_PAIRS = """\
const {reg} x = {mm}_loadu_{si}((const void*)a0), y = {mm}_loadu_{si}((const void*)a1);
  const {reg} l = {mm}_unpacklo_epi16(x, y), h = {mm}_unpackhi_epi16(x, y);
  const {reg} first = {first}, last = {last};
  for (int i = 0; i < 2; ++i) {{
    const {reg} pairs = i ? last : first;
    const {reg} weights = {mm}_loadu_{si}((const void*)(b + {n} * i));
    const {reg} sums = {mm}_loadu_{si}((const void*)(c + {sums} * i));
    const {reg} added = {mm}_add_epi32(sums, {mm}_madd_epi16(pairs, weights));
    {mm}_storeu_{si}((void*)(c + {sums} * i), added);
  }}"""


def pairs_in_c(width: int) -> str:
    """The statements in C for two taps of int16, in registers of `width` bytes."""
    wide = width == 32
    return _PAIRS.format(
        reg=f"__m{8 * width}i", mm="_mm256" if wide else "_mm", si=f"si{8 * width}",
        n=width // 2, sums=width // 4,
        first="_mm256_permute2x128_si256(l, h, 0x20)" if wide else "l",
        last="_mm256_permute2x128_si256(l, h, 0x31)" if wide else "h",
    )  # fmt: skip


# The same in WebAssembly.
WASM_PAIRS_IN_C = """\
const v128_t x = wasm_v128_load(a0), y = wasm_v128_load(a1);
  const v128_t l = wasm_i16x8_shuffle(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
  const v128_t h = wasm_i16x8_shuffle(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
  for (int i = 0; i < 2; ++i) {
    const v128_t sums = wasm_v128_load(c + 4 * i), weights = wasm_v128_load(b + 8 * i);
    wasm_v128_store(c + 4 * i, wasm_i32x4_add(sums, wasm_i32x4_dot_i16x8(i ? h : l, weights)));
  }"""


def bytes_text(n: int, multiply: str = "") -> str:
    """LLVM instructions for two taps of `n` channels of int8: NEON's smull, smlal and saddw.

    `multiply` names an intrinsic that multiplies 8 of them; without it, LLVM finds its own.
    """
    given, wide = f"<{n} x i8>", f"<{n} x i16>"
    lines = [f"declare {wide} @{multiply}({given}, {given})"] if multiply else []
    for tap in (0, 1):
        order = range(tap, 2 * n, 2)
        lines.append(f"w{tap} = " + _shuffle("i8", "{b}", "poison", 2 * n, order))
        if multiply:
            operands = f"{given} {{w{tap}}}, {given} {{a{tap}}}"
            lines.append(f"p{tap} = call {wide} @{multiply}({operands})")
            continue
        lines += [
            f"x{tap} = sext {given} {{w{tap}}} to {wide}",
            f"y{tap} = sext {given} {{a{tap}}} to {wide}",
            f"p{tap} = mul {wide} {{x{tap}}}, {{y{tap}}}",
        ]
    return "\n".join([
        *lines,
        f"sum = add {wide} {{p0}}, {{p1}}",
        f"wide = sext {wide} {{sum}} to <{n} x i32>",
        f"add <{n} x i32> {{c}}, {{wide}}",
    ])  # fmt: skip


_BYTES = """\
for (int i = 0; i < {n}; i += 8) {{
    const int8x8x2_t w = vld2_s8(b + 2 * i);
    const int16x8_t p = vmull_s8(vld1_s8(a0 + i), w.val[0]);
    const int16x8_t s = vmlal_s8(p, vld1_s8(a1 + i), w.val[1]);
    vst1q_s32(c + i, vaddw_s16(vld1q_s32(c + i), vget_low_s16(s)));
    vst1q_s32(c + i + 4, vaddw_s16(vld1q_s32(c + i + 4), vget_high_s16(s)));
  }}"""


def bytes_in_c(n: int) -> str:
    """The statements in C for two taps of `n` channels of int8."""
    return _BYTES.format(n=n)


_STEP = """\
{reg} n[4], r[4], w[4];
  const {reg} x0 = {load}((const void*)a0), x1 = {load}((const void*)a1);
  const {reg} x2 = {load}((const void*)a2), x3 = {load}((const void*)a3);
  const {reg} l0 = {mm}_unpacklo_epi8(x0, x1), h0 = {mm}_unpackhi_epi8(x0, x1);
  const {reg} l1 = {mm}_unpacklo_epi8(x2, x3), h1 = {mm}_unpackhi_epi8(x2, x3);
  for (int i = 0; i < 4; ++i) n[i] = {load}((const void*)(b + {width} * i));
{there}
  for (int i = 0; i < 4; ++i) w[i] = r[i];
  for (int i = 0; i < 4; ++i) n[i] = {load}((const void*)(c + {sums} * i));
{there}
  r[0] = {dot}(r[0], {mm}_unpacklo_epi16(l0, l1), w[0]);
  r[1] = {dot}(r[1], {mm}_unpackhi_epi16(l0, l1), w[1]);
  r[2] = {dot}(r[2], {mm}_unpacklo_epi16(h0, h1), w[2]);
  r[3] = {dot}(r[3], {mm}_unpackhi_epi16(h0, h1), w[3]);
{back}
  for (int i = 0; i < 4; ++i) {store}((void*)(c + {sums} * i), n[i]);"""


def _moves(to: str, source: str, function: str, rows: Iterable[tuple[int, int, int, str]]) -> str:
    return "\n".join(
        f"  {to}[{i}] = {function}({source}[{x}], {source}[{y}], {pick});" for i, x, y, pick in rows
    )


def _transposed() -> str:
    """Four registers of four parts, mirrored at the diagonal: n to r."""
    lines = ["  {", "    __m512i t[4];"]
    for i, (x, pick) in enumerate(((0, "0x44"), (0, "0xee"), (2, "0x44"), (2, "0xee"))):
        lines.append(f"    t[{i}] = _mm512_shuffle_i64x2(n[{x}], n[{x + 1}], {pick});")
    for i, (x, pick) in enumerate(((0, "0x88"), (0, "0xdd"), (1, "0x88"), (1, "0xdd"))):
        lines.append(f"    r[{i}] = _mm512_shuffle_i64x2(t[{x}], t[{x + 2}], {pick});")
    return "\n".join([*lines, "  }"])


def c_text(width: int, dot: str) -> str:
    """The statements in C on a0 to a3, b and c, for registers of `width` bytes."""
    wide = width == 64
    mm = "_mm512" if wide else "_mm256"
    si = f"si{8 * width}"
    if wide:
        there = _transposed()
        back = there.replace("r[", "m[").replace("n[", "r[").replace("m[", "n[")
    else:
        move = "_mm256_permute2x128_si256"
        low, high = "0x20", "0x31"
        ways = [(0, 0, 2, low), (1, 0, 2, high), (2, 1, 3, low), (3, 1, 3, high)]
        there = _moves("r", "n", move, ways)
        ways = [(0, 0, 1, low), (2, 0, 1, high), (1, 2, 3, low), (3, 2, 3, high)]
        back = _moves("n", "r", move, ways)
    return _STEP.format(
        reg=f"__m{8 * width}i", mm=mm, load=f"{mm}_loadu_{si}", store=f"{mm}_storeu_{si}",
        dot=dot, width=width, sums=width // 4, there=there, back=back,
    )  # fmt: skip
