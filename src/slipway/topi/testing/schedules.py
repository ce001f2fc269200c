"""Schedules by target, and comparing an expression with its reference, under classic names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from slipway.compiler.driver import build
from slipway.runtime.devices import Device
from slipway.runtime.ndarray import array
from slipway.target.target import Target
from slipway.te.declare import placeholder
from slipway.topi import arm_cpu, cuda, generic, nn, x86

T = TypeVar("T")
Array: TypeAlias = np.ndarray[Any, Any]
TargetLike: TypeAlias = Target | str

INJECTIVE: dict[str, Callable[..., Any]] = {
    "generic": generic.schedule_injective,
    "cpu": x86.schedule_injective,
    "arm_cpu": arm_cpu.schedule_injective,
    "gpu": cuda.schedule_injective,
}
REDUCE: dict[str, Callable[..., Any]] = {
    "generic": generic.schedule_reduce,
    "cpu": x86.schedule_reduce,
    "gpu": cuda.schedule_reduce,
}
CONV2D = {
    "generic": (nn.conv2d_nchw, generic.schedule_conv2d_nchw),
    "cpu": (nn.conv2d_nchw, x86.schedule_conv2d_nchw),
    "gpu": (nn.conv2d_nchw, cuda.schedule_conv2d_nchw),
}


def dispatch(target: TargetLike, dispatch_map: Mapping[str, T]) -> T:
    """Return the entry of the first of the target's keys that the map has, or "generic"'s."""
    for key in Target(target).keys:
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def get_injective_schedule(target: TargetLike) -> Any:
    """Return the schedule of elementwise and broadcast expressions for a target."""
    return dispatch(target, INJECTIVE)


get_broadcast_schedule = get_elemwise_schedule = get_injective_schedule


def get_reduce_schedule(target: TargetLike) -> Any:
    """Return the schedule of reductions for a target."""
    return dispatch(target, REDUCE)


def get_conv2d_nchw_implement(target: TargetLike) -> Any:
    """Return (compute, schedule) of convolutions of (N, C, H, W) for a target."""
    return dispatch(target, CONV2D)


def compare_numpy_tvm(
    inputs: Sequence[Array],
    output: Array,
    target: TargetLike,
    device: Device | None,
    compute: Callable[..., Any],
    schedule: Callable[..., Any],
) -> None:
    """Compile ``compute(*inputs)`` for a target and compare what it gives with `output`."""
    tensors = [placeholder(x.shape, str(x.dtype), f"x{n}") for n, x in enumerate(inputs)]
    with Target(target):
        made = compute(*tensors)
        built = build(schedule([made]), [*tensors, made], target=Target(target))
    result = array(np.zeros(output.shape, output.dtype), device)
    built(*(array(x, device) for x in inputs), result)
    np.testing.assert_allclose(result.numpy(), output, atol=1e-4, rtol=1e-4)
