"""nn.correlation: how alike patches of two images are, for each displacement between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_float, need_rank, pad_amounts
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class CorrelationAttrs(Attrs):
    """A patch has kernel_size pixels a side; the second's is up to max_displacement away."""

    kernel_size: int = 1
    max_displacement: int = 1
    stride1: int = 1
    stride2: int = 1
    padding: tuple[int, ...] = (0, 0, 0, 0)
    is_multiply: bool = True

    @property
    def reach(self) -> int:
        """How many steps of a displacement there are to each side."""
        return self.max_displacement // self.stride2


CORRELATION = register_op(
    "nn.correlation", "data1", "data2", attrs=CorrelationAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="The mean product (or distance) of patches of two images, a channel for each displacement.",
)  # fmt: skip


@CORRELATION.type_relation
def _correlation_type(attrs: CorrelationAttrs, data1: TensorType, data2: TensorType) -> Type:
    need_float("data1", data1)
    need_rank("data1", data1, 4)
    need_dtype("data2", data2, data1.dtype, "the other image")
    if data2.shape != data1.shape:
        raise BadArgument("data2", f"must be {data1} like the other image, got {data2}")
    if attrs.kernel_size < 1 or attrs.kernel_size % 2 == 0:
        raise BadArgument(
            "kernel_size", f"must be odd: a patch has a middle; is {attrs.kernel_size}"
        )
    if min(attrs.stride1, attrs.stride2) < 1 or attrs.max_displacement < 0:
        raise BadArgument(
            "stride1", f"and stride2 must be at least 1, no displacement below 0: {attrs}"
        )
    if len(attrs.padding) != 4:
        raise BadArgument("padding", f"must be top, left, bottom, right; is {attrs.padding}")
    margin = attrs.max_displacement + attrs.kernel_size // 2
    sizes = []
    for size, before, after in zip(
        data1.shape[2:], attrs.padding[:2], attrs.padding[2:], strict=True
    ):
        inside = size + before + after - 2 * margin
        if inside < 1:
            raise BadArgument("max_displacement", f"leaves nothing of {data1} with {attrs}")
        sizes.append(-(-inside // attrs.stride1))
    count = (2 * attrs.reach + 1) ** 2
    return TensorType((data1.shape[0], count, *sizes), data1.dtype)


@CORRELATION.reference
def _correlation_reference(attrs: CorrelationAttrs, data1: Array, data2: Array) -> Any:
    wide = np.float32 if data1.dtype == np.float16 else data1.dtype
    top, left, bottom, right = attrs.padding
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    a, b = (np.pad(x.astype(wide), around) for x in (data1, data2))
    size, far, step = attrs.kernel_size, attrs.max_displacement, attrs.stride1
    rows, columns = (n - 2 * far - size + 1 for n in a.shape[2:])
    found = []
    steps = range(-attrs.reach, attrs.reach + 1)
    for dy, dx in ((y * attrs.stride2, x * attrs.stride2) for y in steps for x in steps):
        total: Any = 0
        for y, x in np.ndindex(size, size):
            own = a[:, :, far + y : far + y + rows, far + x : far + x + columns]
            other = b[:, :, far + y + dy :, far + x + dx :][:, :, :rows, :columns]
            both = own * other if attrs.is_multiply else np.abs(own - other)
            total = total + both.sum(1, dtype=wide)
        found.append(total[:, ::step, ::step] / (size * size * a.shape[1]))
    return np.stack(found, 1).astype(data1.dtype)


@CORRELATION.compute
def _correlation_compute(
    attrs: CorrelationAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,), (first, second), m = out_types, inputs, te()
    channels, (height, width) = int(first.shape[1]), first.shape[2:]
    side, size, far = 2 * attrs.reach + 1, attrs.kernel_size, attrs.max_displacement
    c, dy, dx = (m.reduce_axis((0, n), k) for n, k in ((channels, "c"), (size, "y"), (size, "x")))
    wide = "float32" if out.dtype == "float16" else out.dtype

    def pixel(image: Any, n: Any, y: Any, x: Any) -> Any:
        y, x = y - attrs.padding[0], x - attrs.padding[1]
        value = image[n, c, y, x].astype(wide)
        if not any(attrs.padding):
            return value
        within = m.all(y >= 0, y < height, x >= 0, x < width)
        return m.if_then_else(within, value, m.const(0, wide))

    def element(n: Any, q: Any, i: Any, j: Any) -> Any:
        y, x = i * attrs.stride1 + far + dy, j * attrs.stride1 + far + dx
        down = (q // side - attrs.reach) * attrs.stride2
        right = (q % side - attrs.reach) * attrs.stride2
        own, other = pixel(first, n, y, x), pixel(second, n, y + down, x + right)
        both = own * other if attrs.is_multiply else m.abs(own - other)
        return m.sum(both, axis=[c, dy, dx])

    total = m.compute(out.shape, element, name="correlation")
    scale = m.const(1 / (size * size * channels), wide)
    return [m.compute(out.shape, lambda *i: (total(*i) * scale).astype(out.dtype), name="T_mean")]


@CORRELATION.flops
def _correlation_flops(attrs: CorrelationAttrs, ins: list[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[0].shape[1] * attrs.kernel_size**2


@CORRELATION.make
def correlation(
    data1: ExprLike, data2: ExprLike, kernel_size: int = 1, max_displacement: int = 1,
    stride1: int = 1, stride2: int = 1, padding: Extents = 0, is_multiply: bool = True,
    layout: str = "NCHW",
) -> Call:  # fmt: skip
    """Return how alike patches of two images (N, C, H, W) are, for each displacement."""
    if layout != "NCHW":
        raise BadArgument("layout", f"must be NCHW, is {layout}")
    sizes = (int(kernel_size), int(max_displacement), int(stride1), int(stride2))
    attrs = CorrelationAttrs(*sizes, pad_amounts(padding, 2), bool(is_multiply))
    return CORRELATION(data1, data2, attrs=attrs)


for _attrs in (
    CorrelationAttrs(), CorrelationAttrs(1, 2, 1, 2, (2, 2, 2, 2)),
    CorrelationAttrs(3, 2, 2, 1, (1, 2, 3, 0)), CorrelationAttrs(3, 1, 1, 1, (1, 1, 1, 1), False),
):  # fmt: skip
    CORRELATION.sample_case((2, 3, 7, 8), (2, 3, 7, 8), attrs=_attrs)
