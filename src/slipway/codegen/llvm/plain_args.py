"""The arguments that a function nearly always gets, recognised in a few instructions.

`slw_check_args` (glue/packed.c) reads what it compares with from a table and is written to be
short, not fast: its 40 ns a call are an eighth of a model of a few microseconds.  Before it, code
for this one function compares: as many arguments as parameters, each a DLTensor pointer on the
function's device, of its type, rank and shape, compact without strides, aligned.  Whatever is not
so goes to `slw_check_args`, which takes more, and says what is wrong.  Rank and type are read as
one number: all targets with 64-bit pointers have the low byte first.
"""

from __future__ import annotations

import math

from slipway.codegen.llvm.writer import Writer
from slipway.codegen.packed import HEAD, KIND_TENSOR, ROW, Signature
from slipway.target import Target

LOW = 0xFFFFFFFF  # the first of an extent's two words
TENSOR_POINTER = 7  # kTVMFFIDLTensorPtr
ANY_BYTES, PAYLOAD = 16, 8
DEVICE, RANK, SHAPE, STRIDES, BYTE_OFFSET = 8, 16, 24, 32, 40  # of a DLTensor with 64-bit pointers
MOST_BYTES = 1 << 17  # of all arguments: with more the call is long, and the code takes LLVM 7 ms


def takes_plain_args(signature: Signature, target: Target) -> bool:
    """Return whether all parameters are tensors of few bytes, and code may be longer."""
    triple = target.parsed_triple
    if target.pointer_bits != 64 or triple.is_small:
        return False
    if signature.symbols:
        return False
    rows = _rows(signature)
    return bool(rows) and (
        all(row[0] == KIND_TENSOR and not row[9] for row in rows)
        and sum(_bytes(signature, row) for row in rows) <= MOST_BYTES
    )


def _bytes(signature: Signature, row: list[int]) -> int:
    return math.prod(_extents(signature, row)) * row[3] * row[4] // 8


def _extents(signature: Signature, row: list[int]) -> list[int]:
    words = signature.words[row[8] : row[8] + 2 * row[5]]
    return [low & LOW | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]


def _rows(signature: Signature) -> list[list[int]]:
    count = signature.words[0]
    return [signature.words[HEAD + i * ROW : HEAD + (i + 1) * ROW] for i in range(count)]


def put_plain_args(w: Writer, signature: Signature, good: str, other: str) -> None:
    """Branch to `good` with the addresses in %values, or to `other` with nothing done."""
    rows = _rows(signature)
    kinds = [w.put(f"xor i32 %n, {len(rows)}")]
    for i in range(len(rows)):
        at = w.put(f"getelementptr i8, ptr %args, i64 {ANY_BYTES * i}")
        kinds.append(w.put(f"xor i32 {w.put(f'load i32, ptr {at}')}, {TENSOR_POINTER}"))
    _go_on(w, "i32", kinds, other)
    tensors = []
    heads: list[str] = []
    for i, row in enumerate(rows):
        at = w.put(f"getelementptr i8, ptr %args, i64 {ANY_BYTES * i + PAYLOAD}")
        tensors.append(w.put(f"load ptr, ptr {at}"))
        wanted = row[5] | row[2] << 32 | row[3] << 40 | row[4] << 48
        head = _field(w, tensors[-1], RANK, "i64")
        heads.append(w.put(f"xor i64 {head}, {wanted}"))
        heads.append(_field(w, tensors[-1], STRIDES, "i64"))
        if row[6] >= 0:
            device = _field(w, tensors[-1], DEVICE, "i32")
            heads.append(w.put(f"zext i32 {w.put(f'xor i32 {device}, {row[6]}')} to i64"))
    _go_on(w, "i64", heads, other)
    sizes: list[str] = []
    for i, (tensor, row) in enumerate(zip(tensors, rows, strict=True)):
        shape = _field(w, tensor, SHAPE, "ptr")
        for d, wanted in enumerate(_extents(signature, row)):
            extent = w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr {shape}, i64 {d}')}")
            sizes.append(w.put(f"xor i64 {extent}, {wanted}"))
        data, offset = _field(w, tensor, 0, "i64"), _field(w, tensor, BYTE_OFFSET, "i64")
        address = w.put(f"add i64 {data}, {offset}")
        sizes.append(w.put(f"and i64 {address}, {row[7] - 1}"))
        w.do(f"store i64 {address}, ptr {w.put(f'getelementptr i64, ptr %values, i64 {i}')}")
    _go_on(w, "i64", sizes, other, good)


def _field(w: Writer, tensor: str, offset: int, kind: str) -> str:
    at = w.put(f"getelementptr i8, ptr {tensor}, i64 {offset}")
    return w.put(f"load {kind}, ptr {at}")


def _go_on(w: Writer, kind: str, differences: list[str], other: str, good: str = "") -> None:
    """Leave for `other` unless all differences are zero; go on at `good`, or here."""
    total = differences[0]
    for difference in differences[1:]:
        total = w.put(f"or {kind} {total}, {difference}")
    here = good or w.label("same")
    w.branch_if(w.put(f"icmp eq {kind} {total}, 0"), here, other)
    if not good:
        w.start(here)
