"""Hardware intrinsics: one declaration each.

A declaration says what an instruction computes, how LLVM and C spell it, and the processor
features it needs.  Each adds sums of products of small integers or bfloat16 pairs to c::

    dot:     c[i]    += sum over k of a[k] * b[i, k]
    matmul:  c[i, j] += sum over k of a[i, k] * b[j, k]
    taps:    c[i]    += sum over k of a[k, i] * b[i, k]

Loops name one by ``Call(dtype, "hardware", (StringImm(name), a, b, c))``, whose operands are
vectors of all elements, row by row, and whose value is the new c.  With taps there is an operand
for each row of a.  The interpreter computes the
meaning, the code generators emit the spellings; te.hardware makes a tensor intrinsic of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir.expr import Call, PrimExpr, StringImm
from slipway.ir.instructions.taps import (
    WASM_PAIRS_IN_C,
    bytes_in_c,
    bytes_text,
    c_text,
    llvm_text,
    pairs_in_c,
    pairs_text,
)
from slipway.ir.instructions.words import MADDUBS_SIGNS, smull_text

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class HardwareIntrinsic:
    """One instruction: shapes and types of its meaning, its spellings, the features it needs.

    `rows` is 0 for a dot product of one vector `a` with `columns` rows of `b`; otherwise the
    instruction multiplies a rows x depth by a columns x depth matrix.  `mirrored`: the elements of
    `a` are taken in reverse order.  `taps`: `a` is `depth` vectors of `columns` elements, which may
    lie apart, named a0, a1 and so on in the spellings.  `temporaries`: registers that it needs
    beside those of its operands.  `widens_freely`: where `b` is bytes, they take hardly longer
    than an instruction's on wider ones, which are twice as large.  Elements of `a` below `min_a`,
    and of `b` below `min_b` or above `most_b` may overflow on the way.

    `llvm` is an LLVM intrinsic that takes `flags`, then c, a and b (c last with `sum_last`), with
    `a` repeated for every column and `operand` as the type of a and b.  Where one intrinsic is
    not enough, `llvm` holds instructions, one a line, on {a} {b} {c}; the last is the value, and
    those that start with "declare" are declarations.

    `c` is a C statement on the pointers a, b and c (its header defines what it calls);
    slw_word32(p) there reads 32 bits from any address.
    """

    name: str
    llvm: str
    header: str
    c: str
    architectures: tuple[str, ...]
    features: tuple[str, ...]
    rows: int
    columns: int
    depth: int
    a_dtype: str
    b_dtype: str
    c_dtype: str
    operand: str = ""
    flags: tuple[int, ...] = ()
    sum_last: bool = False
    mirrored: bool = False
    taps: bool = False
    temporaries: int = 0
    widens_freely: bool = False
    min_a: int | None = None
    min_b: int | None = None
    most_b: int | None = None

    @property
    def a_size(self) -> int:
        """Elements of a."""
        return max(self.rows, 1) * self.depth

    @property
    def b_size(self) -> int:
        """Elements of b."""
        return self.columns * self.depth

    @property
    def c_size(self) -> int:
        """Elements of c."""
        return max(self.rows, 1) * self.columns

    def missing(self, target: Target) -> list[str]:
        """Return what `target` lacks: a kind of processor, or features."""
        if target.parsed_triple.arch not in self.architectures:
            return [f"a processor of kind {self.architectures[0]}"]
        return [f for f in self.features if not target.has_feature(f)]

    def call(self, *operands: PrimExpr) -> PrimExpr:
        """Return the call that has the new c as its value; operands are a (or its rows), b, c."""
        result = dtypes.with_lanes(self.c_dtype, self.c_size)
        return Call(result, "hardware", (StringImm(self.name), *operands))

    def reference(self, *operands: Any) -> Any:
        """Return the new c of flat arrays; bfloat16 is given as float32."""
        *rows, b, c = operands
        if self.taps:
            left, right = np.asarray(rows, np.int64), np.asarray(b, np.int64)
            products = left.T * right.reshape(self.columns, self.depth)
            return np.asarray(c) + products.sum(1).astype(np.asarray(c).dtype)
        (a,) = rows
        wide: Any = np.float32 if self.a_dtype == "bfloat16" else np.int64
        left = np.asarray(a, wide).reshape(max(self.rows, 1), self.depth)
        right = np.asarray(b, wide).reshape(self.columns, self.depth)
        if self.mirrored:
            left = left[:, ::-1]
        return np.asarray(c) + (left @ right.T).reshape(-1).astype(np.asarray(c).dtype)


_X86, _ARM64, _RISCV, _HEXAGON = ("x86_64",), ("aarch64",), ("riscv64", "riscv32"), ("hexagon",)
_ARM32 = ("arm", "armv7", "thumb", "armv7l")
_WASM = ("wasm32",)
_HELIUM = ("thumb", "thumbv8.1m.main", "arm")


def _x86(
    name: str, llvm: str, bits: int, features: tuple[str, ...], call: str
) -> HardwareIntrinsic:
    mm, si = ("_mm512", "si512") if bits == 512 else ("_mm256", "si256")
    at = f"({'void' if bits == 512 else '__m256i'}*)"
    at_const = f"(const {'void' if bits == 512 else '__m256i'}*)"
    return HardwareIntrinsic(
        name, llvm, "immintrin.h",
        f"{mm}_storeu_{si}({at}c, {call}({mm}_loadu_{si}({at_const}c), "
        f"{mm}_set1_epi32(slw_word32(a)), {mm}_loadu_{si}({at_const}b)));",
        _X86, features, 0, bits // 32, 4, "uint8", "int8", "int32", f"int8x{bits // 8}",
    )  # fmt: skip


def _taps(name: str, bits: int, features: tuple[str, ...], call: str) -> HardwareIntrinsic:
    width = bits // 8
    return HardwareIntrinsic(
        name, llvm_text(width), "immintrin.h", c_text(width, call),
        _X86, features, 0, width, 4, "uint8", "int8", "int32", taps=True,
    )  # fmt: skip


# The same with the bytes of the data signed and those of the weights not, so that the data may be a
# word in memory that the instruction itself repeats.
_DPBUSD = """\
declare <{n} x i32> @llvm.x86.avx512.vpdpbusd.{bits}(<{n} x i32>, <{bytes} x i8>, <{bytes} x i8>)
word = bitcast <4 x i8> {{a}} to i32
one = insertelement <{n} x i32> poison, i32 {{word}}, i32 0
all = shufflevector <{n} x i32> {{one}}, <{n} x i32> poison, <{n} x i32> zeroinitializer
data = bitcast <{n} x i32> {{all}} to <{bytes} x i8>
call <{n} x i32> @llvm.x86.avx512.vpdpbusd.{bits}(<{n} x i32> {{c}}, <{bytes} x i8> {{b}}, <{bytes} x i8> {{data}})"""  # noqa: E501


# Without such an instruction: products in pairs of 16 bits, which must not overflow, so that the
# weights are at most 127, and the pairs in pairs.
_MADDUBS = """\
declare <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8>, <32 x i8>)
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
word = bitcast <4 x i8> {a} to i32
one = insertelement <8 x i32> poison, i32 {word}, i32 0
all = shufflevector <8 x i32> {one}, <8 x i32> poison, <8 x i32> zeroinitializer
data = bitcast <8 x i32> {all} to <32 x i8>
pairs = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> {b}, <32 x i8> {data})
sums = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> {pairs}, <16 x i16> splat (i16 1))
add <8 x i32> {c}, {sums}"""


def _signed(name: str, bits: int, features: tuple[str, ...], call: str) -> HardwareIntrinsic:
    mm, si = ("_mm512", "si512") if bits == 512 else ("_mm256", "si256")
    at = "(void*)" if bits == 512 else "(__m256i*)"
    at_const = "(const void*)" if bits == 512 else "(const __m256i*)"
    return HardwareIntrinsic(
        name, _DPBUSD.format(n=bits // 32, bits=bits, bytes=bits // 8), "immintrin.h",
        f"{mm}_storeu_{si}({at}c, {call}({mm}_loadu_{si}({at_const}c), "
        f"{mm}_loadu_{si}({at_const}b), {mm}_set1_epi32(slw_word32(a))));",
        _X86, features, 0, bits // 32, 4, "int8", "uint8", "int32", temporaries=1,
    )  # fmt: skip


# Products of pairs, added; LLVM joins the two into vpdpwssd where the processor has it.  `widened`
# makes `factor` of weights that are bytes in memory.
_PMADDWD = """\
declare <{n} x i32> @llvm.{name}(<{two} x i16>, <{two} x i16>)
word = bitcast <2 x i16> {{a}} to i32
one = insertelement <{n} x i32> poison, i32 {{word}}, i32 0
all = shufflevector <{n} x i32> {{one}}, <{n} x i32> poison, <{n} x i32> zeroinitializer
pairs = bitcast <{n} x i32> {{all}} to <{two} x i16>
{widened}sums = call <{n} x i32> @llvm.{name}(<{two} x i16> {{pairs}}, <{two} x i16> {factor})
add <{n} x i32> {{c}}, {{sums}}"""


def _pairs(name: str, n: int, weights: str) -> str:
    """Return the instructions that add products of pairs to `n` sums; `name` is the intrinsic's."""
    widened, factor = "", "{b}"
    if weights == "int8":
        widened, factor = f"wide = sext <{2 * n} x i8> {{b}} to <{2 * n} x i16>\n", "{wide}"
    return _PMADDWD.format(n=n, two=2 * n, name=name, widened=widened, factor=factor)


