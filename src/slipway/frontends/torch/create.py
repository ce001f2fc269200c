"""Constants and tensors from shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.budget import take_table
from slipway.frontends.torch.converters import NodeView, converter, number, refuse
from slipway.relay.dims import is_open
from slipway.relay.expr import Expr
from slipway.relay.op_registry import const

MOST_FOLDED = 1 << 16  # elements; a longer sequence is computed when it is needed

VALUES = {
    "zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1,
    "empty": 0, "empty_like": 0, "new_empty": 0, "empty_strided": 0, "new_empty_strided": 0,
    "empty_permuted": 0,
}  # fmt: skip


@converter(*VALUES, "full", "full_like", "new_full", "scalar_tensor")
def full(node: NodeView) -> Any:
    """One value everywhere; what torch leaves undefined is zero."""
    kind = node.out
    value = VALUES.get(node.kind, 0)
    if node.kind not in VALUES:
        value = node.arguments["s" if node.kind == "scalar_tensor" else "fill_value"]
    if isinstance(value, Expr) or is_open(value):
        return relay.broadcast_to(node.as_tensor(value, kind.dtype), kind.shape)
    scalar = const(np.asarray(value).astype(kind.dtype))
    if not kind.shape:
        return scalar
    if not any(map(is_open, kind.shape)) and kind.size <= MOST_FOLDED:
        return const(np.full(kind.shape, scalar.array, kind.dtype))
    return relay.full(scalar, kind.shape, kind.dtype)


@converter("arange")
def arange(node: NodeView) -> Any:
    """An arithmetic sequence."""
    start, step = node.arg("start", 0), node.arg("step", 1)
    if is_open(node.out.shape[0]):
        if is_open(start):
            dtype, extent = node.out.dtype, node.out.shape[0]
            steps = relay.multiply(relay.arange(0, extent, 1, dtype), number(step, dtype))
            return relay.add(steps, node.as_tensor(start, dtype))
        return relay.arange(start, start + node.out.shape[0] * step, step, node.out.dtype)
    take_table(node.out.size)
    values = start + np.arange(node.out.size) * step
    return const(values.astype(node.out.dtype))


@converter("linspace")
def linspace(node: NodeView) -> Any:
    """Equally far numbers between two ends."""
    take_table(node.out.size)
    ends, dtype = (node.arguments["start"], node.arguments["end"]), node.out.dtype
    count = int(node.arg("steps"))
    if not any(isinstance(end, Expr) for end in ends):
        return const(np.linspace(*ends, count).astype(dtype))
    if not dtypes.is_float(dtype):
        raise node.unsupported("an end is a tensor and the result integers: pass numbers")
    first, last = (node.as_tensor(end, dtype) for end in ends)
    part = np.linspace(0, 1, count)
    return relay.add(
        relay.multiply(first, const((1 - part).astype(dtype))),
        relay.multiply(last, const(part.astype(dtype))),
    )


@converter("eye")
def eye(node: NodeView) -> Any:
    """Ones on the diagonal."""
    rows, columns = node.out.shape
    if is_open(rows) or is_open(columns):
        positions = relay.reshape(relay.arange(0, rows, dtype="int32"), (rows, 1))
        same = relay.equal(positions, relay.arange(0, columns, dtype="int32"))
        return relay.cast(same, node.out.dtype)
    take_table(*node.out.shape)
    return const(np.eye(node.out.shape[0], node.out.shape[1], dtype=node.out.dtype))


@converter("tril", "triu")
def triangle(node: NodeView) -> Any:
    """The lower or upper triangle, zero elsewhere: a constant mask of axes that are known."""
    x = node.input()
    if is_open(node.arg("diagonal", 0)):
        return _along_open_diagonal(node, x)
    if any(map(is_open, x.tensor_type.shape[-2:])):
        return relay.trilu(x, int(node.arg("diagonal", 0)), node.kind == "triu")
    take_table(*x.tensor_type.shape[-2:])
    keep = np.ones(x.tensor_type.shape[-2:], bool)
    diagonal = int(node.arg("diagonal", 0))
    keep = (np.tril if node.kind == "tril" else np.triu)(keep, diagonal)
    if x.tensor_type.dtype == "bool":
        return relay.logical_and(const(keep), x)
    return relay.where(const(keep), x, const(np.zeros((), x.tensor_type.dtype)))


def _along_open_diagonal(node: NodeView, x: Expr) -> Any:
    """Return a triangle whose diagonal is a size, as masks over a cache have it."""
    rows, columns = x.tensor_type.shape[-2:]
    row = relay.reshape(relay.arange(0, rows, 1, "int64"), (rows, 1))
    distance = relay.subtract(relay.arange(0, columns, 1, "int64"), row)
    compare = relay.less_equal if node.kind == "tril" else relay.greater_equal
    keep = compare(distance, node.as_tensor(node.arg("diagonal"), "int64"))
    return relay.where(keep, x, const(np.zeros((), x.tensor_type.dtype)))


@converter("tril_indices", "triu_indices")
def triangle_indices(node: NodeView) -> Any:
    """The indices of a triangle's elements."""
    function = np.tril_indices if node.kind == "tril_indices" else np.triu_indices
    positions = function(int(node.arg("row")), int(node.arg("offset", 0)), int(node.arg("col")))
    return const(np.stack(positions).astype(node.out.dtype))


@converter("fft_fftfreq", "fft_rfftfreq")
def frequencies(node: NodeView) -> Any:
    """The frequencies of a transform's bins."""
    function = np.fft.fftfreq if node.kind == "fft_fftfreq" else np.fft.rfftfreq
    return const(function(int(node.arg("n")), float(node.arg("d", 1.0))).astype(node.out.dtype))


refuse(
    "rand", "randn", "rand_like", "randn_like", "randint", "bernoulli", "multinomial",
    why="random numbers are not served",
)  # fmt: skip
