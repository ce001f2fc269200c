"""Texts of instruction sequences that multiply words of four bytes, where no instruction does.

c[j] += a[0] * b[j, 0] + a[1] * b[j, 1] + a[2] * b[j, 2] + a[3] * b[j, 3]
"""

# Bytes of both signs without such an instruction: the sign of each weight goes over to the data,
# which must not be -128.  128 * 127 * 2 fits 16 bits.
MADDUBS_SIGNS = """\
declare <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8>, <32 x i8>)
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
declare <32 x i8> @llvm.x86.avx2.psign.b(<32 x i8>, <32 x i8>)
declare <32 x i8> @llvm.abs.v32i8(<32 x i8>, i1)
word = bitcast <4 x i8> {a} to i32
one = insertelement <8 x i32> poison, i32 {word}, i32 0
all = shufflevector <8 x i32> {one}, <8 x i32> poison, <8 x i32> zeroinitializer
data = bitcast <8 x i32> {all} to <32 x i8>
sizes = call <32 x i8> @llvm.abs.v32i8(<32 x i8> {b}, i1 false)
signed = call <32 x i8> @llvm.x86.avx2.psign.b(<32 x i8> {data}, <32 x i8> {b})
pairs = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> {sizes}, <32 x i8> {signed})
sums = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> {pairs}, <16 x i16> splat (i16 1))
add <8 x i32> {c}, {sums}"""

# Four bytes of data with those of four outputs: two multiplications of eight bytes, whose products
# are added in pairs, twice.
_SMULL4 = """\
declare <8 x i16> @llvm.{multiply}.v8i16(<8 x i8>, <8 x i8>)
word = bitcast <4 x i8> {{a}} to i32
one = insertelement <2 x i32> poison, i32 {{word}}, i32 0
all = shufflevector <2 x i32> {{one}}, <2 x i32> poison, <2 x i32> zeroinitializer
data = bitcast <2 x i32> {{all}} to <8 x i8>
low = shufflevector <16 x i8> {{b}}, <16 x i8> poison, <8 x i32> <{low}>
high = shufflevector <16 x i8> {{b}}, <16 x i8> poison, <8 x i32> <{high}>
first = call <8 x i16> @llvm.{multiply}.v8i16(<8 x i8> {{low}}, <8 x i8> {{data}})
second = call <8 x i16> @llvm.{multiply}.v8i16(<8 x i8> {{high}}, <8 x i8> {{data}})
{pairs}"""
_PAIRS64 = """\
declare <4 x i32> @llvm.aarch64.neon.saddlp.v4i32.v8i16(<8 x i16>)
declare <4 x i32> @llvm.aarch64.neon.addp.v4i32(<4 x i32>, <4 x i32>)
p = call <4 x i32> @llvm.aarch64.neon.saddlp.v4i32.v8i16(<8 x i16> {first})
q = call <4 x i32> @llvm.aarch64.neon.saddlp.v4i32.v8i16(<8 x i16> {second})
sums = call <4 x i32> @llvm.aarch64.neon.addp.v4i32(<4 x i32> {p}, <4 x i32> {q})
add <4 x i32> {c}, {sums}"""
_PAIRS32 = """\
declare <4 x i32> @llvm.arm.neon.vpaddls.v4i32.v8i16(<8 x i16>)
declare <2 x i32> @llvm.arm.neon.vpadd.v2i32(<2 x i32>, <2 x i32>)
p = call <4 x i32> @llvm.arm.neon.vpaddls.v4i32.v8i16(<8 x i16> {first})
q = call <4 x i32> @llvm.arm.neon.vpaddls.v4i32.v8i16(<8 x i16> {second})
p0 = shufflevector <4 x i32> {p}, <4 x i32> poison, <2 x i32> <i32 0, i32 1>
p1 = shufflevector <4 x i32> {p}, <4 x i32> poison, <2 x i32> <i32 2, i32 3>
q0 = shufflevector <4 x i32> {q}, <4 x i32> poison, <2 x i32> <i32 0, i32 1>
q1 = shufflevector <4 x i32> {q}, <4 x i32> poison, <2 x i32> <i32 2, i32 3>
left = call <2 x i32> @llvm.arm.neon.vpadd.v2i32(<2 x i32> {p0}, <2 x i32> {p1})
right = call <2 x i32> @llvm.arm.neon.vpadd.v2i32(<2 x i32> {q0}, <2 x i32> {q1})
sums = shufflevector <2 x i32> {left}, <2 x i32> {right}, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
add <4 x i32> {c}, {sums}"""


def smull_text(wide: bool) -> str:
    """LLVM instructions for NEON as it was before it had dot products; `wide`: of 64-bit Arm."""
    return _SMULL4.format(
        multiply="aarch64.neon.smull" if wide else "arm.neon.vmulls",
        pairs=_PAIRS64 if wide else _PAIRS32,
        low=", ".join(f"i32 {i}" for i in range(8)),
        high=", ".join(f"i32 {i}" for i in range(8, 16)),
    )
