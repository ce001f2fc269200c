"""PackBlockWeights: products with block-quantised weights in the form of an instruction.

    nn.block_dense(%x, w)       ->  nn.contrib_block_dense(%x, w packed, scales, minima)
    nn.expert_dense(%x, w, %e)  ->  nn.contrib_expert_dense(%x, w packed, scales, minima, %e)

for constant weights, where the target multiplies bytes, or, with `exact`, has vectors of floats.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from slipway.backends.cpu.knobs import vector_lanes
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.packed.block_dense import packed_parts
from slipway.relay.ops.packed.block_formats import format_of
from slipway.relay.types import TensorType
from slipway.relay.visit import rewrite

if TYPE_CHECKING:
    from slipway.target import Target

# In order of preference; they repeat a word of the data.
INSTRUCTIONS = (
    "x86.vnni.signed", "x86.vnni.signed.256", "x86.avxvnni.signed", "x86.maddubs.signed",
    "x86.maddubs.signs", "neon.sdot", "neon.smull.words", "neon32.vmull.words",
)  # fmt: skip
MOST_VECTORS = 4  # of outputs, whose weights are one stream from memory


def instruction_for(bits: int, target: Target | None) -> HardwareIntrinsic | None:
    """Return the instruction for weights of so many bits on `target`."""
    if target is None or not target.is_by_llvm:
        return None
    for entry in (HARDWARE[i] for i in INSTRUCTIONS):
        overflows = entry.most_b is not None and entry.most_b < (1 << bits) - 1
        if not entry.missing(target) and not overflows:
            return entry
    return None


def float_lanes(target: Target | None) -> int:
    """Return the floats in a vector of `target`, 0 where it has none of four."""
    lanes = vector_lanes(target, "float32") if target is not None and target.is_by_llvm else 0
    return lanes if lanes >= 4 else 0


def pack_blocks(function: Function, target: Target | None) -> Function:
    """Return `function` with the weights of its block-quantised products packed for `target`."""

    def pack(call: Expr) -> Expr | None:
        if not isinstance(call, Call):
            return None
        if is_call_of(call, "nn.block_dense"):
            return _product(call, target)
        return _experts(call, target) if is_call_of(call, "nn.expert_dense") else None

    result: Function = rewrite(function, pack)
    return result


def _vectors(units: int, columns: int) -> int:
    """Return the vectors of outputs in a tile."""
    vectors = MOST_VECTORS
    while vectors > 1 and units % (vectors * columns):
        vectors //= 2
    return vectors


def _product(call: Call, target: Target | None) -> Expr | None:
    data, weight = call.args
    name, exact = call.attrs.format, call.attrs.exact
    entry = None if exact else instruction_for(format_of(name).bits, target)
    columns = float_lanes(target) if exact else entry.columns if entry is not None else 0
    given = data.checked_type
    if not columns or not isinstance(weight, Constant) or not isinstance(given, TensorType):
        return None
    units = weight.array.shape[0]
    vectors = _vectors(units, columns)
    # Without an instruction that wants the others, bytes stay signed or unsigned.
    unsigned = None if entry is None else entry.b_dtype == "uint8"
    how, arrays = packed_parts(name, weight.array, columns, vectors, unsigned)
    rows, depth = prod(given.shape[:-1]), given.shape[-1]
    if given.rank != 2:
        data = op_registry.make("reshape")(data, (rows, depth))
    make = op_registry.make("nn.contrib_block_dense")
    product: Expr = make(data, *map(const, arrays), **how, exact=exact)
    if units % (vectors * columns):
        product = op_registry.make("split")(product, [units], axis=1)[0]
    if given.rank != 2:
        product = op_registry.make("reshape")(product, (*given.shape[:-1], units))
    return product


def _experts(call: Call, target: Target | None) -> Expr | None:
    data, weight, experts = call.args
    name = call.attrs.format
    entry = instruction_for(format_of(name).bits, target) if name else None
    if entry is None or not isinstance(weight, Constant):
        return None
    matrices, units, width = weight.array.shape
    more = -units % entry.columns  # each expert has tiles of its own
    rows = np.pad(weight.array, ((0, 0), (0, more), (0, 0))).reshape(-1, width)
    vectors = _vectors(units + more, entry.columns)
    how, arrays = packed_parts(name, rows, entry.columns, vectors, entry.b_dtype == "uint8")
    make = op_registry.make("nn.contrib_expert_dense")
    product: Expr = make(data, *map(const, arrays), experts, matrices=matrices, **how)
    return op_registry.make("split")(product, [units], axis=2)[0] if more else product
