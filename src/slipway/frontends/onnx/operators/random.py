"""Random numbers: a hash of each element's position and the node's seed, the same in every run.

A compiled model gives the same result twice.  The bits are a mixing function's that passes the
usual tests of avalanche (two multiplications and three shifts of 32 bits); normal numbers are made
of two uniform ones (Box and Muller).
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.arithmetic import dtype_of
from slipway.relay.expr import Constant
from slipway.relay.op_registry import const
from slipway.relay.open_dims import has_open

_DTYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@converter("RandomNormal", "RandomNormalLike")
def random_normal(node: NodeView) -> Any:
    """Normal numbers of a mean and a scale."""
    first, second = _uniform(node, 0, 2), _uniform(node, 1, 2)
    radius = relay.sqrt(relay.multiply(const(np.float32(-2)), relay.log(first)))
    angle = relay.multiply(const(np.float32(2 * math.pi)), second)
    drawn = relay.multiply(radius, relay.cos(angle))
    scale, mean = np.float32(node.attr("scale", 1.0)), np.float32(node.attr("mean", 0.0))
    return _shaped(node, relay.add(relay.multiply(drawn, const(scale)), const(mean)))


@converter("RandomUniform", "RandomUniformLike")
def random_uniform(node: NodeView) -> Any:
    """Uniform numbers between two ends."""
    low, high = np.float32(node.attr("low", 0.0)), np.float32(node.attr("high", 1.0))
    drawn = relay.multiply(_uniform(node, 0, 1), const(np.float32(high - low)))
    return _shaped(node, relay.add(drawn, const(low)))


@converter("Bernoulli")
def bernoulli(node: NodeView) -> Any:
    """One with each element's probability.

    ONNX's own definition by other operators has ones and zeros the other way round than its text
    and its runtimes.
    """
    drawn = relay.reshape(_uniform(node, 0, 1), _shape(node))
    ones = relay.less(drawn, relay.cast(node.input(0), "float32"))
    given = node.attr("dtype")
    return relay.cast(ones, node.type().dtype if given is None else dtype_of(node, given))


@converter("Multinomial")
def multinomial(node: NodeView) -> Any:
    """Classes drawn with the probabilities whose logarithms a row of the input holds.

    A number drawn lies between the sums of the probabilities before a class and with it.  The sums
    are divided by the last, which is 1 then and above each number drawn; a class of probability
    zero ends where it begins and is never met.
    """
    given, count = node.type(), int(node.attr("sample_size", 1))
    dtype = dtype_of(node, node.attr("dtype", 6))
    if given.rank not in (1, 2) or count < 1 or dtype not in ("int32", "int64"):
        raise node.unsupported(f"it draws {count} of {given} as {dtype}")
    rows, classes = (1, *given.shape)[-2:]
    scores = relay.reshape(relay.cast(node.input(0), "float32"), (rows, classes))
    sums = relay.cumsum(relay.nn.softmax(scores, axis=1), axis=1)
    sums = relay.divide(sums, relay.strided_slice(sums, [classes - 1], [classes], axes=[1]))
    drawn = relay.reshape(_uniform(node, 0, 1, (rows, count)), (rows, count))
    found = relay.searchsorted(sums, drawn, right=True, dtype=dtype)
    return relay.reshape(found, (count,)) if given.rank == 1 else found


@converter("Dropout")
def dropout(node: NodeView) -> Any:
    """The input itself, with a mask that is all true; while training, a part of it is zero.

    Whether it trains, and the part that is left out, may be inputs of the model.
    """
    x = node.input(0)
    training = node.input(2) if node.opset >= 12 and node.has(2) else const(False)
    ratio = node.input(1) if node.has(1) else const(np.float32(0.5))
    if any(isinstance(v, Constant) and not v.array.any() for v in (training, ratio)):
        # A mask of open size is left out: mostly nothing reads it.
        masked = any(node.outputs[1:]) and not has_open(node.type())
        return [x, const(np.ones(node.type().shape, bool))] if masked else x
    part = relay.reshape(relay.cast(ratio, "float32"), ())
    part = relay.where(relay.reshape(training, ()), part, const(np.float32(0)))
    mask = relay.greater_equal(relay.reshape(_uniform(node, 0, 1), _shape(node)), part)
    scale = relay.divide(const(np.float32(1)), relay.subtract(const(np.float32(1)), part))
    dtype = node.type().dtype
    kept = relay.multiply(x, relay.cast(scale, dtype))
    dropped = relay.where(mask, kept, const(0, dtype))
    return [dropped, mask] if any(node.outputs[1:]) else dropped


def _shape(node: NodeView) -> tuple[Any, ...]:
    return tuple(node.attr("shape")) if node.attr("shape") is not None else node.type().shape


def _shaped(node: NodeView, drawn: Any) -> Any:
    given = node.attr("dtype")
    like = node.type().dtype if node.inputs else "float32"
    dtype = like if given is None else _DTYPES.get(given)
    if dtype is None or not dtype.startswith(("float", "bfloat")):
        raise node.unsupported("its numbers are of a type that is no float")
    shaped = relay.reshape(drawn, _shape(node))
    return shaped if dtype == "float32" else relay.cast(shaped, dtype)


def _uniform(node: NodeView, which: int, of: int, shape: tuple[Any, ...] | None = None) -> Any:
    """Return one number in (0, 1) for each element, the `which`-th of its `of` draws."""
    seed = node.attr("seed")
    text = node.name if seed is None else repr(float(seed))
    count: Any = 1
    for extent in _shape(node) if shape is None else shape:
        count = count * extent
    position = relay.cast(relay.arange(0, count, 1, "int32"), "uint32")
    bits: Any = relay.add(
        relay.multiply(position, _word(of)), _word(which + zlib.crc32(text.encode()))
    )
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None)):
        bits = relay.bitwise_xor(bits, relay.right_shift(bits, _word(shift)))
        if factor is not None:
            bits = relay.multiply(bits, _word(factor))
    top = relay.cast(relay.right_shift(bits, _word(9)), "float32")  # and a half, which is exact
    return relay.multiply(relay.add(top, const(np.float32(0.5))), const(np.float32(2.0**-23)))


def _word(value: int) -> Any:
    return const(np.uint32(value & 0xFFFFFFFF))
