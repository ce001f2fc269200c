"""Values that threads of a warp hand each other without memory: shuffles, by their classic names.

``Call(dtype, "warp_shuffle_down", (mask, value, position, width, warp))`` is the `value` of the
thread `position` threads on.  `width` threads, a power of two, are a row; where the thread wanted
is none of the row of who asks, that one has its own value.  "warp_shuffle_up" looks `position`
threads back, "warp_shuffle" at thread `position` of the row.  `mask` has a bit for each thread that
takes part, as CUDA wants it; `warp` is the number of threads in step.  All threads of a warp must
come to it together.
"""

from __future__ import annotations

from slipway import dtypes
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops

SHUFFLES = ("warp_shuffle", "warp_shuffle_up", "warp_shuffle_down")
EVERY_THREAD = 0xFFFFFFFF
_WORDS = ("int32", "uint32", "float32", "float64")  # languages hand these over as they are
_WIDENED = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "int32",
            "uint16": "int32", "float16": "float32", "bfloat16": "float32"}  # fmt: skip
_PAIRS = ("int64", "uint64")
EXCHANGED = frozenset((*_WORDS, *_WIDENED, *_PAIRS))


def is_shuffle(node: object) -> bool:
    """Return whether `node` is the call of a shuffle."""
    return isinstance(node, E.Call) and node.op in SHUFFLES


def width_of(node: E.Call) -> int:
    """Return how many threads are a row of a shuffle.  Raises CodegenError for no power of two."""
    width = ops.as_int(node.args[3])
    if width is None or width < 1 or width & (width - 1):
        raise CodegenError(
            f"{node.op} is of rows of {node.args[3]} threads; their number must be a constant and "
            "a power of two"
        )
    return width


def shuffled(op: str, value: E.PrimExpr, position: int, width: int, warp: int) -> E.Call:
    """Return the call of a shuffle in which all threads take part."""
    mask = E.IntImm("uint32", EVERY_THREAD)
    given = (mask, value, ops.const(position), ops.const(width), ops.const(warp))
    return E.Call(value.dtype, op, given)


def in_words(node: E.Call) -> E.PrimExpr:
    """Return a shuffle as one of a type that languages have, or as two; the same node: it is one.

    A wider type has every value of the narrow one.  Raises CodegenError for other types.
    """
    mask, value, *positions = node.args

    def of(part: E.PrimExpr) -> E.PrimExpr:
        return E.Call(part.dtype, node.op, (mask, part, *positions))

    if value.dtype in _WORDS:
        return node
    if value.dtype in _WIDENED:
        return E.Cast(value.dtype, of(E.Cast(_WIDENED[value.dtype], value)))
    if value.dtype not in _PAIRS:
        raise CodegenError(
            f"{node.op} hands over one value of {', '.join(sorted(EXCHANGED))}, not {value.dtype}"
        )
    whole = E.Var("whole", value.dtype)
    bits = dtypes.bits_of(value.dtype) // 2
    low = E.Cast("uint32", whole)
    high = E.Cast("uint32", ops.shift_right(whole, bits))
    both = ops.bitwise_or(
        E.Cast(value.dtype, of(low)), ops.shift_left(E.Cast(value.dtype, of(high)), bits)
    )
    return E.Let(whole, value, both)