def _pmaddwd(name: str, feature: str, bits: int, weights: str = "int16") -> HardwareIntrinsic:
    n, mm, si = bits // 32, "_mm256" if bits == 256 else "_mm", f"si{bits}"
    at = f"(const __m{bits}i*)"
    loaded = f"{mm}_loadu_{si}({at}b)"
    if weights == "int8":
        loaded = f"{mm}_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)b))"
    return HardwareIntrinsic(
        name, _pairs(f"x86.{feature}.pmadd.wd", n, weights), "immintrin.h",
        f"{mm}_storeu_{si}((__m{bits}i*)c, {mm}_add_epi32({mm}_loadu_{si}({at}c), "
        f"{mm}_madd_epi16({mm}_set1_epi32(slw_word32(a)), {loaded})));",
        _X86, (feature,), 0, n, 2, "int16", weights, "int32", temporaries=1,
    )  # fmt: skip


def _wasm_dot(name: str, weights: str) -> HardwareIntrinsic:
    loaded = "wasm_v128_load(b)" if weights == "int16" else "wasm_i16x8_load8x8(b)"
    return HardwareIntrinsic(
        name, _pairs("wasm.dot", 4, weights), "wasm_simd128.h",
        "wasm_v128_store(c, wasm_i32x4_add(wasm_v128_load(c), "
        f"wasm_i32x4_dot_i16x8(wasm_v128_load32_splat(a), {loaded})));",
        _WASM, ("simd128",), 0, 4, 2, "int16", weights, "int32", temporaries=1,
        widens_freely=weights == "int8",
    )  # fmt: skip


