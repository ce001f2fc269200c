"""``relay.op.strategy``: how programs compute operators themselves; see `generic`."""

from slipway.relay.op.strategy import generic
from slipway.relay.op.strategy.generic import (
    get_const_tuple,
    naive_schedule,
    override_native_generic_func,
    wrap_compute_batch_matmul,
    wrap_compute_conv1d,
    wrap_compute_conv2d,
    wrap_compute_dense,
    wrap_compute_softmax,
    wrap_topi_schedule,
)

__all__ = [
    "generic",
    "get_const_tuple",
    "naive_schedule",
    "override_native_generic_func",
    "wrap_compute_batch_matmul",
    "wrap_compute_conv1d",
    "wrap_compute_conv2d",
    "wrap_compute_dense",
    "wrap_compute_softmax",
    "wrap_topi_schedule",
]
