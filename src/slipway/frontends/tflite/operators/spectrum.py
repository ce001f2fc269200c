"""RFFT2D and what is done with its result.

A device has no complex numbers: while a file is read, a complex tensor is a real one with one more
axis at its end, the real and the imaginary part.  Converters of operators on complex data have
the operator's name behind "COMPLEX:".
"""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.fourier import fourier
from slipway.frontends.tflite.converters import NodeView, converter


@converter("RFFT2D")
def rfft2d(node: NodeView) -> Any:
    """The transform of the last two axes of real data, cut or filled with zeros to the lengths."""
    node.need_dtype("float32")
    height, width = node.integers(1)
    rank = len(node.shape())
    if rank < 2 or min(height, width) < 1:
        raise node.unsupported(f"its data is {node.shape()}, its lengths are {(height, width)}")
    check_table(node, width, width + 2)
    check_table(node, height, height, 4)
    found = fourier(relay.expand_dims(node[0], rank), width, False, True)
    if (height, node.shape()[-2]) != (1, 1):
        order = [*range(rank - 2), rank - 1, rank - 2, rank]
        transposed = fourier(relay.transpose(found, order), height, False, False)
        found = relay.transpose(transposed, order)
    return found


def _part(node: NodeView, index: int) -> Any:
    axis = node[0].tensor_type.rank - 1
    return relay.squeeze(relay.strided_slice(node[0], [index], [index + 1], axes=[axis]), [axis])


@converter("COMPLEX:REAL", "COMPLEX:CAST")
def real(node: NodeView) -> Any:
    """The real part, which a conversion to real numbers keeps too."""
    if node.out().dtype.startswith("complex"):
        return node[0]
    part = _part(node, 0)
    return part if node.out().dtype == "float32" else relay.cast(part, node.out().dtype)


@converter("COMPLEX:IMAG")
def imaginary(node: NodeView) -> Any:
    """The imaginary part."""
    return _part(node, 1)


@converter("COMPLEX:COMPLEX_ABS")
def complex_abs(node: NodeView) -> Any:
    """The distance from zero."""
    axis = node[0].tensor_type.rank - 1
    return relay.sqrt(relay.sum(relay.multiply(node[0], node[0]), [axis]))


@converter("COMPLEX:RESHAPE")
def reshape(node: NodeView) -> Any:
    """Another shape; one extent may be -1."""
    wanted = node.option("new_shape", None)
    if node.has(1):
        wanted = node.integers(1)
    return relay.reshape(node[0], (*(node.out().shape if wanted is None else wanted), 2))


@converter("COMPLEX:SQUEEZE")
def squeeze(node: NodeView) -> Any:
    """Fewer axes of extent 1."""
    shape = node[0].tensor_type.shape[:-1]
    axes = node.option("squeeze_dims", None) or [a for a, n in enumerate(shape) if n == 1]
    return relay.squeeze(node[0], [a % len(shape) for a in axes]) if axes else node[0]


@converter("COMPLEX:EXPAND_DIMS")
def expand_dims(node: NodeView) -> Any:
    """One more axis of extent 1."""
    axis = node.integer(1)
    return relay.expand_dims(node[0], axis if axis >= 0 else axis - 1)


@converter("COMPLEX:TRANSPOSE")
def transpose(node: NodeView) -> Any:
    """Axes in another order."""
    rank = node[0].tensor_type.rank - 1
    return relay.transpose(node[0], [*(a % rank for a in node.integers(1)), rank])
