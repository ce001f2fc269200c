"""Visiting statements, under its classic path; see `slipway.ir.stmt_functor`."""

from slipway.ir.stmt_functor import ir_transform, post_order_visit, pre_order_visit, substitute

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "substitute"]
