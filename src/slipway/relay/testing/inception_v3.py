"""Inception v3 (Szegedy et al., "Rethinking the Inception Architecture for Computer Vision").

A tower is a chain of convolutions; a block is parallel towers, joined along the channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import BadArgument
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias, make
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import Expr, Extents

# One convolution of a tower: channels, window, stride, padding.
Step = tuple[int, tuple[int, int], int, tuple[int, int]]


def Conv(
    data: Expr,
    num_filter: int,
    kernel: tuple[int, int] = (1, 1),
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int] = (0, 0),
    name: str | None = None,
    suffix: str = "",
) -> Any:
    """Return convolution, batch norm and relu."""
    x = conv2d(
        data, channels=int(num_filter), kernel_size=kernel, strides=stride, padding=pad,
        name=f"{name}{suffix}_conv1",
    )  # fmt: skip
    x = batch_norm_infer(x, epsilon=2e-5, scale=False, name=f"{name}{suffix}_bn")
    return make("nn.relu")(x)


def Pooling(
    data: Expr, kernel: Extents, stride: Extents, pad: Extents, pool_type: str, name: str
) -> Any:
    """Return a pool of the kind "max" or "avg"."""
    if pool_type == "max":
        return make("nn.max_pool2d")(data, pool_size=kernel, strides=stride, padding=pad)
    if pool_type == "avg":
        return make("nn.avg_pool2d")(
            data, pool_size=kernel, strides=stride, padding=pad, count_include_pad=True
        )
    raise BadArgument("pool_type", f"is {pool_type!r}; use 'max' or 'avg'")


def _one(channels: int) -> Step:
    return channels, (1, 1), 1, (0, 0)


def _same(channels: int, *window: int) -> Step:
    height, width = window
    return channels, (height, width), 1, (height // 2, width // 2)


def _halving(channels: int) -> Step:
    return channels, (3, 3), 2, (0, 0)


def _tower(x: Any, name: str, steps: Sequence[Step]) -> Any:
    for number, (channels, window, stride, pad) in enumerate(steps):
        suffix = "_conv" if number == 0 else f"_conv_{number}"
        x = Conv(x, channels, window, (stride, stride), pad, name, suffix)
    return x


def _pooled(x: Any, kind: str, name: str, channels: int) -> Any:
    x = Pooling(x, (3, 3), (1, 1), (1, 1), kind, f"{kind}_pool_{name}_pool")
    return _tower(x, f"{name}_tower_2", [_one(channels)])


def _join(*parts: Any) -> Any:
    return make("concatenate")(list(parts), 1)


def _small(x: Any, name: str, projected: int) -> Any:
    """35 x 35: windows of 1, 5 and 3 by 3."""
    return _join(
        Conv(x, 64, name=f"{name}_conv"),
        _tower(x, f"{name}_tower", [_one(48), _same(64, 5, 5)]),
        _tower(x, f"{name}_tower_1", [_one(64), _same(96, 3, 3), _same(96, 3, 3)]),
        _pooled(x, "avg", name, projected),
    )


def _to_17(x: Any, name: str) -> Any:
    return _join(
        Conv(x, 384, (3, 3), (2, 2), name=f"{name}_conv"),
        _tower(x, f"{name}_tower", [_one(64), _same(96, 3, 3), _halving(96)]),
        Pooling(x, (3, 3), (2, 2), (0, 0), "max", f"max_pool_{name}_pool"),
    )


def _middle(x: Any, name: str, narrow: int) -> Any:
    """17 x 17: windows of 7 by 7, taken apart into rows and columns."""
    return _join(
        Conv(x, 192, name=f"{name}_conv"),
        _tower(x, f"{name}_tower", [_one(narrow), _same(narrow, 1, 7), _same(192, 7, 1)]),
        _tower(
            x, f"{name}_tower_1",
            [_one(narrow), _same(narrow, 7, 1), _same(narrow, 1, 7), _same(narrow, 7, 1),
             _same(192, 1, 7)],
        ),
        _pooled(x, "avg", name, 192),
    )  # fmt: skip


def _to_8(x: Any, name: str) -> Any:
    return _join(
        _tower(x, f"{name}_tower", [_one(192), _halving(320)]),
        _tower(
            x, f"{name}_tower_1", [_one(192), _same(192, 1, 7), _same(192, 7, 1), _halving(192)]
        ),
        Pooling(x, (3, 3), (2, 2), (0, 0), "max", f"max_pool_{name}_pool"),
    )


def _wide(x: Any, name: str, pool: str) -> Any:
    """8 x 8: the ends of two towers part into a row and a column."""

    def parted(steps: Sequence[Step], tower: str) -> list[Any]:
        end = _tower(x, tower, steps)
        row = Conv(end, 384, (1, 3), pad=(0, 1), name=tower, suffix="_mixed_conv")
        return [row, Conv(end, 384, (3, 1), pad=(1, 0), name=tower, suffix="_mixed_conv_1")]

    return _join(
        Conv(x, 320, name=f"{name}_conv"),
        *parted([_one(384)], f"{name}_tower"),
        *parted([_one(448), _same(384, 3, 3)], f"{name}_tower_1"),
        _pooled(x, pool, name, 192),
    )


def get_net(
    batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str
) -> Function:
    """Return Inception v3, made for images of 299 x 299."""
    x: Any = Var("data", TensorType((batch_size, *image_shape), dtype))
    x = Conv(x, 32, (3, 3), (2, 2), name="conv")
    x = Conv(x, 32, (3, 3), name="conv_1")
    x = Conv(x, 64, (3, 3), pad=(1, 1), name="conv_2")
    x = Pooling(x, (3, 3), (2, 2), (0, 0), "max", "pool")
    x = Conv(x, 80, name="conv_3")
    x = Conv(x, 192, (3, 3), name="conv_4")
    x = Pooling(x, (3, 3), (2, 2), (0, 0), "max", "pool1")
    for name, projected in (("mixed", 32), ("mixed_1", 64), ("mixed_2", 64)):
        x = _small(x, name, projected)
    x = _to_17(x, "mixed_3")
    for name, narrow in (("mixed_4", 128), ("mixed_5", 160), ("mixed_6", 160), ("mixed_7", 192)):
        x = _middle(x, name, narrow)
    x = _to_8(x, "mixed_8")
    for name, pool in (("mixed_9", "avg"), ("mixed_10", "max")):
        x = _wide(x, name, pool)
    x = Pooling(x, (8, 8), (1, 1), (0, 0), "avg", "global_pool")
    x = dense_add_bias(make("nn.batch_flatten")(x), units=num_classes, name="fc1")
    return make("nn.softmax")(x).as_function()  # type: ignore[no-any-return]


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 299, 299),
    dtype: str = "float32",
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