# Eight products of 16 bits each, added in pairs to four sums.
_SMULL = """\
declare <8 x i16> @llvm.{multiply}.v8i16(<8 x i8>, <8 x i8>)
declare <4 x i32> @llvm.{add}.v4i32.v8i16({before}<8 x i16>)
pair = bitcast <2 x i8> {{a}} to i16
one = insertelement <4 x i16> poison, i16 {{pair}}, i32 0
all = shufflevector <4 x i16> {{one}}, <4 x i16> poison, <4 x i32> zeroinitializer
pairs = bitcast <4 x i16> {{all}} to <8 x i8>
products = call <8 x i16> @llvm.{multiply}.v8i16(<8 x i8> {{pairs}}, <8 x i8> {{b}})
"""


def _smull(name: str, architectures: tuple[str, ...]) -> HardwareIntrinsic:
    """What NEON has for bytes before the dot product."""
    if architectures == _ARM64:
        text = _SMULL.format(
            multiply="aarch64.neon.smull", add="aarch64.neon.saddlp", before=""
        ) + (
            "sums = call <4 x i32> @llvm.aarch64.neon.saddlp.v4i32.v8i16(<8 x i16> {products})\n"
            "add <4 x i32> {c}, {sums}"
        )
    else:
        text = _SMULL.format(
            multiply="arm.neon.vmulls", add="arm.neon.vpadals", before="<4 x i32>, "
        ) + (
            "call <4 x i32> @llvm.arm.neon.vpadals.v4i32.v8i16(<4 x i32> {c}, <8 x i16> {products})"
        )
    pair = "vdup_n_s16((int16_t)((uint8_t)a[0] | (uint16_t)(uint8_t)a[1] << 8))"
    return HardwareIntrinsic(
        name, text, "arm_neon.h",
        f"vst1q_s32(c, vpadalq_s16(vld1q_s32(c), vmull_s8(vreinterpret_s8_s16({pair}), "
        "vld1_s8(b))));",
        architectures, ("neon",), 0, 4, 2, "int8", "int8", "int32", temporaries=4,
    )  # fmt: skip


