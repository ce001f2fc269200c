"""What makes implementations of operators from functions as topi has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway import te
from slipway.relay.op_registry import Attrs
from slipway.relay.types import TensorType
from slipway.target import Target
from slipway.target.generic import override_native_generic_func
from slipway.topi.utils import get_const_tuple

__all__ = [
    "get_const_tuple", "naive_schedule", "override_native_generic_func",
    "wrap_compute_batch_matmul", "wrap_compute_conv1d", "wrap_compute_conv2d",
    "wrap_compute_dense", "wrap_compute_softmax", "wrap_topi_schedule",
]  # fmt: skip

Topi = Callable[..., te.Tensor]
Made = Callable[[Attrs, Sequence[te.Tensor], TensorType], list[te.Tensor]]


def wrap_topi_schedule(
    topi_schedule: Callable[..., te.Schedule],
) -> Callable[[Attrs, Sequence[te.Tensor], Target], te.Schedule]:
    """Return the schedule of an implementation from ``schedule(outs)``, called for the target."""

    def schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
        with target:
            return topi_schedule(list(outs))

    return schedule


def naive_schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    """Return the loops as they are written."""
    return te.create_schedule([tensor.op for tensor in outs])


def wrap_compute_conv1d(topi_compute: Topi) -> Made:
    """From ``conv1d(data, kernel, strides, padding, dilation, out_dtype)``."""
    return wrap_compute_conv2d(topi_compute)


def wrap_compute_conv2d(
    topi_compute: Topi,
    need_data_layout: bool = False,
    need_kernel_layout: bool = False,
    need_out_layout: bool = False,
    has_groups: bool = False,
) -> Made:
    """From ``conv2d(data, kernel, strides, padding, dilation[, groups, layouts], out_dtype)``."""

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
        given: Any = attrs
        args: list[Any] = [*inputs[:2], given.strides, given.padding, given.dilation]
        args += [given.groups] if has_groups else []
        args += [given.data_layout] if need_data_layout else []
        args += [given.kernel_layout] if need_kernel_layout else []
        args += [given.out_layout] if need_out_layout else []
        return [topi_compute(*args, _out_dtype(attrs, inputs))]

    return compute


def wrap_compute_dense(topi_compute: Topi) -> Made:
    """From ``dense(data, weight, bias, out_dtype)``."""
    return lambda attrs, inputs, out_type: [
        topi_compute(inputs[0], inputs[1], None, _out_dtype(attrs, inputs))
    ]


def wrap_compute_batch_matmul(topi_compute: Topi) -> Made:
    """From ``batch_matmul(x, y, out_shape)``."""
    return lambda attrs, inputs, out_type: [topi_compute(inputs[0], inputs[1], out_type.shape)]


def wrap_compute_softmax(topi_compute: Topi) -> Made:
    """From ``softmax(x, axis)``."""
    return lambda attrs, inputs, out_type: [topi_compute(inputs[0], getattr(attrs, "axis", -1))]


def _out_dtype(attrs: Attrs, inputs: Sequence[te.Tensor]) -> str:
    named = str(getattr(attrs, "out_dtype", ""))
    return str(inputs[0].dtype) if named in ("", "same") else named
