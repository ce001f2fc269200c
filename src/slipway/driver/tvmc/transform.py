"""What ``tvmc compile`` does to a graph before it builds: other layouts, products in 16 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway.driver.tvmc.model import TVMCException
from slipway.errors import SlipwayError
from slipway.ir.function import IRModule
from slipway.transform.context import PassContext
from slipway.transform.graph.classic import (
    ConvertLayout,
    FoldConstant,
    InferType,
    RemoveUnusedFunctions,
    ToMixedPrecision,
)

_LAID_OUT = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")
_OF_ONE_LAYOUT = _LAID_OUT[1:]  # not asked for by name, they are left without a warning
_PRODUCTS = ("nn.conv2d", "nn.dense")
_SUMS = "float32"


def convert_graph_layout(
    mod: IRModule, desired_layouts: str | Sequence[str], ops: Sequence[str] | None = None
) -> IRModule:
    """Return a module whose convolutions lie as asked: "NCHW", or "NHWC:HWIO" with the weights'.

    One layout for all operators `ops`, or one for each; raises TVMCException for another number
    and for a layout that cannot be.
    """
    names = list(ops or _LAID_OUT)
    layouts = [desired_layouts] if isinstance(desired_layouts, str) else list(desired_layouts)
    if len(layouts) not in (1, len(names)):
        raise TVMCException(
            f"{len(layouts)} layouts for {len(names)} operators: give one, or one for each"
        )
    pairs = [layout.partition(":") for layout in layouts * (len(names) // len(layouts))]
    table = {
        name: [data, weights or "default"]
        for name, (data, _, weights) in zip(names, pairs, strict=True)
        if ops or name not in _OF_ONE_LAYOUT
    }
    return _run([RemoveUnusedFunctions(), ConvertLayout(table), FoldConstant()], mod, "layouts")


def convert_to_mixed_precision(
    mod: IRModule,
    ops: Sequence[str] | None = None,
    calculation_type: str = "float16",
    acc_type: str = _SUMS,
) -> IRModule:
    """Return a module with its products in float16 or bfloat16; its outputs keep their types.

    Which operators follow is decided for all of them at once (`relay.transform.ToMixedPrecision`),
    and products sum in float32: raises TVMCException for other `ops` than convolutions and
    products, and takes any `acc_type`, of which "float16" is summed more exactly than asked.
    """
    if ops is not None and not set(ops) >= set(_PRODUCTS):
        raise TVMCException(
            f"mixed_precision_ops is {list(ops)}: products change type together, so leave it out "
            f"or name {' and '.join(_PRODUCTS)}"
        )
    if acc_type not in (_SUMS, calculation_type):
        raise TVMCException(f"mixed_precision_acc_type is {acc_type!r}: products sum in {_SUMS}")
    with PassContext(opt_level=3, config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
        return _run([InferType(), ToMixedPrecision(calculation_type)], mod, "mixed precision")


def apply_graph_transforms(mod: IRModule, args: Mapping[str, Any] | None) -> IRModule:
    """Return a module with what `args` names: desired_layout, mixed_precision and their options."""
    given = dict(args or {})
    if given.get("desired_layout"):
        mod = convert_graph_layout(mod, given["desired_layout"], given.get("desired_layout_ops"))
    if given.get("mixed_precision"):
        mod = convert_to_mixed_precision(
            mod,
            given.get("mixed_precision_ops"),
            given.get("mixed_precision_calculation_type") or "float16",
            given.get("mixed_precision_acc_type") or _SUMS,
        )
    return mod


def _run(passes: list[Any], mod: IRModule, what: str) -> IRModule:
    try:
        for one in passes:  # each is asked for, whatever the level of the context
            mod = one(mod)
        return mod
    except SlipwayError as error:
        raise TVMCException(f"tvmc cannot change {what}: {error}") from error