def _smull4(name: str, architectures: tuple[str, ...]) -> HardwareIntrinsic:
    """A dot product of four bytes with NEON as it was before it had one."""
    wide = architectures == _ARM64
    products = [f"vpaddlq_s16(vmull_s8(vld1_s8(b + {at}), data))" for at in (0, 8)]
    sums = "vpaddq_s32(p, q)" if wide else (
        "vcombine_s32(vpadd_s32(vget_low_s32(p), vget_high_s32(p)), "
        "vpadd_s32(vget_low_s32(q), vget_high_s32(q)))"
    )  # fmt: skip
    return HardwareIntrinsic(
        name, smull_text(wide), "arm_neon.h",
        "int8x8_t data = vreinterpret_s8_s32(vdup_n_s32(slw_word32(a)));\n"
        f"  int32x4_t p = {products[0]}, q = {products[1]};\n"
        f"  vst1q_s32(c, vaddq_s32(vld1q_s32(c), {sums}));",
        architectures, ("neon",), 0, 4, 4, "int8", "int8", "int32", temporaries=5,
    )  # fmt: skip


# The pair of data is the last operand, and a float, so that it may be a lane of a register.
_BFDOT = """\
declare <4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16(<4 x float>, <8 x bfloat>, <8 x bfloat>)
pair = bitcast <2 x i16> {a} to float
one = insertelement <4 x float> poison, float {pair}, i32 0
all = shufflevector <4 x float> {one}, <4 x float> poison, <4 x i32> zeroinitializer
left = bitcast <4 x float> {all} to <8 x bfloat>
right = bitcast <8 x i16> {b} to <8 x bfloat>
call <4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16(<4 x float> {c}, <8 x bfloat> {right}, <8 x bfloat> {left})"""  # noqa: E501


_BFMMLA = """\
declare <4 x float> @llvm.aarch64.neon.bfmmla(<4 x float>, <8 x bfloat>, <8 x bfloat>)
left = bitcast <8 x i16> {a} to <8 x bfloat>
right = bitcast <8 x i16> {b} to <8 x bfloat>
call <4 x float> @llvm.aarch64.neon.bfmmla(<4 x float> {c}, <8 x bfloat> {left}, <8 x bfloat> {right})"""  # noqa: E501


def _smlal_taps(name: str, architectures: tuple[str, ...], n: int) -> HardwareIntrinsic:
    """Two taps a channel; their products are added in 16 bits, which 2 * 128 * 127 fits."""
    return HardwareIntrinsic(
        name, bytes_text(n, "" if n == 16 else "llvm.arm.neon.vmulls.v8i16"),
        "arm_neon.h", bytes_in_c(n),
        architectures, ("neon",), 0, n, 2, "int8", "int8", "int32", taps=True, min_b=-127,
    )  # fmt: skip


