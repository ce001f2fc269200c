"""What a kernel costs at least: its arithmetic, and the bytes that must pass through memory.

Both come from the operators' sections in the registry.  Tensors between the operators of one
kernel stay in registers, so only the kernel's own inputs and outputs count.
"""

from __future__ import annotations

from dataclasses import dataclass

from slipway.relay.expr import Call, Expr, Function
from slipway.relay.op_registry import call_definition
from slipway.relay.open_dims import has_open, usual_type
from slipway.relay.types import Type, flatten
from slipway.relay.visit import post_order


@dataclass(frozen=True)
class Cost:
    """Arithmetic operations (a multiply-add is two), and bytes read and written.

    `flops` counts them by the operators' definitions; `work` what the algorithms execute.
    """

    flops: float
    bytes: int
    work: float


def _counted(expr: Expr) -> Type:
    return usual_type(expr.checked_type) if has_open(expr.checked_type) else expr.checked_type


def kernel_cost(function: Function) -> Cost:
    """Return the cost of one call of a fused function, with open dimensions at their upper ends."""
    flops = work = 0.0
    full = {id(p): sum(t.size_bytes for t in flatten(_counted(p))) for p in function.params}
    read = dict.fromkeys(full, 0)
    for expr in post_order(function.body, into_functions=False):
        definition = call_definition(expr)
        if definition is None or not isinstance(expr, Call):
            for child in getattr(expr, "fields", ()):  # a tuple of inputs is read as a whole
                if id(child) in full:
                    read[id(child)] = full[id(child)]
            continue
        types = [_counted(a) for a in expr.args]
        out_type = _counted(expr)
        flops += definition.count_flops(expr.attrs, types, out_type)
        work += definition.count_work(expr.attrs, types, out_type)
        bytes_read = definition.count_reads(expr.attrs, types, out_type)
        for argument, size in zip(expr.args, bytes_read, strict=True):
            if id(argument) in full:
                read[id(argument)] = min(full[id(argument)], read[id(argument)] + size)
    if id(function.body) in full:  # a copy
        read[id(function.body)] = full[id(function.body)]
    written = sum(t.size_bytes for t in flatten(_counted(function.body)))
    return Cost(flops, sum(read.values()) + written, work)
