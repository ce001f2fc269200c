"""Weights of float16 and bfloat16 that stay so in memory, and are widened by kernels.

Products of such models are summed in float32 (`WidenProducts`), for which constant weights were
widened when the model is compiled: they took twice the memory, and twice the traffic.  Of kernels,
as FuseOps leaves them::

    fn(%p0, %p1) { nn.conv2d(%p0, %p1) }(%x, w)
        ->  fn(%p0, %p1) { nn.conv2d(%p0, cast(%p1, float32)) }(%x, cast(w, float16))

where every number of `w` is one of the narrow type, so that results keep their bits.  A model
without any tensor of a narrow type is left alone: what copies weights to shared memory while it
computes takes them unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function, Var
from slipway.relay.op_registry import is_call_of, is_primitive
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order, rewrite, substitute
from slipway.runtime.arrays.array_file import in_file
from slipway.runtime.ndarray import numpy_dtype
from slipway.target import Target
from slipway.transform.graph.precision.widen_products import BFLOAT16, FLOAT16, PRODUCTS, WIDE


def half_weights(function: Function, target: Target) -> Function:
    """Return `function` with the weights of its kernels in the types that they had."""
    found = {
        e.type.dtype
        for e in post_order(function)
        if isinstance(e.type, TensorType) and e.type.dtype in widened_in_kernels(target)
    }
    if not found:
        return function
    known: dict[int, Constant | None] = {}

    def narrow(weight: Constant) -> Constant | None:
        if id(weight) not in known:
            known[id(weight)] = _narrowed(weight, sorted(found))
        return known[id(weight)]

    def rule(call: Expr) -> Expr | None:
        if not isinstance(call, Call) or not is_primitive(call.op):
            return None
        made: Any = call
        for number, value in enumerate(call.args):
            if not isinstance(value, Constant) or value.array.dtype != WIDE:
                continue
            if not _is_weight(made.op, made.op.params[number]):
                continue
            if (weight := narrow(value)) is not None:
                made = _with_weight(made, number, weight)
        return None if made is call else made

    return rewrite(function, rule)  # type: ignore[no-any-return]


def widened_in_kernels(target: Target) -> tuple[str, ...]:
    """Return the narrow types that a kernel of the target widens at once.

    bfloat16 is the upper half of a float32.  For float16 there is an instruction on NVIDIA's, AMD's
    and Apple's GPUs, and where the target says that its device computes in it.
    """
    converts = target.kind.name in ("cuda", "rocm", "metal")
    if converts or target.attrs.get("supports_float16"):
        return BFLOAT16, FLOAT16
    return (BFLOAT16,)


def _is_weight(kernel: Function, param: Var) -> bool:
    """Return whether a parameter is the second operand of products, and nothing else."""
    reads = [c for c in post_order(kernel.body) if isinstance(c, Call) and param in c.args]
    return bool(reads) and all(
        is_call_of(c, *PRODUCTS) and c.args[1] is param and c.args[0] is not param for c in reads
    )


def _narrowed(weight: Constant, names: list[str]) -> Constant | None:
    """Return the same numbers in the first of some types that has them all."""
    for name in names:
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = weight.array.astype(numpy_dtype(name))
        wide = narrow.astype(WIDE)
        if np.array_equal(wide.view(np.uint32), weight.array.view(np.uint32)):
            return Constant(in_file(narrow))
    return None


def _with_weight(call: Call, number: int, weight: Constant) -> Call:
    kernel: Function = call.op
    old = kernel.params[number]
    param = Var(old.name_hint, weight.checked_type)
    wide = op_registry.make("cast")(param, WIDE)
    params = (*kernel.params[:number], param, *kernel.params[number + 1 :])
    body = substitute(kernel.body, {old: wide})
    args = (*call.args[:number], weight, *call.args[number + 1 :])
    return Call(Function(params, body, None, kernel.attrs), args, call.attrs, call.span)