def _neon(name: str, feature: str, kind: str, call: str) -> HardwareIntrinsic:
    matrix = feature == "i8mm"
    s = "u" if kind == "uint8" else "s"
    left = f"vld1q_{s}8(a)"
    if not matrix:
        left = f"vreinterpretq_{s}8_s32(vdupq_n_s32(slw_word32(a)))"
    word = name.partition(".")[2]
    return HardwareIntrinsic(
        name, f"llvm.aarch64.neon.{word}.v4i32.v16i8", "arm_neon.h",
        f"vst1q_{s}32(c, {call}_{s}32(vld1q_{s}32(c), {left}, vld1q_{s}8(b)));",
        _ARM64, (feature,), 2 if matrix else 0, 2 if matrix else 4, 8 if matrix else 4,
        kind, kind, f"{'u' if s == 'u' else ''}int32", f"{kind}x16",
    )  # fmt: skip


def _dsp(name: str, **how: Any) -> HardwareIntrinsic:
    """Smlad and its relatives: two products of 16 bits, added to a sum."""
    word, wide = name.partition(".")[2], how.pop("wide", "int32")
    return HardwareIntrinsic(
        name, f"llvm.arm.{word}", "arm_acle.h",
        f"*c = __{word}(slw_word32(a), slw_word32(b), *c);",
        _ARM32, ("dsp",), 0, 1, 2, "int16", "int16", wide, "int32", sum_last=True, **how,
    )  # fmt: skip


# Four products of 8 bits on a processor that multiplies pairs of 16: the even elements sign- or
# zero-extended to 16 bits, the odd ones the same after a rotation, and one smlad for each.
_SMLAD4 = """\
declare i32 @llvm.arm.{extend}(i32)
declare i32 @llvm.fshr.i32(i32, i32, i32)
declare i32 @llvm.arm.smlad(i32, i32, i32)
wa = bitcast <4 x i8> {{a}} to i32
wb = bitcast <4 x i8> {{b}} to i32
ra = call i32 @llvm.fshr.i32(i32 {{wa}}, i32 {{wa}}, i32 8)
rb = call i32 @llvm.fshr.i32(i32 {{wb}}, i32 {{wb}}, i32 8)
ea = call i32 @llvm.arm.{extend}(i32 {{wa}})
eb = call i32 @llvm.arm.{extend}(i32 {{wb}})
oa = call i32 @llvm.arm.{extend}(i32 {{ra}})
ob = call i32 @llvm.arm.{extend}(i32 {{rb}})
half = call i32 @llvm.arm.smlad(i32 {{ea}}, i32 {{eb}}, i32 {{c}})
call i32 @llvm.arm.smlad(i32 {{oa}}, i32 {{ob}}, i32 {{half}})"""


def _smlad4(name: str, kind: str, extend: str) -> HardwareIntrinsic:
    word = f"(int16x2_t)__{extend}(({kind}x4_t){{0}})"
    pair = f"*c = __smlad({word.format('{0}')}, {word.format('{1}')}, *c);"
    lines = [
        "const uint32_t x = (uint32_t)slw_word32(a), y = (uint32_t)slw_word32(b);",
        pair.format("x", "y"),
        pair.format("((x >> 8) | (x << 24))", "((y >> 8) | (y << 24))"),
    ]
    return HardwareIntrinsic(
        name, _SMLAD4.format(extend=extend), "arm_acle.h", "\n  ".join(lines),
        _ARM32, ("dsp",), 0, 1, 4, kind, kind, "int32",
    )  # fmt: skip


def _mve(name: str, dtype: str, call: str) -> HardwareIntrinsic:
    lanes = 128 // dtypes.bits_of(dtype)
    unsigned = int(dtypes.is_uint(dtype))
    load = f"vldrbq_{'u' if unsigned else 's'}8" if lanes == 16 else (
        f"vldrhq_{'u' if unsigned else 's'}16")  # fmt: skip
    return HardwareIntrinsic(
        name, f"llvm.arm.mve.vmldava.v{lanes}i{128 // lanes}", "arm_mve.h",
        f"*c = {call}(*c, {load}(a), {load}(b));",
        _HELIUM, ("mve",), 0, 1, lanes, dtype, dtype, "uint32" if unsigned else "int32",
        f"{dtype}x{lanes}", flags=(unsigned, 0, 0),
    )  # fmt: skip


