"""Random numbers by counting: threefry, in classic TVM's encoding, and what is drawn with it.

A key is ten words: four of the key proper, two of the path (which splits led here, a bit for
each), two of the counter, and two with one bit set, where the next split writes into the path.
Numbers are the hash of path and counter under the key (Threefry-4x64 of Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3", 20 rounds, without the key added behind the last); block i
counts i on in each of the four words.  A key whose counter or path is used up is hashed into a new
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import builder, ops
from slipway.ir.node import node
from slipway.relay.expr import TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, const, register_op
from slipway.relay.ops.build import call, typed
from slipway.relay.ops.checks import extents, need_float, whole
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, Expr, ExprLike

WORDS = 10
_PARITY = 0x1BD11BDAA9FC1A22
_TURNS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_ALL = 2**64 - 1
_FIRST, _SECOND = 1 << 63, 1 << 62  # bits of a path, the leftmost first
KEY = TensorType((WORDS,), "uint64")


def _hash(
    key: Sequence[Any],
    counter: Sequence[Any],
    word: Callable[[int], Any],
    keep: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
    """Return the four words of a block; `word` makes constants, `keep` names what is used twice."""
    parity = word(_PARITY)
    for part in key:
        parity = parity ^ part
    whole, state = [*key, keep(parity)], list(counter)
    for group in range(5):
        state = [x + whole[(group + n) % 5] for n, x in enumerate(state)]
        state[3] = keep(state[3] + word(group))
        state[:3] = map(keep, state[:3])
        for step in range(4):
            for pair, rotation in enumerate(_TURNS[(4 * group + step) % 8]):
                total = keep(state[2 * pair] + state[2 * pair + 1])
                other = state[2 * pair + 1]
                rotated = (other << word(rotation)) | (other >> word(64 - rotation))
                state[2 * pair : 2 * pair + 2] = total, keep(total ^ rotated)
            state[1], state[3] = state[3], state[1]
    return state


def _blocks(count: int) -> tuple[int, int]:
    """Return how many whole blocks `count` numbers are, and what its words add to the counter."""
    return count // 4, -(-count // 4) * 4


def _need_key(key: TensorType) -> None:
    if key != KEY:
        raise BadArgument("key", f"must be {KEY}, as threefry_key makes, got {key}")


# -- generate --------------------------------------------------------------------------------------


@node
class ThreefryGenerateAttrs(Attrs):
    """The shape of the numbers."""

    out_shape: tuple[int, ...]


GENERATE = register_op(
    "random.threefry_generate", "key", attrs=ThreefryGenerateAttrs, pattern=OpPattern.OPAQUE,
    flops_per_element=60, doc="The next key, and random words (uint64) of a shape.",
)  # fmt: skip


@GENERATE.type_relation
def _generate_type(attrs: ThreefryGenerateAttrs, key: TensorType) -> Type:
    _need_key(key)
    if any(not isinstance(d, int) or d < 0 for d in attrs.out_shape):
        raise BadArgument("shape", f"must be of sizes from 0 on, is {attrs.out_shape}")
    return TupleType((KEY, TensorType(attrs.out_shape, "uint64")))


@GENERATE.reference
def _generate_reference(attrs: ThreefryGenerateAttrs, key: Array) -> Any:
    count = math.prod(attrs.out_shape)
    whole, step = _blocks(count)
    used = key.copy()
    if int(key[7]) >= _ALL - count:
        used[4:8] = 0
        if key[8] == 0 and key[9] == 0:
            used[:4] = _hash(list(key[:4]), [np.uint64(_ALL)] * 4, np.uint64)
            used[8:] = _FIRST, 0
        else:
            used[4:6] = key[4:6] | key[8:]
            used[8:] = _shifted(key[8:])
    blocks = np.arange(whole, dtype=np.uint64)
    counters = [np.append(w + blocks, w) for w in used[4:8]]
    counters[3][whole] += np.uint64(4 * whole)
    found = np.stack(_hash(list(used[:4]), counters, np.uint64), 1).reshape(-1)
    used[6] = 0
    used[7] += np.uint64(step)
    return used, found[:count].reshape(attrs.out_shape)


def _shifted(position: Array) -> tuple[int, int]:
    """Return where the path goes on behind a position: one bit to the right of 128."""
    whole = (int(position[0]) << 64 | int(position[1])) >> 1
    return whole >> 64, whole & _ALL


def _word(value: int) -> Any:
    return ops.const(value, "uint64")


def _used_up(key: Any) -> Any:
    zero = _word(0)
    return ops.logical_and(ops.equal(key[8], zero), ops.equal(key[9], zero))


def _store(to: Any, begin: int, values: Sequence[Any]) -> None:
    for number, value in enumerate(values):
        to[begin + number] = value


def _step_right(key: Any, to: Any) -> None:
    left = key[8]
    to[9] = (key[9] >> _word(1)) | (left << _word(63))
    to[8] = left >> _word(1)


@GENERATE.compute
def _generate_compute(
    attrs: ThreefryGenerateAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    count = math.prod(attrs.out_shape)
    whole, step = _blocks(count)

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        key, after = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        found = ib.buffer_ptr(outs[1].replace(shape=(ops.const(max(count, 1)),), strides=()))
        used = ib.allocate("uint64", (WORDS,), "used")
        zero = _word(0)

        def named(value: Any) -> Any:
            return ib.let("word", value)

        with ib.if_scope(key[7] < _word(_ALL - count)):
            _store(used, 0, [key[n] for n in range(WORDS)])
        with ib.else_scope():
            with ib.if_scope(_used_up(key)):
                words = [key[n] for n in range(4)]
                fresh = _hash(words, [_word(_ALL)] * 4, _word, named)
                _store(used, 0, [*fresh, zero, zero, zero, zero, _word(_FIRST), zero])
            with ib.else_scope():
                path = [key[4] | key[8], key[5] | key[9]]
                _store(used, 0, [*(key[n] for n in range(4)), *path, zero, zero])
                _step_right(key, used)

        def block(number: Any, position: Any, words: int) -> None:
            begin = [used[4 + n] + number for n in range(4)]
            if words < 4:  # of the block that is not whole, the last word alone counts on
                begin = [used[4], used[5], used[6], used[7] + _word(4 * whole)]
            made = _hash([used[n] for n in range(4)], begin, _word, named)
            for n, value in enumerate(made[:words]):
                found[position + n] = value

        if whole:
            with ib.for_range(0, whole, "i") as i:
                block(i.astype("uint64"), i * 4, 4)
        if count % 4:
            block(zero, ops.const(4 * whole), count % 4)
        _store(after, 0, [used[n] for n in range(6)])
        _store(after, 6, [zero, used[7] + _word(step), used[8], used[9]])
        return ib.get()

    shapes = [t.shape for t in out_types]
    made = te().extern(shapes, inputs, statements, "threefry_generate", ["uint64", "uint64"])
    return list(made)


@GENERATE.make
def threefry_generate(key: ExprLike, shape: Sequence[int]) -> TupleWrapper:
    """Return the key to go on with, and random words (uint64) of `shape`."""
    made = GENERATE(key, attrs=ThreefryGenerateAttrs(extents("shape", shape)))
    return TupleWrapper(made, 2)


def _some_key(position: int = _FIRST, counter: int = 3) -> Callable[[Any], Any]:
    def make(rng: np.random.Generator) -> list[Any]:
        words = rng.integers(0, 2**63, WORDS).astype(np.uint64)
        words[4:] = 0, 0, 0, counter, position, 0
        return [words]

    return make


for _shape, _made in (
    ((2, 8), _some_key()), ((7,), _some_key()), ((3,), _some_key(2, _ALL - 2)),
    ((0, 3), _some_key()), ((5,), _some_key(0, _ALL - 2)), ((8,), _some_key(1, _ALL - 9)),
):  # fmt: skip
    GENERATE.sample_case((WORDS,), attrs=ThreefryGenerateAttrs(_shape), make=_made)


# -- split -----------------------------------------------------------------------------------------

SPLIT = register_op(
    "random.threefry_split", "key", pattern=OpPattern.OPAQUE, flops_per_element=30,
    doc="Two keys of which numbers are drawn that have nothing to do with each other.",
)  # fmt: skip


@SPLIT.type_relation
def _split_type(attrs: None, key: TensorType) -> Type:
    _need_key(key)
    return TupleType((KEY, KEY))


@SPLIT.reference
def _split_reference(attrs: None, key: Array) -> Any:
    left, right = key.copy(), key.copy()
    if key[8] == 0 and key[9] == 0:
        left[:4] = right[:4] = _hash(list(key[:4]), list(key[4:8]), np.uint64)
        left[4:], right[4:] = (0, 0, 0, 0, _SECOND, 0), (_FIRST, 0, 0, 0, _SECOND, 0)
        return left, right
    right[4:6] = key[4:6] | key[8:]
    left[8:] = right[8:] = _shifted(key[8:])
    return left, right


@SPLIT.compute
def _split_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = builder.create()
        key, left, right = map(ib.buffer_ptr, (ins[0], *outs))
        zero = _word(0)
        words = [key[n] for n in range(4)]
        with ib.if_scope(_used_up(key)):
            counter = [key[4 + n] for n in range(4)]
            fresh = _hash(words, counter, _word, lambda value: ib.let("word", value))
            end = [zero, zero, zero, _word(_SECOND), zero]
            _store(left, 0, [*fresh, zero, *end])
            _store(right, 0, [*fresh, _word(_FIRST), *end])
        with ib.else_scope():
            _store(left, 0, [key[n] for n in range(8)])
            _store(right, 0, [*words, key[4] | key[8], key[5] | key[9], key[6], key[7]])
            for to in (left, right):
                _step_right(key, to)
        return ib.get()

    made = te().extern([KEY.shape] * 2, inputs, statements, "threefry_split", ["uint64"] * 2)
    return list(made)


@SPLIT.make
def threefry_split(key: ExprLike) -> TupleWrapper:
    """Return two keys that are to be used in place of `key`."""
    return TupleWrapper(SPLIT(key), 2)


for _made in (_some_key(), _some_key(1), _some_key(0)):
    SPLIT.sample_case((WORDS,), make=_made)


# -- compositions ----------------------------------------------------------------------------------


def threefry_key(seed: int) -> Expr:
    """Return the key of a seed, a number below 2**256."""
    number = whole("seed", seed, 0, 2**256 - 1)
    words = [number >> 64 * n & _ALL for n in range(4)]
    return const(np.array([*words, 0, 0, 0, 0, _FIRST, 0], np.uint64))


def uniform(
    key: ExprLike, shape: Sequence[int], dtype: str = "float32", low: ExprLike = 0.0,
    high: ExprLike = 1.0,
) -> TupleWrapper:  # fmt: skip
    """Return the key to go on with, and numbers from `low` on to below `high`.

    Where few numbers of the dtype lie between the two, rounding may reach `high`.
    """
    if dtype not in ("float32", "float64"):
        raise BadArgument("dtype", f"must be float32 or float64, is {dtype}")
    bits, fraction = (32, 23) if dtype == "float32" else (64, 52)
    kind, shape = f"uint{bits}", extents("shape", shape)
    after, drawn = threefry_generate(key, shape)
    drawn = call("right_shift", call("cast", drawn, kind), const(bits - fraction, kind))
    one = (1 << bits - fraction - 2) - 1 << fraction  # the bits of 1.0, whose fraction is drawn
    drawn = call("reinterpret", call("bitwise_or", drawn, const(one, kind)), dtype)
    drawn = call("subtract", drawn, const(1, dtype))
    low, high = (v if hasattr(v, "checked_type") else const(v, dtype) for v in (low, high))
    span = call("subtract", high, low)
    drawn = call("add", call("multiply", drawn, span), low)
    return TupleWrapper(as_expr([after, drawn]), 2)


def normal(
    key: ExprLike, shape: Sequence[int], dtype: str = "float32", mean: ExprLike = 0.0,
    scale: ExprLike = 1.0,
) -> TupleWrapper:  # fmt: skip
    """Return the key to go on with, and numbers of a normal distribution (Box and Muller's)."""
    after, drawn = uniform(key, (2, *extents("shape", shape)), dtype)
    first, second = (call("squeeze", part, [0]) for part in call("split", drawn, 2, 0))
    length = call("log", call("subtract", const(1, dtype), first))
    length = call("sqrt", call("multiply", const(-2, dtype), length))
    rotated = call("sin", call("multiply", const(2 * math.pi, dtype), second))
    mean, scale = (v if hasattr(v, "checked_type") else const(v, dtype) for v in (mean, scale))
    drawn = call("add", call("multiply", call("multiply", length, rotated), scale), mean)
    return TupleWrapper(as_expr([after, drawn]), 2)


def multinomial(key: ExprLike, probs: ExprLike, num_samples: int) -> TupleWrapper:
    """Return the key to go on with, and positions (int32) drawn with what stands there in a row.

    Rows are along the last axis; what is not above zero is never drawn, for sums are divided by the
    last, which is above every number drawn then.
    """
    given, own = typed(probs)
    need_float("probs", own)
    if own.rank < 1:
        raise BadArgument("probs", f"must have an axis, got {own}")
    num_samples = whole("num_samples", num_samples, 1, 2**31 - 1)
    weights = call("maximum", call("cast", given, "float32"), const(0, "float32"))
    sums = call("cumsum", weights, axis=-1)
    sums = call("divide", sums, call("max", sums, axis=-1, keepdims=True))
    after, drawn = uniform(key, (*own.shape[:-1], num_samples))
    above = call("subtract", call("expand_dims", sums, -1), call("expand_dims", drawn, -2))
    above = call("where", call("greater", above, const(0, "float32")), above, const(1, "float32"))
    return TupleWrapper(as_expr([after, call("argmin", above, axis=-2)]), 2)