# A widening multiply-add of one scalar with a vector, kept in the wide type: LLVM's vectoriser
# extends both operands first when the sum is four times as wide, and never takes the scalar form.
_VWMACC = """\
declare <vscale x {part} x i{wide}> @llvm.vector.insert.nxv{part}i{wide}.v{n}i{wide}(<vscale x {part} x i{wide}>, <{n} x i{wide}>, i64)
declare <vscale x {part} x i{bits}> @llvm.vector.insert.nxv{part}i{bits}.v{n}i{bits}(<vscale x {part} x i{bits}>, <{n} x i{bits}>, i64)
declare <vscale x {part} x i{wide}> @llvm.riscv.{op}.nxv{part}i{wide}.i{bits}.nxv{part}i{bits}.{xlen}(<vscale x {part} x i{wide}>, i{bits}, <vscale x {part} x i{bits}>, {xlen}, {xlen})
declare <{n} x i{wide}> @llvm.vector.extract.v{n}i{wide}.nxv{part}i{wide}(<vscale x {part} x i{wide}>, i64)
vc = call <vscale x {part} x i{wide}> @llvm.vector.insert.nxv{part}i{wide}.v{n}i{wide}(<vscale x {part} x i{wide}> poison, <{n} x i{wide}> {{c}}, i64 0)
vb = call <vscale x {part} x i{bits}> @llvm.vector.insert.nxv{part}i{bits}.v{n}i{bits}(<vscale x {part} x i{bits}> poison, <{n} x i{bits}> {{b}}, i64 0)
sum = call <vscale x {part} x i{wide}> @llvm.riscv.{op}.nxv{part}i{wide}.i{bits}.nxv{part}i{bits}.{xlen}(<vscale x {part} x i{wide}> {{vc}}, i{bits} {{a}}, <vscale x {part} x i{bits}> {{vb}}, {xlen} {n}, {xlen} 3)
call <{n} x i{wide}> @llvm.vector.extract.v{n}i{wide}.nxv{part}i{wide}(<vscale x {part} x i{wide}> {{sum}}, i64 0)"""  # noqa: E501


def _rvv(name: str, dtype: str, register: int = 128) -> HardwareIntrinsic:
    """One register of `dtype`, by the bits that all of them have, into two of sums."""
    bits = dtypes.bits_of(dtype)
    n, sign = register // bits, "u" if dtypes.is_uint(dtype) else ""
    op, i, w = f"vwmacc{sign}", sign or "i", bits * 2
    return HardwareIntrinsic(
        name,
        _VWMACC.format(part=64 // bits, n=n, bits=bits, wide=w, op=op, xlen="i64"),
        "riscv_vector.h",
        f"__riscv_vse{w}_v_{i}{w}m2(c, __riscv_{op}_vx_{i}{w}m2(__riscv_vle{w}_v_{i}{w}m2(c, {n}), "
        f"*a, __riscv_vle{bits}_v_{i}{bits}m1(b, {n}), {n}), {n});",
        ("riscv64",), ("v",) if register == 128 else ("v", f"zvl{register}b"),
        0, n, 1, dtype, dtype, f"{sign}int{w}",
    )  # fmt: skip


def _hvx(name: str, llvm: str, call: str, a: str, b: str) -> HardwareIntrinsic:
    wide = "uint32" if a == b == "uint8" else "int32"
    return HardwareIntrinsic(
        name, f"llvm.hexagon.V6.{llvm}.acc.128B", "hexagon_types.h\nhvx_hexagon_protos.h",
        "HVX_Vector sums, rows;\n  __builtin_memcpy(&sums, c, 128);\n"
        "  __builtin_memcpy(&rows, b, 128);\n"
        f"  sums = {call}(sums, Q6_V_vsplat_R(slw_word32(a)), rows);\n"
        "  __builtin_memcpy(c, &sums, 128);",
        _HEXAGON, ("hvx-length128b",), 0, 32, 4, a, b, wide, "int32x32",
    )  # fmt: skip


HARDWARE: dict[str, HardwareIntrinsic] = {
    entry.name: entry
    for entry in (
        _x86("x86.vnni", "llvm.x86.avx512.vpdpbusd.512", 512, ("avx512vnni",),
             "_mm512_dpbusd_epi32"),
        _x86("x86.vnni.256", "llvm.x86.avx512.vpdpbusd.256", 256, ("avx512vnni", "avx512vl"),
             "_mm256_dpbusd_epi32"),
        _x86("x86.avxvnni", "llvm.x86.avx512.vpdpbusd.256", 256, ("avxvnni",),
             "_mm256_dpbusd_avx_epi32"),
        _signed("x86.vnni.signed", 512, ("avx512vnni",), "_mm512_dpbusd_epi32"),
        _signed("x86.vnni.signed.256", 256, ("avx512vnni", "avx512vl"), "_mm256_dpbusd_epi32"),
        _signed("x86.avxvnni.signed", 256, ("avxvnni",), "_mm256_dpbusd_avx_epi32"),
        HardwareIntrinsic(
            "x86.maddubs.signed", _MADDUBS, "immintrin.h",
            "_mm256_storeu_si256((__m256i*)c, _mm256_add_epi32("
            "_mm256_loadu_si256((const __m256i*)c), _mm256_madd_epi16(_mm256_maddubs_epi16("
            "_mm256_loadu_si256((const __m256i*)b), _mm256_set1_epi32(slw_word32(a))), "
            "_mm256_set1_epi16(1))));",
            _X86, ("avx2",), 0, 8, 4, "int8", "uint8", "int32", temporaries=2, most_b=127,
        ),
        HardwareIntrinsic(
            "x86.maddubs.signs", MADDUBS_SIGNS, "immintrin.h",
            "const __m256i w = _mm256_loadu_si256((const __m256i*)b);\n"
            "  _mm256_storeu_si256((__m256i*)c, _mm256_add_epi32("
            "_mm256_loadu_si256((const __m256i*)c), _mm256_madd_epi16(_mm256_maddubs_epi16("
            "_mm256_abs_epi8(w), _mm256_sign_epi8(_mm256_set1_epi32(slw_word32(a)), w)), "
            "_mm256_set1_epi16(1))));",
            _X86, ("avx2",), 0, 8, 4, "int8", "int8", "int32", temporaries=4, min_a=-127,
        ),
        _taps("x86.taps.vnni", 512, ("avx512vnni", "avx512bw"), "_mm512_dpbusd_epi32"),
        _taps("x86.taps.vnni.256", 256, ("avx512vnni", "avx512vl"), "_mm256_dpbusd_epi32"),
        _taps("x86.taps.avxvnni", 256, ("avxvnni",), "_mm256_dpbusd_avx_epi32"),
        HardwareIntrinsic(
            "x86.taps.pmaddwd", pairs_text(32, "x86.avx2.pmadd.wd"), "immintrin.h", pairs_in_c(32),
            _X86, ("avx2",), 0, 16, 2, "int16", "int16", "int32", taps=True,
        ),
        HardwareIntrinsic(
            "x86.taps.pmaddwd.sse", pairs_text(16, "x86.sse2.pmadd.wd"), "immintrin.h",
            pairs_in_c(16), _X86, ("sse2",), 0, 8, 2, "int16", "int16", "int32", taps=True,
        ),
        _pmaddwd("x86.pmaddwd", "avx2", 256),
        _pmaddwd("x86.pmaddwd.sse", "sse2", 128),
        _pmaddwd("x86.pmaddwd.bytes", "avx2", 256, "int8"),
        HardwareIntrinsic(
            "x86.bf16", "llvm.x86.avx512bf16.dpbf16ps.512", "immintrin.h",
            "_mm512_storeu_ps(c, _mm512_dpbf16_ps(_mm512_loadu_ps(c), "
            "(__m512bh)_mm512_set1_epi32(slw_word32(a)), "
            "(__m512bh)_mm512_loadu_si512((const void*)b)));",
            _X86, ("avx512bf16",), 0, 16, 2, "bfloat16", "bfloat16", "float32", "bfloat16x32",
        ),
        _wasm_dot("wasm.dot", "int16"),
        _wasm_dot("wasm.dot.bytes", "int8"),
        HardwareIntrinsic(
            "wasm.taps.dot", pairs_text(16, "wasm.dot"), "wasm_simd128.h", WASM_PAIRS_IN_C,
            _WASM, ("simd128",), 0, 8, 2, "int16", "int16", "int32", taps=True,
        ),
        _smull("neon.smull", _ARM64),
        _smull("neon32.vmull", _ARM32),
        _smull4("neon.smull.words", _ARM64),
        _smull4("neon32.vmull.words", _ARM32),
        _smlal_taps("neon.taps.smlal", _ARM64, 16),
        _smlal_taps("neon32.taps.vmlal", _ARM32, 8),
        _neon("neon.sdot", "dotprod", "int8", "vdotq"),
        _neon("neon.udot", "dotprod", "uint8", "vdotq"),
        HardwareIntrinsic(
            "neon.bfdot", _BFDOT, "arm_neon.h",
            "vst1q_f32(c, vbfdotq_f32(vld1q_f32(c), "
            "vreinterpretq_bf16_s32(vdupq_n_s32(slw_word32(a))), "
            "vreinterpretq_bf16_u16(vld1q_u16((const uint16_t*)b))));",
            _ARM64, ("bf16",), 0, 4, 2, "bfloat16", "bfloat16", "float32",
        ),
        HardwareIntrinsic(
            "neon.bfmmla", _BFMMLA, "arm_neon.h",
            "vst1q_f32(c, vbfmmlaq_f32(vld1q_f32(c), "
            "vreinterpretq_bf16_u16(vld1q_u16((const uint16_t*)a)), "
            "vreinterpretq_bf16_u16(vld1q_u16((const uint16_t*)b))));",
            _ARM64, ("bf16",), 2, 2, 4, "bfloat16", "bfloat16", "float32",
        ),
        _neon("neon.smmla", "i8mm", "int8", "vmmlaq"),
        _neon("neon.ummla", "i8mm", "uint8", "vmmlaq"),
        _dsp("arm.smlad"),
        _dsp("arm.smladx", mirrored=True),
        _dsp("arm.smlald", wide="int64"),
        _smlad4("arm.smlad4.s8", "int8", "sxtb16"),
        _smlad4("arm.smlad4.u8", "uint8", "uxtb16"),
        _mve("mve.vmladava.s8", "int8", "vmladavaq_s8"),
        _mve("mve.vmladava.u8", "uint8", "vmladavaq_u8"),
        _mve("mve.vmladava.s16", "int16", "vmladavaq_s16"),
        _mve("mve.vmladava.u16", "uint16", "vmladavaq_u16"),
        _rvv("rvv.vwmacc.s8", "int8"),
        _rvv("rvv.vwmacc.s16", "int16"),
        _rvv("rvv.vwmacc.s16.256", "int16", 256),
        _rvv("rvv.vwmacc.u8", "uint8"),
        _rvv("rvv.vwmacc.u16", "uint16"),
        _hvx("hvx.vrmpy.u8s8", "vrmpybusv", "Q6_Vw_vrmpyacc_VwVubVb", "uint8", "int8"),
        _hvx("hvx.vrmpy.s8", "vrmpybv", "Q6_Vw_vrmpyacc_VwVbVb", "int8", "int8"),
        _hvx("hvx.vrmpy.u8", "vrmpyubv", "Q6_Vuw_vrmpyacc_VuwVubVub", "uint8", "uint8"),
    )
}  # fmt: skip
